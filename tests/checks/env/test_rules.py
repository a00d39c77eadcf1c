"""ENV001 and ENV002: settings that cost bandwidth on the node at hand, lines that NCCL takes literally."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.checks import jobs, nodes
from tests.checks import networks as network
from tests.checks.bent import machine as built
from tests.checks.networks import ib_h100
from tests.checks.nodes import only, read, status
from tests.checks.nvlink import test_nvlinks as amd
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples, rows
from tests.verdict.judged import measured
from topodiag.checks.env.bench import CostlySettingOfRun
from topodiag.checks.env.conf_file import ConfLineNotRead, misread
from topodiag.checks.env.job import LogMachines
from topodiag.checks.env.node import CostlySetting, NodeMachine
from topodiag.checks.env.rules import VALUES, level, number, rules
from topodiag.evidence.host.settings import as_nccl_reads
from topodiag.model.bench import Benchmark
from topodiag.model.finding import Severity, Status
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import ConfLine, Node, Process, Setting
from topodiag.model.provenance import Fact, Origin, Topic

E, W, I = Severity.ERROR, Severity.WARNING, Severity.INFO  # noqa: E741


SEEN = frozenset({Topic.SETTINGS, Topic.GPUS, Topic.RDMA_DEVICES})


def given_on(node: Node, *pairs: str, scope: str = "environment", topics: frozenset[Topic] = SEEN) -> Node:
    """The node with settings `NAME=VALUE` added, and what its evidence speaks of."""
    settings = tuple(
        Setting(pair.partition("=")[0], pair.partition("=")[2], scope, Origin("settings.tree", at + 1, pair))
        for at, pair in enumerate(pairs)
    )
    return replace(node, settings=node.settings + settings, topics=topics)


def costs(node: Node, *pairs: str, scope: str = "environment") -> Any:
    return CostlySetting().judge(given_on(node, *pairs, scope=scope), ())


def geforce() -> Node:
    return nodes.with_gpus(nodes.l40s_box(), name=read("NVIDIA GeForce RTX 4090"))


def amd_board() -> Node:
    return replace(amd.amd_machine(), paths=ib_h100().paths)


def amd_without_xgmi() -> Node:
    return replace(amd.amd_machine(), paths=nodes.l40s_box().paths)


BUILDERS: dict[str, Callable[[], Node]] = {
    "amd": amd.amd_machine, "amd_board": amd_board, "amd_without_xgmi": amd_without_xgmi, "geforce": geforce
}  # fmt: skip


@examples("machine", "pair", "severity")
def test_a_setting_that_costs_something_on_this_node_is_found(machine: str, pair: str, severity: Severity) -> None:
    finding = only(costs(built(machine, **BUILDERS), pair))
    assert finding.severity is severity
    assert finding.message.startswith(f"{pair} (environment): ")
    assert finding.observed == f"{pair} in environment"
    assert finding.fix
    assert [origin.text for origin in finding.evidence] == [pair]


@examples("machine", "pair")
def test_a_setting_that_costs_nothing_here_is_silent(machine: str, pair: str) -> None:
    assert status(costs(built(machine, **BUILDERS), pair)) == "clean"


@examples("pair", "topics", "expected")
def test_a_setting_of_a_machine_that_nobody_saw_is_not_judged(pair: str, topics: set[Topic], expected: str) -> None:
    node = given_on(Node("n0"), pair, topics=frozenset({Topic.SETTINGS, *topics}))
    assert status(CostlySetting().judge(node, ())) == expected


@examples("machine", "changes", "pairs", "wanted")
def test_settings_of_a_changed_machine(machine: str, changes: dict[str, Any], pairs: list[str], wanted: Wanted) -> None:
    assert shown(costs(built(machine, changes), *pairs), wanted) == wanted


def test_every_rule_has_an_example_that_fires() -> None:
    costly = rows(__file__, "a_setting_that_costs_something_on_this_node_is_found")
    tested = {pair.partition("=")[0] for _, pair, _ in costly}
    here = {"NCCL_DMABUF_ENABLE", "NCCL_NVB_DISABLE", "NCCL_PXN_DISABLE"}  # below: they need a machine of their own
    assert {rule.name for rule in rules("node")} == tested | here


def test_rules_speak_of_values_and_machines_that_the_program_knows() -> None:
    for subject, machine in (("node", NodeMachine(ib_h100())), ("job", LogMachines(jobs.job()))):
        for rule in rules(subject):
            assert rule.value in VALUES, rule
            assert all(hasattr(machine, condition.removeprefix("not ")) for condition in rule.conditions), rule


# --- where it is set ------------------------------------------------------------------------------------------


def test_one_value_in_several_places_is_one_finding() -> None:
    node = given_on(ib_h100(), "NCCL_IB_DISABLE=1")
    env = Fact({"NCCL_IB_DISABLE": "1"}, Origin("json/processes.json"))
    both = replace(node, processes=(Process(4711, (0,), nccl_env=env),))
    finding = only(CostlySetting().judge(both, ()))
    assert "(environment and 1 other place)" in finding.message
    assert finding.observed == "NCCL_IB_DISABLE=1 in environment, process 4711"


def test_the_environment_overrides_conf_files_and_the_users_file_the_systems() -> None:
    system = given_on(ib_h100(), "NCCL_IB_DISABLE=1", scope="etc/nccl.conf")
    assert only(CostlySetting().judge(system, ())).message.startswith("NCCL_IB_DISABLE=1 (etc/nccl.conf)")
    assert status(costs(system, "NCCL_IB_DISABLE=0", scope="home/a/.nccl.conf")) == "clean"
    assert status(costs(system, "NCCL_IB_DISABLE=0")) == "clean"


# --- NCCL_IB_HCA ----------------------------------------------------------------------------------------------


@examples("value", "lost")
def test_a_list_that_leaves_nics_out_says_which_and_what_they_carry(value: str, lost: int) -> None:
    finding = expect(
        costs(ib_h100(), f"NCCL_IB_HCA={value}"), confidence="MEDIUM", severity="WARNING" if lost < 8 else "ERROR"
    )
    assert len(finding.where.nics) == lost
    assert finding.cost.gbs_lost == 50.0 * lost


# --- numbers and levels ---------------------------------------------------------------------------------------


@examples("text", "value")
def test_numbers_are_read_as_nccl_reads_them(text: str, value: int | None) -> None:
    assert number(text) == value


@examples("text", "kind")
def test_levels_are_words_or_old_numbers(text: str, kind: PathType | None) -> None:
    assert level(text) is kind


@given(st.sampled_from([rule.name for rule in rules("node")] + ["NCCL_IB_HCA"]), st.text(max_size=40))
def test_no_value_makes_it_raise(name: str, value: str) -> None:
    for build in (ib_h100, nodes.l40s_box, network.efa_vm):
        outcome = costs(build(), f"{name}={value}")
        assert all(finding.message and finding.fix for finding in outcome.findings)


# --- ENV002: lines of nccl.conf that NCCL takes literally


def conf(*lines: str, path: str = "etc/nccl.conf") -> Node:
    conf_lines = (ConfLine(path, at + 1, text, Origin("settings.tree", at + 1, text)) for at, text in enumerate(lines))
    return Node("gpu-001", conf_lines=tuple(conf_lines), topics=frozenset({Topic.SETTINGS}))


def judge(node: Node) -> Any:
    return ConfLineNotRead().judge(node, ())


@examples("line", "what", "meant")
def test_what_nccl_takes_literally_is_told_with_what_was_meant(line: str, what: str, meant: str) -> None:
    finding = expect(judge(conf(line)), message="etc/nccl.conf line 1: *", severity="WARNING")
    assert what in finding.message
    assert finding.evidence[0].line == 1
    if meant:
        assert finding.expected == meant
        assert meant in finding.fix[0]


def test_a_line_that_is_longer_than_nccl_reads_is_told() -> None:
    assert "longer than" in only(judge(conf("NCCL_ALGO=" + "x" * 1024))).message


@examples("line")
def test_what_nccl_reads_as_meant_is_silent(line: str) -> None:
    assert status(judge(conf(line))) == "clean"


def test_a_second_value_for_a_name_is_not_in_force() -> None:
    finding = only(judge(conf("NCCL_DEBUG=INFO", "NCCL_DEBUG=WARN", "NCCL_DEBUG=INFO")))
    assert finding.message == "etc/nccl.conf line 2: NCCL_DEBUG is set further up already, and the first line counts"


def test_the_same_name_in_another_file_is_another_matter() -> None:
    one, other = conf("NCCL_DEBUG=INFO"), conf("NCCL_DEBUG=WARN", path="home/a/.nccl.conf")
    both = Node("gpu-001", conf_lines=one.conf_lines + other.conf_lines)
    assert status(judge(both)) == "clean"


@given(
    st.sampled_from(["", " ", "export ", "\t", "set "]),
    st.sampled_from(["NCCL_IB_HCA", "NCCL_DEBUG", "NCCL_TOPO_FILE"]),
    st.text(alphabet="=mlx5_0,^:# \t'\"~/", max_size=12),
    st.sampled_from(["", " ", "\r"]),
)
def test_a_line_written_as_advised_is_read_as_meant(before: str, name: str, value: str, after: str) -> None:
    wrong = misread(f"{before}{name}={value}{after}")
    if wrong is not None and wrong[1]:
        assert misread(wrong[1]) is None
        read = as_nccl_reads(wrong[1])
        assert read[0] == name


# --- ENV001 by the command of a measured run


def run(*, env: bool = True, machine: bool = True) -> Benchmark:
    benchmark = measured()
    given = {"NCCL_P2P_DISABLE": "1"} if env else {}
    return replace(benchmark, run=replace(benchmark.run, env=given), expected=benchmark.expected if machine else None)


def status_of(benchmark: Benchmark) -> Status:
    return CostlySettingOfRun().judge(benchmark).status


def test_what_settings_cost_is_known_only_on_a_known_machine() -> None:
    assert status_of(run()) is Status.CLEAN
    assert status_of(run(machine=False)) is Status.UNKNOWN
    assert status_of(run(env=False)) is Status.NOT_APPLICABLE
