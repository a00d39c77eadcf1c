"""What an nccl.conf should say: from findings, from the lines that are there, from NICs and interfaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scanned import node_at
from tests.tables import examples
from topodiag.checks.env.conf_advice import advise
from topodiag.checks.env.conf_file import misread
from topodiag.checks.registry import Subject
from topodiag.checks.run import fold, run
from topodiag.emit.nccl_conf import UnwritableError, to_text
from topodiag.model.devices import NetDev, Nic, NicPort, NicRole
from topodiag.model.finding import Finding, Severity
from topodiag.model.nccl_conf import ConfAdvice, ConfEntry
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Origin
from topodiag.model.system import ConfLine, Setting
from topodiag.model.topics import Topic

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
    return replace(node, conf_lines=conf, settings=(*kept, *settings), told=node.told | {Topic.SETTINGS})


def with_env(node: Node, **env: str) -> Node:
    settings = tuple(Setting(name, value, "environment", HERE) for name, value in env.items())
    return replace(node, settings=(*node.settings, *settings), told=node.told | {Topic.SETTINGS})


def advice(*nodes: Node) -> ConfAdvice:
    return advise(nodes, fold(run(Subject.NODE, nodes)))


def values(conf_advice: ConfAdvice) -> dict[str, str | None]:
    return {entry.name: entry.value for entry in conf_advice.entries}


def why(conf_advice: ConfAdvice, name: str) -> str:
    return " ".join(sentence for entry in conf_advice.entries if entry.name == name for sentence in entry.why)


# --- NICs and interfaces ------------------------------------------------------------------------------------


def test_compute_nics_are_named_whole_with_their_ports_where_nccl_would_take_storage_nics_too(dgx: Node) -> None:
    conf_advice = advice(dgx)
    ports = ",".join(f"mlx5_{at}:1" for at in (0, 3, 4, 5, 6, 9, 10, 11))
    assert values(conf_advice) == {"NCCL_IB_HCA": f"={ports}"}
    assert "mlx5_1, mlx5_7 are storage" in why(conf_advice, "NCCL_IB_HCA")


def test_where_all_nics_that_are_up_are_compute_nics_nothing_follows(dgx: Node) -> None:
    only = replace(dgx, nics=tuple(nic for nic in dgx.nics if nic.role is not NicRole.STORAGE))
    conf_advice = advice(only)
    assert not conf_advice.follows
    assert conf_advice.entries == ()


def test_a_nic_whose_role_is_unknown_decides_nothing(dgx: Node) -> None:
    nic = replace(dgx.nics[1], name="mlx5_20", rdma_name="mlx5_20", role=NicRole.UNKNOWN)
    assert "NCCL_IB_HCA" not in values(advice(replace(dgx, nics=(*dgx.nics, nic))))


def test_a_choice_of_nics_with_which_nothing_is_wrong_stays(dgx: Node) -> None:
    conf = with_conf(dgx, "NCCL_IB_HCA==mlx5_0:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_9:1,mlx5_10:1,mlx5_11:1")
    assert not advice(conf).follows


def test_a_choice_that_leaves_nics_out_is_replaced(dgx: Node) -> None:
    conf_advice = advice(with_conf(dgx, "NCCL_IB_HCA=mlx5_3"))
    entries = [entry for entry in conf_advice.entries if entry.name == "NCCL_IB_HCA"]
    assert [entry.value is None for entry in entries] == [True, False]
    assert entries[0].why[0].startswith("ENV001: NCCL_IB_HCA=mlx5_3 (/etc/nccl.conf) uses 1 of 8 compute NICs")
    assert (entries[1].value or "").startswith("=mlx5_0:1,")


def test_a_compute_nic_that_is_down_is_named_for_when_it_is_up_again(dgx: Node) -> None:
    down = replace(dgx.nics[0], ports=(NicPort(1, state=Fact("DOWN")),))
    assert "=mlx5_0:1," in (values(advice(replace(dgx, nics=(down, *dgx.nics[1:]))))["NCCL_IB_HCA"] or "")


def roce(node: Node, *extra: str, default: str = "bond0") -> Node:
    """The node with Ethernet rails and some more interfaces instead of IPoIB."""
    compute = [nic for nic in node.nics if nic.role is NicRole.COMPUTE]
    names = [default, *(f"rail{at}" for at in range(len(compute))), *extra]
    netdevs = tuple(
        NetDev(name, operstate=Fact("up"), kind=Fact("ether"), default_route=Fact(name == default)) for name in names
    )
    nics = tuple(replace(nic, netdevs=(f"rail{at}",)) for at, nic in enumerate(compute))
    return replace(node, nics=nics, netdevs=netdevs)


def test_ranks_meet_over_the_default_route_where_nccl_might_take_a_rail(dgx: Node) -> None:
    conf_advice = advice(roce(dgx))
    assert values(conf_advice) == {"NCCL_SOCKET_IFNAME": "=bond0"}
    assert "perhaps one of rail0, rail1, rail2, rail3 and 4 more" in why(conf_advice, "NCCL_SOCKET_IFNAME")


@pytest.mark.parametrize("name", ["br-0123456789ab", "cali12345", "flannel.1", "cni0"])
def test_so_they_do_where_it_might_take_the_network_of_containers(dgx: Node, name: str) -> None:
    bare = roce(replace(dgx, nics=()), name)
    assert values(advice(bare)) == {"NCCL_SOCKET_IFNAME": "=bond0"}


def test_what_nccl_passes_over_by_itself_needs_no_setting(dgx: Node) -> None:
    assert not advice(roce(replace(dgx, nics=()), "docker0", "lo")).follows


def test_ipoib_which_nccl_prefers_is_left_alone(dgx: Node) -> None:
    assert "NCCL_SOCKET_IFNAME" not in values(advice(dgx))


def test_an_interface_that_was_named_stays(dgx: Node) -> None:
    assert not advice(with_env(roce(dgx), NCCL_SOCKET_IFNAME="rail0")).follows


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


@pytest.fixture
def plain(dgx: Node) -> Node:
    """Nothing follows from its NICs."""
    return replace(dgx, nics=tuple(nic for nic in dgx.nics if nic.role is not NicRole.STORAGE))


def test_a_harmful_line_is_taken_out_with_its_finding(plain: Node) -> None:
    conf_advice = advice(with_conf(plain, "NCCL_P2P_DISABLE=1", "NCCL_IB_TIMEOUT=22"))
    assert values(conf_advice) == {"NCCL_P2P_DISABLE": None, "NCCL_IB_TIMEOUT": "22"}
    assert why(conf_advice, "NCCL_P2P_DISABLE").startswith("ENV001: NCCL_P2P_DISABLE=1 (/etc/nccl.conf)")
    assert [entry.kept for entry in conf_advice.entries] == [False, True]
    assert conf_advice.elsewhere == ()


def test_what_the_environment_sets_no_file_takes_back(plain: Node) -> None:
    conf_advice = advice(with_env(plain, NCCL_P2P_DISABLE="1"))
    assert conf_advice.entries == ()
    assert not conf_advice.follows
    assert (
        "unset NCCL_P2P_DISABLE where it is given (environment): no conf file takes it back" in conf_advice.elsewhere[0]
    )


@examples("line", "name", "value")
def test_a_line_that_nccl_misreads_is_corrected_or_taken_out(
    plain: Node, line: str, name: str, value: str | None
) -> None:
    conf_advice = advice(with_conf(plain, line))
    assert values(conf_advice) == {name: value}
    assert why(conf_advice, name).startswith("ENV002: /etc/nccl.conf line 1: ")
    assert conf_advice.follows


def test_a_misread_line_that_is_harmful_once_it_is_read_is_not_corrected(plain: Node) -> None:
    node = with_conf(plain, "NCCL_P2P_DISABLE=1", "NCCL_P2P_DISABLE = 1")
    assert [entry.value for entry in advice(node).entries] == [None, None]


def test_of_two_lines_for_one_name_the_first_counts(plain: Node) -> None:
    conf_advice = advice(with_conf(plain, "NCCL_IB_TIMEOUT=22", "NCCL_IB_TIMEOUT=18"))
    assert [(entry.value, entry.was) for entry in conf_advice.entries][1] == (None, "NCCL_IB_TIMEOUT=18")


def test_a_misspelt_name_is_written_as_it_was_meant(plain: Node) -> None:
    conf_advice = advice(with_conf(plain, "NCCL_IB_TIMEOUTS=22"))
    assert values(conf_advice) == {"NCCL_IB_TIMEOUTS": None, "NCCL_IB_TIMEOUT": "22"}


def test_a_file_in_order_stays_as_it_is(plain: Node) -> None:
    conf_advice = advice(with_conf(plain, "# site", "", "NCCL_IB_TIMEOUT=22"))
    assert values(conf_advice) == {"NCCL_IB_TIMEOUT": "22"}
    assert not conf_advice.follows


def finding(severity: Severity, *settings: tuple[str, str | None]) -> Finding:
    return Finding("JOB003", severity, "differs", "", "", (), settings=settings)


def test_of_a_job_what_differs_between_ranks_is_told_to_be_taken_out() -> None:
    conf_advice = advise((), [finding(Severity.ERROR, ("NCCL_PROTO", None))], "job 7")
    assert conf_advice.entries == ()
    assert conf_advice.elsewhere == ("unset NCCL_PROTO where it is given: no conf file takes it back. JOB003: differs",)


def test_what_a_log_shows_may_come_from_a_conf_file_and_is_taken_out_of_it() -> None:
    conf_advice = advise((), [finding(Severity.ERROR, ("NCCL_PROTO", None))], "job 7", {"NCCL_PROTO": "LL"})
    assert [(entry.value, entry.was) for entry in conf_advice.entries] == [(None, "NCCL_PROTO=LL")]
    assert conf_advice.follows
    assert conf_advice.elsewhere == (
        "unset NCCL_PROTO in the environment too, if it is given there: it wins over any file",
    )


def test_of_a_job_an_interface_that_leads_nowhere_is_passed_over() -> None:
    conf_advice = advise((), [finding(Severity.ERROR, ("NCCL_SOCKET_IFNAME", "^docker,lo,virbr,br-1"))], "job 7")
    assert values(conf_advice) == {"NCCL_SOCKET_IFNAME": "^docker,lo,virbr,br-1"}
    assert conf_advice.follows


def test_what_the_environment_sets_already_wins_over_the_file_and_is_told(plain: Node) -> None:
    wrong = finding(Severity.ERROR, ("NCCL_SOCKET_IFNAME", "^docker,lo,virbr,br-1"))
    text = "NCCL_SOCKET_IFNAME is set in the environment already, which wins over any file: change it there"
    assert advise((), [wrong], "job 7", {"NCCL_SOCKET_IFNAME": "br-1"}).elsewhere == (text,)
    assert advise([with_env(plain, NCCL_SOCKET_IFNAME="br-1")], [wrong]).elsewhere == (text,)
    assert advise([with_conf(plain, "NCCL_SOCKET_IFNAME=br-1")], [wrong]).elsewhere == ()


def test_information_changes_nothing() -> None:
    assert advise((), [finding(Severity.INFO, ("NCCL_ALGO", None))], "job 7").elsewhere == ()


# --- written down -------------------------------------------------------------------------------------------


def settings_of(text: str) -> dict[str, str]:
    """The file as NCCL's setEnvFile reads it."""
    table: dict[str, str] = {}
    for line in text.split("\n"):
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            table.setdefault(name, value)
    return table


def test_the_file_is_read_by_nccl_as_it_was_decided(plain: Node, dgx: Node) -> None:
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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NCCL DEBUG", "1"),
        ("", "1"),
        ("A=B", "1"),
        ("A", " 1"),
        ("A", "1 "),
        ("A", '"1"'),
        ("A", "1\n2"),
        ("A", "x" * 1024),
    ],
)
def test_what_nccl_would_read_otherwise_is_not_written(name: str, value: str) -> None:
    with pytest.raises(UnwritableError):
        to_text([ConfEntry(name, value, ())])


def test_nics_are_named_as_far_as_nccl_s_list_goes(dgx: Node) -> None:
    nic = next(nic for nic in dgx.nics if nic.role is NicRole.COMPUTE)
    many: list[Nic] = [replace(nic, name=f"mlx5_{at}", rdma_name=f"mlx5_{at}") for at in range(40)]
    storage = [nic for nic in dgx.nics if nic.role is NicRole.STORAGE]
    assert "NCCL_IB_HCA" not in values(advice(replace(dgx, nics=(*many, *storage))))
