"""What an nccl.conf should say: from findings, from the lines that are there, from NICs and interfaces."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scanned import node_at
from tests.tables import examples, parts
from topodiag.checks.env.conf_file import advise, misread
from topodiag.checks.registry import Subject
from topodiag.checks.run import fold, run
from topodiag.emit.nccl_conf import UnwritableError, to_text
from topodiag.model.devices import NetDev, Nic, NicPort, NicRole
from topodiag.model.finding import Finding, Severity
from topodiag.model.nccl_conf import ConfAdvice, ConfEntry
from topodiag.model.node import ConfLine, Node, Setting
from topodiag.model.provenance import Fact, Origin, Topic

HERE = Origin("test")
SYSTEM = "/etc/nccl.conf"


@pytest.fixture(scope="module")
def dgx() -> Node:
    """Eight compute NICs, two storage NICs that are up, IPoIB, eno3 with the default route."""
    return node_at("fixture:dgx-h100-healthy")


def with_conf(node: Node, *lines: str, path: str = SYSTEM) -> Node:
    """The node with this conf file, as its reader would have read it."""
    conf = tuple(ConfLine(path, number, text, HERE) for number, text in enumerate(lines, start=1))
    pairs = [text.partition("=") for text in lines if "=" in text and not text.startswith("#")]
    first = {name: value for name, _, value in reversed(pairs)}
    settings = tuple(Setting(name, value, path, HERE) for name, value in first.items())
    kept = tuple(setting for setting in node.settings if setting.name not in first)
    return replace(node, conf_lines=conf, settings=(*kept, *settings), topics=node.topics | {Topic.SETTINGS})


def with_env(node: Node, **env: str) -> Node:
    settings = tuple(Setting(name, value, "environment", HERE) for name, value in env.items())
    return replace(node, settings=(*node.settings, *settings), topics=node.topics | {Topic.SETTINGS})


def advice(*nodes: Node) -> ConfAdvice:
    return advise(nodes, fold(run(Subject.NODE, nodes)))


def values(conf_advice: ConfAdvice) -> dict[str, str | None]:
    return {entry.name: entry.value for entry in conf_advice.entries}


def why(conf_advice: ConfAdvice, name: str) -> str:
    return " ".join(sentence for entry in conf_advice.entries if entry.name == name for sentence in entry.why)


# --- NICs and interfaces ------------------------------------------------------------------------------------


def plain(node: Node) -> Node:
    """Nothing follows from its NICs."""
    return replace(node, nics=tuple(nic for nic in node.nics if nic.role is not NicRole.STORAGE))


def down(node: Node) -> Node:
    """A compute NIC is down."""
    return replace(node, nics=(replace(node.nics[0], ports=(NicPort(1, state=Fact("DOWN")),)), *node.nics[1:]))


def unknown_nic(node: Node) -> Node:
    nic = replace(node.nics[1], name="mlx5_20", rdma_name="mlx5_20", role=NicRole.UNKNOWN)
    return replace(node, nics=(*node.nics, nic))


def many_nics(node: Node) -> Node:
    """More compute NICs than NCCL's list holds."""
    nic = next(nic for nic in node.nics if nic.role is NicRole.COMPUTE)
    many: list[Nic] = [replace(nic, name=f"mlx5_{at}", rdma_name=f"mlx5_{at}") for at in range(40)]
    return replace(node, nics=(*many, *(nic for nic in node.nics if nic.role is NicRole.STORAGE)))


def roce(node: Node, *extra: str, default: str = "bond0") -> Node:
    """The node with Ethernet rails and some more interfaces instead of IPoIB."""
    compute = [nic for nic in node.nics if nic.role is NicRole.COMPUTE]
    names = [default, *(f"rail{at}" for at in range(len(compute))), *extra]
    netdevs = tuple(
        NetDev(name, operstate=Fact("up"), kind=Fact("ether"), default_route=Fact(name == default)) for name in names
    )
    nics = tuple(replace(nic, netdevs=(f"rail{at}",)) for at, nic in enumerate(compute))
    return replace(node, nics=nics, netdevs=netdevs)


def without_nics(node: Node, *extra: str) -> Node:
    return roce(replace(node, nics=()), *extra)


NODES: dict[str, Callable[..., Node]] = {
    "dgx": lambda node: node, "plain": plain, "down": down, "unknown_nic": unknown_nic, "many_nics": many_nics,
    "roce": roce, "without_nics": without_nics,
}  # fmt: skip


@examples("node", "conf", "env", "wanted")
def test_what_a_conf_file_should_say(
    dgx: Node, node: list[str], conf: list[str] | None, env: dict[str, str] | None, wanted: dict[str, Any]
) -> None:
    """By `values` of all entries, whether anything `follows`, what is to be done `elsewhere`, which entries are `kept`,
    and the beginning or a part of what is said of a name, the reason `why`."""
    made = NODES[node[0]](dgx, *node[1:])
    made = with_env(with_conf(made, *conf) if conf is not None else made, **env or {})
    conf_advice = advice(made)
    shown = {
        "values": {name: "null" if value is None else value for name, value in values(conf_advice).items()},
        "follows": conf_advice.follows,
        "elsewhere": list(conf_advice.elsewhere),
        "kept": [entry.kept for entry in conf_advice.entries],
        "why": {name: text for name, text in wanted.get("why", {}).items() if text in why(conf_advice, name)},
    }
    assert {name: shown[name] for name in wanted} == wanted


def test_a_choice_that_leaves_nics_out_is_replaced(dgx: Node) -> None:
    conf_advice = advice(with_conf(dgx, "NCCL_IB_HCA=mlx5_3"))
    entries = [entry for entry in conf_advice.entries if entry.name == "NCCL_IB_HCA"]
    assert [entry.value is None for entry in entries] == [True, False]
    assert entries[0].why[0].startswith("ENV001: NCCL_IB_HCA=mlx5_3 (/etc/nccl.conf) uses 1 of 8 compute NICs")
    assert (entries[1].value or "").startswith("=mlx5_0:1,")


def test_what_the_environment_sets_no_file_takes_back(dgx: Node) -> None:
    conf_advice = advice(with_env(plain(dgx), NCCL_P2P_DISABLE="1"))
    assert (conf_advice.entries, conf_advice.follows) == ((), False)
    unset = "unset NCCL_P2P_DISABLE where it is given (environment): no conf file takes it back"
    assert unset in conf_advice.elsewhere[0]


def test_nodes_that_ask_for_different_values_get_none_and_are_told(dgx: Node) -> None:
    conf_advice = advice(roce(dgx), replace(roce(dgx, default="eno3"), host="other"))
    assert values(conf_advice) == {}
    assert conf_advice.elsewhere == (
        "NCCL_SOCKET_IFNAME is not the same on all nodes (=bond0 and =eno3): make a file for each kind of node",
    )


def test_what_one_node_needs_and_the_others_can_bear_is_for_all_of_them(dgx: Node) -> None:
    """On one node the storage NICs are up, on another they are down: the same list serves both."""
    quiet = replace(dgx, host="other", nics=tuple(nic for nic in dgx.nics if nic.role is not NicRole.STORAGE))
    assert values(advice(dgx, quiet)) == values(advice(quiet, dgx)) == values(advice(dgx))
    assert not advice(quiet, quiet).follows


# --- lines that are there, and findings ---------------------------------------------------------------------


@examples("line", "name", "value")
def test_a_line_that_nccl_misreads_is_corrected_or_taken_out(
    dgx: Node, line: str, name: str, value: str | None
) -> None:
    conf_advice = advice(with_conf(plain(dgx), line))
    assert values(conf_advice) == {name: value}
    assert why(conf_advice, name).startswith("ENV002: /etc/nccl.conf line 1: ")
    assert conf_advice.follows


def test_a_misread_line_that_is_harmful_once_it_is_read_is_not_corrected(dgx: Node) -> None:
    node = with_conf(plain(dgx), "NCCL_P2P_DISABLE=1", "NCCL_P2P_DISABLE = 1")
    assert [entry.value for entry in advice(node).entries] == [None, None]


def test_of_two_lines_for_one_name_the_first_counts(dgx: Node) -> None:
    conf_advice = advice(with_conf(plain(dgx), "NCCL_IB_TIMEOUT=22", "NCCL_IB_TIMEOUT=18"))
    assert [(entry.value, entry.was) for entry in conf_advice.entries][1] == (None, "NCCL_IB_TIMEOUT=18")


def finding(severity: Severity, *settings: tuple[str, str | None]) -> Finding:
    return Finding("JOB003", severity, "differs", "", "", (), settings=settings)


@examples("severity", "setting", "log", "entries", "elsewhere")
def test_what_a_finding_on_a_job_says_of_a_conf_file(
    *,
    severity: Severity,
    setting: list[str],
    log: dict[str, str] | None,
    entries: list[Any],
    elsewhere: list[str] | None,
) -> None:
    """A finding names a setting with the value that it should have, or none; the log shows some; what the entries of
    the file are, and what is to be done elsewhere."""
    name, *value = setting
    conf_advice = advise((), [finding(severity, (name, value[0] if value else None))], "job 7", log or {})
    assert [parts(entry, own) for entry, own in zip(conf_advice.entries, entries, strict=True)] == entries
    assert conf_advice.follows is bool(entries)
    assert elsewhere is None or list(conf_advice.elsewhere) == elsewhere


def test_what_the_environment_sets_already_wins_over_the_file_and_is_told(dgx: Node) -> None:
    wrong = finding(Severity.ERROR, ("NCCL_SOCKET_IFNAME", "^docker,lo,virbr,br-1"))
    text = "NCCL_SOCKET_IFNAME is set in the environment already, which wins over any file: change it there"
    node = plain(dgx)
    assert advise((), [wrong], "job 7", {"NCCL_SOCKET_IFNAME": "br-1"}).elsewhere == (text,)
    assert advise([with_env(node, NCCL_SOCKET_IFNAME="br-1")], [wrong]).elsewhere == (text,)
    assert advise([with_conf(node, "NCCL_SOCKET_IFNAME=br-1")], [wrong]).elsewhere == ()


# --- written down -------------------------------------------------------------------------------------------


def settings_of(text: str) -> dict[str, str]:
    """The file as NCCL's setEnvFile reads it."""
    table: dict[str, str] = {}
    for line in text.split("\n"):
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            table.setdefault(name, value)
    return table


def test_the_file_is_read_by_nccl_as_it_was_decided(dgx: Node) -> None:
    node = with_conf(dgx, "NCCL_P2P_DISABLE=1", "NCCL_IB_TIMEOUT = 22", "NCCL_DEBUG=INFO")
    conf_advice = advice(node)
    text = to_text(conf_advice.entries, conf_advice.elsewhere, "dgx")
    assert settings_of(text) == {name: value for name, value in values(conf_advice).items() if value is not None}
    assert all(misread(line) is None for line in text.splitlines())
    assert "#NCCL_P2P_DISABLE=1\n" in text


TEXT = st.text(max_size=40)
NAMES = st.from_regex(r"NCCL_[A-Z]{1,8}", fullmatch=True) | TEXT
VALUES = st.from_regex(r"[=^]?[a-z0-9_:,]{0,20}", fullmatch=True) | TEXT


@given(
    st.lists(st.tuples(NAMES, st.none() | VALUES, st.lists(TEXT, max_size=2), TEXT), max_size=5),
    st.lists(TEXT, max_size=2),
)
def test_any_entry_is_written_so_that_nccl_reads_it_or_refused(
    rows: Sequence[tuple[str, str | None, list[str], str]], elsewhere: list[str]
) -> None:
    entries = [ConfEntry(name, value, tuple(texts), was) for name, value, texts, was in rows]
    try:
        text = to_text(entries, elsewhere)
    except UnwritableError:
        return
    wanted: dict[str, str] = {}
    for entry in entries:
        if entry.value is not None:
            wanted.setdefault(entry.name, entry.value)
    assert settings_of(text) == wanted


@examples("name", "value")
def test_what_nccl_would_read_otherwise_is_not_written(name: str, value: str) -> None:
    with pytest.raises(UnwritableError):
        to_text([ConfEntry(name, value, ())])
    with pytest.raises(UnwritableError):
        to_text([ConfEntry("A", "x" * 1024, ())])
