"""Devices, troubles, rows of one owner, and roles of communicators, as a job is rebuilt."""

from collections.abc import Sequence
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evidence.nccl_log.line_by_line import extract_plain
from tests.tables import examples
from topodiag.evidence.nccl_log.fast.scan import extract
from topodiag.evidence.nccl_log.grammar.grammar import kind_of
from topodiag.evidence.nccl_log.rebuild.events import classify, few
from topodiag.evidence.nccl_log.rebuild.frame import by_owner, groups, once, whole_hosts
from topodiag.evidence.nccl_log.rebuild.process import process_of
from topodiag.evidence.nccl_log.rebuild.roles import RolesOfJobs, assign_roles, descriptions, role_of_name
from topodiag.evidence.nccl_log.tables.resolve import merge_facts
from topodiag.evidence.nccl_log.tables.resolve_rows import first_of_each, shapes_of
from topodiag.model.finding import Confidence
from topodiag.model.job import Communicator, FlightRecord, Operations, Process
from topodiag.model.job_wires import nics_of
from topodiag.model.layout import Layout, LayoutError, Role
from topodiag.model.layout_groups import groups_of

LIST = "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [2]mlx5_2:1/RoCE [RO]; OOB eno1:10.0.0.1<0>"
BRACES = (
    "NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [1]={[2] mlx5_2:1/IB, [3] mlx5_3:1/IB} [RO];"
    " OOB ib0:10.0.0.1<0>"
)
MADE = "NET/IB : Made virtual device [{}] name={} speed={} ndevs={}"
GDR = "NET/IB : GPU Direct RDMA {} for HCA {} '{}'"
PORT = "NET/IB: [{}] mlx5_{}:uverbs0:1/RoCE provider=Mlx5 speed=200000 context=0x7f00 pciPath=/sys/devices/a ar=0"


def process(*lines: str) -> Process:
    return process_of("n0", 1, [(kind_of(line) or "", line, None, 1) for line in lines], {})


CASES = (
    ("each port is a NIC, before 2.24 and where nothing is merged", [LIST], "0 mlx5_0, 1 mlx5_1, 2 mlx5_2"),
    (
        "two functions of an adapter, 2.24 and later",
        [LIST, MADE.format(0, "mlx5_0", 200000, 1), MADE.format(1, "mlx5_1", 200000, 1),
         MADE.format(3, "mlx5_0+mlx5_1", 400000, 2)],
        "2 mlx5_2, 3 mlx5_0+mlx5_1",
    ),
    (
        "rails and planes behind, 2.30 and later",
        [LIST, MADE.format(3, "mlx5_0+mlx5_1", 400000, 2) + " rail=-1 plane=16387"],
        "2 mlx5_2, 3 mlx5_0+mlx5_1",
    ),
    ("a NIC of one port has a number of its own from 2.24 to 2.26",
     [LIST, MADE.format(3, "mlx5_0+mlx5_1", 400000, 2), MADE.format(4, "mlx5_2", 200000, 1)],
     "3 mlx5_0+mlx5_1, 4 mlx5_2"),
    ("lists up to 2.23", [BRACES], "0 mlx5_0+mlx5_1, 1 mlx5_2+mlx5_3"),
    ("only lines of INIT, of which the second thread's come late",
     [LIST, GDR.format("Enabled", 0, "mlx5_0"), GDR.format("Enabled", 1, "mlx5_1"),
      GDR.format("Enabled", 3, "mlx5_0+mlx5_1"), GDR.format("Enabled", 1, "mlx5_1")],
     "2 mlx5_2, 3 mlx5_0+mlx5_1"),
    ("an excerpt without the list", [GDR.format("Enabled", 2, "mlx5_0+mlx5_1")], "2 mlx5_0+mlx5_1"),
)  # fmt: skip


@pytest.mark.parametrize(("lines", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_connections_number_the_virtual_nics_in_the_place_of_their_ports(lines: list[str], expected: str) -> None:
    nics = nics_of(process(*lines))
    assert ", ".join(f"{number} {nic.name}" for number, nic in sorted(nics.items())) == expected


def test_ports_stay_listed_and_carry_what_is_said_of_their_virtual_nic() -> None:
    rank = process(BRACES, GDR.format("Disabled", 1, "mlx5_2+mlx5_3"))
    assert [(hca.name, hca.gdr) for hca in rank.hcas] == [
        ("mlx5_0", None), ("mlx5_1", None), ("mlx5_2", False), ("mlx5_3", False),
    ]  # fmt: skip
    old = process(
        LIST, "NET/IB : GPU Direct RDMA Disabled for GPU 2[2] / HCA 1 'mlx5_1' (no module or not supported by GPU)"
    )
    assert [(hca.name, hca.gdr) for hca in old.hcas] == [("mlx5_0", None), ("mlx5_1", False), ("mlx5_2", None)]
    alone = process(GDR.format("Disabled", 2, "mlx5_0+mlx5_1"))
    assert [(hca.name, hca.gdr) for hca in alone.hcas] == [("mlx5_0", False), ("mlx5_1", False)]


@pytest.mark.parametrize(
    ("lists", "ports", "cut"),
    [([LIST], 3, False), ([BRACES], 4, False), ([LIST[:50]], 2, True), ([LIST[:50], LIST], 3, False), ([], 0, False)],
)
def test_a_list_without_its_end_may_lack_ports(lists: list[str], ports: int, cut: bool) -> None:
    rank = process(*lists)
    assert (len(rank.hcas), rank.hcas_cut) == (ports, cut)


def test_rails_and_planes_of_a_list_are_no_part_of_the_link_layer() -> None:
    rank = process(
        "NET/IB : Using [0]mlx5_0:1:0:1/RoCE [1]mlx5_1:1::2/IB [2]mlx5_2:1:3/RoCE [RO]; OOB eno1:10.0.0.1<0>"
    )
    assert [(hca.name, hca.port, hca.link_layer) for hca in rank.hcas] == [
        ("mlx5_0", 1, "RoCE"), ("mlx5_1", 1, "IB"), ("mlx5_2", 1, "RoCE"),
    ]  # fmt: skip


def test_a_virtual_nic_is_as_fast_as_its_ports_together() -> None:
    named = process(LIST, MADE.format(3, "mlx5_0+mlx5_1", 400000, 2))
    assert [(nic.speed_mbps, nic.link_layer) for nic in named.vnics] == [(400000, "RoCE")]
    lines = [PORT.format(at, at) for at in (0, 1)]
    assert nics_of(process(LIST, *lines, GDR.format("Enabled", 3, "mlx5_0+mlx5_1")))[3].speed_mbps == 400000
    assert nics_of(process(LIST, lines[0], GDR.format("Enabled", 3, "mlx5_0+mlx5_1")))[3].speed_mbps is None


def test_lines_of_virtual_nics_are_devices_and_no_messages() -> None:
    assert not process(LIST, MADE.format(3, "mlx5_0+mlx5_1", 400000, 2), "TOPO/NET : Made vNic 3").said("virtual nic")


# --- what kind of trouble a line speaks of, and what it names


@examples("text", "event")
def test_an_event_of_a_device_names_the_device_its_port_and_what_happened(text: str, event: str) -> None:
    kind, secondary, details = classify("WARN", text)
    assert (kind, secondary) == ("ib async", False)
    assert {"hca": "mlx5_3", "port": "1", "event": event}.items() <= dict(details).items()


@examples("text", "kind")
def test_a_warning_has_the_kind_of_its_cause_in_nccls_own_line(text: str, kind: str) -> None:
    assert classify("WARN", text)[0] == kind


def test_a_connect_that_failed_names_its_peer_in_all_spellings() -> None:
    for text in (
        "socketPollConnect: Connect to 10.0.0.4<56849> returned 113(No route to host) errno 115(In progress)",
        "socketStartConnect: Connect to 10.0.0.4<56849> failed : No route to host",
    ):
        kind, secondary, details = classify("WARN", text)
        assert (kind, secondary, dict(details)["peer"]) == ("connect", False, "10.0.0.4<56849>")
    assert classify("WARN", "socketStartConnect: exceeded timeouts (5)")[0] == "connect"


# --- of a log that tells of more events than any job has, the first of each shape are kept --------------------


class Lines:
    """Rows of events, each with a text."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def word(self, name: str, row: int) -> str:
        return "APP" if name == "level" else self.texts[row]


LINES = Lines(*(f"rank {rank} died" for rank in range(10)), "port down", *(f"retry {at}" for at in range(5)))


@examples("most", "kept")
def test_a_line_that_stands_once_is_kept_beside_those_that_repeat(most: int, kept: list[int]) -> None:
    assert few(LINES, range(16), most) == kept  # type: ignore[arg-type]


@given(st.lists(st.lists(st.sampled_from("abcdef")), max_size=4), st.integers(1, 12))
def test_what_shards_leave_out_changes_nothing_in_the_whole(shards: list[list[str]], most: int) -> None:
    whole = [[("WARN", f"{letter} {at}{number}") for at, letter in enumerate(own)] for number, own in enumerate(shards)]
    pairs = [pair for own in whole for pair in own]

    def kept(events: list[tuple[str, str]], more: int = 0) -> list[tuple[str, str]]:
        return [events[at] for at in first_of_each(shapes_of(events), most, more)] if len(events) > most else events

    left = [pair for own in whole for pair in kept(own, 1)]

    assert kept(left) == kept(pairs)


@pytest.mark.parametrize("cuts", [[], [40], [7, 40, 41, 90]])
def test_where_shards_join_what_is_left_out_is_the_same(cuts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts of most rows are let go before the words of all shards are joined."""
    monkeypatch.setattr("topodiag.evidence.nccl_log.tables.resolve_rows.MOST_EVENTS", 10)
    whole = [f"h:1:1 [0] a.cc:1 NCCL WARN {'port down' if at == 50 else f'retry {at}'}\n".encode() for at in range(100)]
    facts, base = [], 0
    for low, high in pairwise([0, *cuts, len(whole)]):
        data = b"".join(whole[low:high])
        facts.append(extract(data, 0, base))
        base += len(data)
    event = merge_facts([merge_facts(facts[:2]), *facts[2:]])["event"]
    texts = event.values("text")
    assert texts == [*(f"retry {at}" for at in range(10)), "port down"]
    assert len(event.words["text"]) == len(texts)


# --- rows taken together by whom they are of, as the reconstruction does it with whole tables


OWNERS = st.lists(st.integers(-1, 4), max_size=30)


def column(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


@given(OWNERS, st.randoms(use_true_random=False))
def test_rows_of_one_owner_stay_in_the_order_in_which_they_came(owners: list[int], draw: object) -> None:
    order = list(range(len(owners)))
    draw.shuffle(order)  # type: ignore[attr-defined]
    rows, ndarray, starts = by_owner(column(order), column(owners))
    parts = np.split(rows, starts[1:]) if starts.size else []
    expected = {owner: [row for row in order if owners[row] == owner] for owner in sorted(set(owners) - {-1})}
    assert dict(zip(ndarray.tolist(), [part.tolist() for part in parts], strict=True)) == expected


@given(OWNERS)
def test_groups_are_the_rows_of_each_key_that_is_not_negative(keys: list[int]) -> None:
    table = {key: rows.tolist() for key, rows in groups(column(keys))}
    assert table == {key: [i for i, each in enumerate(keys) if each == key] for key in sorted(set(keys) - {-1})}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-(2**62), 2**62), st.integers(1, 9)), max_size=30))
def test_what_is_said_again_counts_for_its_first_row(said: list[tuple[int, int, int]]) -> None:
    first, second, counts = (column([row[i] for row in said]) for i in range(3))
    rows, sums = once(np.arange(len(said)), (first, second), counts)
    expected: dict[tuple[int, int], list[int]] = {}
    for i, (a, b, count) in enumerate(said):
        expected.setdefault((a, b), [i, 0])[1] += count
    assert [list(pair) for pair in zip(rows.tolist(), sums, strict=True)] == list(expected.values())


# --- A torn record's rest in front of a host makes no host of its own -----------------------------------------


def lines(host: str, count: int) -> bytes:
    return b"".join(f"{host}:1:1 [0] NCCL INFO Using network N{index}\n".encode() for index in range(count))


@examples("whole", "torn", "hosts")
def test_a_torn_record_makes_no_host_of_its_own(whole: list[tuple[str, int]], torn: str, hosts: list[str]) -> None:
    data = b"".join(lines(host, count) for host, count in whole)
    if torn:
        data += f"{torn} [0] NCCL INFO Using network IB\n".encode()
    assert sorted(set(whole_hosts(extract_plain(data, 0, 0))["threads"].values("host"))) == hosts


def test_one_host_is_left_alone() -> None:
    facts = extract_plain(lines("gpu-a", 3), 0, 0)
    assert whole_hosts(facts) is facts


# --- roles of communicators: by name, by the declared layout, or guessed and marked as such


LOW, HIGH = Confidence.LOW, Confidence.HIGH


def communicators(*members: list[int], world: int, operations: Sequence[str] = ()) -> list[Communicator]:
    """The world, and below it one communicator per list, split together when their sizes agree."""
    groups = [Communicator(0, world, np.arange(world, dtype=np.int64))]
    for ranks, operation in zip_longest(members, operations, fillvalue=""):
        done = {0: Operations(bytes_by_collective={operation: 8})} if operation else {}
        own = np.array(ranks, np.int64)
        groups.append(Communicator(len(groups), len(ranks), own, parent=0, split=len(ranks), operations=done))
    return groups


def hosts(world: int, per_host: int = 8) -> dict[int, str]:
    return {rank: f"node{rank // per_host}" for rank in range(world)}


def several(world: int, **group: Any) -> list[list[int]]:
    """All blocks of a size at a stride."""
    size, stride = group["size"], group["stride"]
    starts = [base for base in range(world) if base % (stride * size) < stride]
    return [[base + stride * step for step in range(size)] for base in starts]


def roles(groups: list[Communicator], world: int, layout: Layout | None = None) -> list[tuple[Role, Confidence]]:
    return [(role.role, role.role_sure) for role in assign_roles(groups, world, hosts(world), layout)]


@examples("world", "groups", "layout", "roles", "why")
def test_a_group_has_its_role(
    world: int, groups: list[Any], layout: Layout | None, roles: list[tuple[Role, Confidence, int]], why: str | None
) -> None:
    members: list[list[int]] = []
    operations: list[str] = []
    for group in groups:
        members += [group] if isinstance(group, list) else several(world, **group)
        operations += [group.get("operation", "") if isinstance(group, dict) else ""] * (len(members) - len(operations))
    own = communicators(*members, world=world, operations=operations)
    wanted = [(role, sure) for role, sure, count in roles for _ in range(count)]
    found = assign_roles(own, world, hosts(world), layout)
    assert [(role.role, role.role_sure) for role in found] == [(Role.WORLD, HIGH), *wanted]
    assert (why or "") in found[1].role_why


@examples("name", "role")
def test_a_name_says_what_a_group_is_for(name: str, role: Role | None) -> None:
    assert role_of_name(name) is role


def test_a_name_goes_before_sizes_and_layout() -> None:
    groups = communicators([0, 1], [2, 3], world=4)
    groups[1] = Communicator(1, 2, np.array([0, 1]), name="PP", parent=0)
    assert roles(groups, 4, Layout(tp=2))[1] == (Role.PP, HIGH)


def test_a_description_of_torch_is_a_name() -> None:
    record = FlightRecord(0, (), {"0": (0, 1, 2, 3), "7": (1, 0)}, {"0": "default_pg", "7": "PIPELINE_PARALLEL"})
    groups = assign_roles(communicators([0, 1], [2, 3], world=4), 4, hosts(4), described=descriptions([record]))
    assert groups[1].role is Role.PP
    assert "PIPELINE_PARALLEL" in groups[1].role_why


def test_the_order_of_the_layout_is_that_of_megatron() -> None:
    groups = groups_of(Layout(tp=2, cp=2, pp=2, ep=2), 16)
    assert groups["tp"][0].tolist() == [0, 1]
    assert groups["cp"][0].tolist() == [0, 2]
    assert groups["dp"][0].tolist() == [0, 4]
    assert groups["dp-cp"][0].tolist() == [0, 2, 4, 6]
    assert groups["pp"][0].tolist() == [0, 8]
    assert groups["ep"][0].tolist() == [0, 2]
    assert groups["expert-dp"][0].tolist() == [0, 4]


@examples("layout")
def test_a_layout_that_does_not_fit_is_refused(layout: Layout) -> None:
    with pytest.raises(LayoutError) as refusal:
        assign_roles(communicators([0, 1], world=16), 16, hosts(16), layout)
    assert "\n" not in str(refusal.value)


def test_a_layout_that_fits_one_job_of_several_leaves_the_others_a_note() -> None:
    several = RolesOfJobs(Layout(tp=3), {})
    small, why = several.assign(communicators([0, 1], world=4), 4, hosts(4), complete=True)
    assert "ranks; the job has 4" in why
    assert {communicator.role for communicator in small[1:]} == {
        role.role for role in assign_roles(small, 4, hosts(4))[1:]
    }
    fitting, why = several.assign(communicators([0, 1, 2], world=6), 6, hosts(6), complete=True)
    assert (fitting[1].role, why) == (Role.TP, "")
    several.check()


def test_a_layout_that_fits_no_job_is_refused_for_the_largest() -> None:
    several = RolesOfJobs(Layout(tp=3), {})
    for size in (4, 8, 2):
        several.assign(communicators([0, 1], world=size), size, hosts(size), complete=True)
    with pytest.raises(LayoutError, match="the job has 8"):
        several.check()


def test_a_world_size_that_was_only_counted_refutes_no_layout() -> None:
    several = RolesOfJobs(Layout(tp=3), {})
    several.assign(communicators([0, 1], world=4), 4, hosts(4), complete=False)
    several.check()


def test_a_layout_is_no_complaint_where_the_size_of_the_job_is_unknown() -> None:
    assert roles([Communicator(0, 2, np.array([0, 1]))], -1, Layout(tp=8)) == [(Role.OTHER, LOW)]


@given(st.lists(st.lists(st.integers(-1, 15), min_size=1, max_size=16), max_size=8), st.integers(-1, 20))
def test_any_groups_get_a_role_and_a_reason(members: list[list[int]], world: int) -> None:
    groups = [Communicator(i, len(ranks), np.array(ranks, np.int64)) for i, ranks in enumerate(members)]
    for role in assign_roles(groups, world, {}):
        assert role.role_why
