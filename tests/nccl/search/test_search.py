"""NCCL's graph search on small machines made by hand: one rule each, what it does to the channels that are found."""

from dataclasses import asdict
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import searches
from tests.nccl.plain_search import plain_attempt
from tests.nccl.small_machines import machines
from tests.nccl.small_trees import GEN5, built, cpu, gpu, grown, host, nic, nvlink, pci, to_gpu
from tests.scanned import node_at
from tests.tables import examples
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import MAX_CHANNELS, path_types
from topodiag.nccl.graph.attach import HostTree
from topodiag.nccl.graph.domains import build_system
from topodiag.nccl.graph.graph import BALANCED_TREE, NVLS, RING, TREE, RejectedError, SearchGraph, System
from topodiag.nccl.prediction import PredictedGraph
from topodiag.nccl.search import search
from topodiag.nccl.search.attempt import attempt
from topodiag.nccl.search.candidates import Guide
from topodiag.nccl.search.ceiling import Ceiling
from topodiag.nccl.search.search import search_graphs
from topodiag.nccl.search.searched import describe
from topodiag.nccl.search.trial import ladder
from topodiag.nccl.settings import read_settings
from topodiag.nccl.topo.detect import tree_of
from topodiag.nccl.topo.numbered import numbered

MINORS = range(18, 32)
RING_ID, TREE_ID, CHAIN_ID, NVLS_ID, DIRECT_ID = 0, 1, 2, 3, 4


def found(
    tree: Element, minor: int = 28, nodes: int = 1, collnet: bool = False, **env: str
) -> dict[int, PredictedGraph]:
    """The graphs of rank 0 by id, with GPUs as g0, g1, ... and NETs as n0, n1, ..., in the order of the file."""
    system = built(tree, minor=minor, nodes=nodes, **env)
    graphs = search_graphs(system, read_settings(env, minor), collnet=collnet)
    return {graph.id: describe(system, graph) for graph in graphs}


def orders(graph: PredictedGraph) -> list[str]:
    """Channels with short names: `n0 g0 g1 n0`, GPUs by bus number - 10, NETs by their number."""
    return [" ".join(_short(label) for label in order) for order in graph.orders]


def _short(label: str) -> str:
    kind, _, rest = label.partition("/0-")
    return f"n{int(rest, 16)}" if kind == "NET" else f"g{int(rest[:2], 16) - 0x10}"


def switched(count: int, nics: int = 0, sm: int = 90, **more: object) -> Element:
    """GPUs on one NVSwitch, each with a NIC of 400 Gb/s beside it as far as there are."""

    def device(at: int) -> Element:
        one = gpu(f"1{at}", nvlink("0000:ff:00.0", 18), sm=sm, dev=at, speed=GEN5)
        beside = [nic(f"4{at}", 400000, speed=GEN5, **more)] if at < nics else []
        return pci(f"8{at}", one, *beside, speed=GEN5)

    return host(cpu(0, *(device(at) for at in range(count))))


def sockets(vendor: str = "GenuineIntel") -> Element:
    """Four GPUs, two below a PCI switch of each socket."""
    return host(
        cpu(0, pci("80", gpu("10", dev=0), gpu("11", dev=1)), vendor=vendor),
        cpu(1, pci("81", gpu("12", dev=2), gpu("13", dev=3)), vendor=vendor),
    )


GRAPHS = {"RING": RING_ID, "TREE": TREE_ID, "CHAIN": CHAIN_ID, "NVLS": NVLS_ID, "DIRECT": DIRECT_ID}
PATTERNS = {RING: "ring", BALANCED_TREE: "balanced tree", TREE: "tree", NVLS: "nvls"}


def shown(graph: PredictedGraph | None, wanted: dict[str, Any] | str) -> dict[str, Any] | str:
    """What a graph has, with its pattern by name and the orders of its channels: all, the `first`, or `each` once."""
    if graph is None or isinstance(wanted, str):
        return "none" if graph is None else "there"
    found = orders(graph)
    known = {"orders": found, "first": found[: len(wanted.get("first", ()))], "each": sorted(set(found))}
    known["pattern"] = PATTERNS.get(graph.pattern)
    values = {name: known[name] if name in known else getattr(graph, name) for name in wanted}
    return {name: round(value, 5) if isinstance(value, float) else value for name, value in values.items()}


@examples("tree", "options", "wanted")
def test_what_is_found(tree: list[Any], options: dict[str, Any] | None, wanted: dict[str, Any]) -> None:
    """By version, or in all of them, the graphs of a machine."""
    machine = grown(tree, switched=switched, sockets=sockets)
    for version, want in wanted.items():
        for minor in MINORS if version == "all" else [int(version)]:
            graphs = found(machine, minor, **(options or {}))
            assert {name: shown(graphs.get(GRAPHS[name]), own) for name, own in want.items()} == want


def test_a_channel_leaves_by_the_nic_through_which_it_came() -> None:
    for graph in found(switched(4, nics=4), nodes=2, NCCL_CROSS_NIC="0").values():
        assert graph.cross_nic == 0
        assert all(order[0] == order[-1] for order in graph.orders)


def test_with_cross_nic_2_each_second_channel_runs_the_nics_of_the_one_before_backwards() -> None:
    without_pxn = {"NCCL_PXN_DISABLE": "1"}
    ring = found(switched(4, nics=4), nodes=2, **without_pxn)[RING_ID]

    assert ring.cross_nic == 2
    for even, texts in zip(ring.orders[::2], ring.orders[1::2], strict=True):
        assert (even[0], even[-1]) == (texts[-1], texts[0])


@pytest.mark.parametrize(("minor", "paired"), [(18, False), (19, False), (20, True), (22, True), (23, True)])
def test_nics_are_paired_from_2_20_on(minor: int, paired: bool) -> None:
    ring = found(switched(4, nics=4), minor, nodes=2, NCCL_PXN_DISABLE="1")[RING_ID]

    assert ring.cross_nic == (2 if minor >= 23 else 1)
    backwards = [(a[0], a[-1]) == (b[-1], b[0]) for a, b in zip(ring.orders[::2], ring.orders[1::2], strict=True)]
    assert all(backwards) == paired


@pytest.mark.parametrize("minor", [29, 30])
def test_from_2_29_on_that_channel_takes_the_nic_of_sockets_where_the_file_has_none(minor: int) -> None:
    """NCCL alone gives up there; a communicator brings the NICs of its plugin, NET/0-0 of sockets at the least."""
    assert found(sockets(), minor, nodes=2) == found(sockets(), 28, nodes=2)


@pytest.mark.parametrize(("minor", "starts"), [(28, True), (30, True), (31, False), (32, False)])
def test_from_2_31_on_a_gpu_without_a_way_to_any_nic_ends_the_search_between_nodes(minor: int, starts: bool) -> None:
    """search.cc, ncclTopoSearchRec: the result of ncclTopoSearchRecNet was dropped up to 2.30."""
    system = built(switched(4, nics=4), minor=minor, nodes=2)
    del system.gpus[1].paths["NET"]

    if starts:
        ring, *_ = search_graphs(system, read_settings({}, minor))
        assert (ring.channels, ring.bw_intra) == (1, pytest.approx(0.1))
    else:
        with pytest.raises(RejectedError, match="Could not find any local path from gpu 1 to net"):
            search_graphs(system, read_settings({}, minor))


@pytest.mark.parametrize("minor", [30, 31, 32])
def test_within_a_node_the_ways_to_the_nics_are_not_asked_for(minor: int) -> None:
    system = built(switched(4, nics=4), minor=minor)
    for vertex in system.gpus:
        vertex.paths.pop("NET", None)

    assert search_graphs(system, read_settings({}, minor))[0].channels > 1


@pytest.mark.parametrize(("minor", "starts"), [(26, True), (28, True), (30, True), (31, False), (32, False)])
def test_from_2_31_on_a_switch_without_a_way_to_its_gpus_ends_the_search_of_nvls(minor: int, starts: bool) -> None:
    system = built(switched(4, nics=4), minor=minor, nodes=2)
    system.nvs[0].paths.pop("GPU")

    if starts:
        graphs = {graph.id: graph for graph in search_graphs(system, read_settings({}, minor))}
        assert graphs[NVLS_ID].channels == 0
        assert graphs[RING_ID].channels > 1
    else:
        with pytest.raises(RejectedError, match="No path computed to go from"):
            search_graphs(system, read_settings({}, minor))


@pytest.mark.parametrize("minor", [28, 31])
def test_within_a_node_that_ends_it_in_every_version(minor: int) -> None:
    system = built(switched(4, nics=4), minor=minor)
    system.nvs[0].paths.pop("GPU")

    with pytest.raises(RejectedError, match="No path computed to go from"):
        search_graphs(system, read_settings({}, minor))


def _relabelled(tree: Element, order: list[int]) -> dict[str, int]:
    buses = [
        node.get("busid") or ""
        for node in tree.walk()
        if node.tag == "pci" and any(c.tag == "gpu" for c in node.children)
    ]
    return dict(zip(buses, order, strict=True))


def _well_formed(system: System, graph: SearchGraph) -> None:
    ranks = {vertex.rank for vertex in system.gpus}
    assert 0 <= graph.channels <= MAX_CHANNELS[system.minor]
    assert len(graph.intra) == graph.channels
    for order in graph.intra:
        assert set(order) == ranks
    if graph.channels:
        assert graph.bw_intra > 0
    if graph.channels and system.inter and system.nets:
        assert {net for ends in graph.inter for net in ends} <= {net.id for net in system.nets} | {0}
        assert len(graph.inter) == graph.channels
    assert 0 <= graph.type_intra <= path_types(system.minor).dis


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data(), machines(gpus=4, nics=3), st.sampled_from(MINORS), st.integers(1, 2), st.booleans())
def test_any_small_machine_in_any_order_of_ranks_is_searched_or_rejected(
    data: st.DataObject, tree: Element, minor: int, nodes: int, collnet: bool
) -> None:
    count = sum(node.tag == "gpu" for node in tree.walk())
    ranks = _relabelled(tree, data.draw(st.permutations(range(count))))
    env = data.draw(st.sampled_from([{}, {"NCCL_CROSS_NIC": "0"}, {"NCCL_CROSS_NIC": "1"}, {"NCCL_P2P_LEVEL": "SYS"}]))
    try:
        system = built(tree, minor=minor, nodes=nodes, ranks=[ranks], **env)
        graphs = search_graphs(system, read_settings(env, minor), collnet=collnet)
    except RejectedError:
        return
    for graph in graphs:
        _well_formed(system, graph)
        assert describe(system, graph).channels == graph.channels


def test_no_attempt_takes_more_steps_than_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """256 with equal channels, 16384 without; -1 is left where all channels asked for are found."""
    clocks: list[tuple[int, int]] = []

    def watched(guide: Guide, trial: SearchGraph, best: SearchGraph, time: int, repeatable: bool) -> int:
        left = attempt(guide, trial, best, time, repeatable)
        clocks.append((time, left))
        return left

    monkeypatch.setattr(search, "attempt", watched)
    monkeypatch.setattr(Ceiling, "may_improve", lambda *_, **__: True)  # those in vain are watched too
    found(sockets(), 21)
    found(switched(4, nics=4), nodes=2)

    assert {time for time, _ in clocks} == {256, 16384}
    assert all(-1 <= left <= time for time, left in clocks)
    assert any(left == -1 for _, left in clocks)
    assert any(left == 0 for _, left in clocks)


def test_the_search_leaves_the_system_as_it_was() -> None:
    system = built(switched(4, nics=4), nodes=2)
    before = [link.bw for vertex in system for link in vertex.links]
    first, second = (search_graphs(system, read_settings({}, 28)) for _ in range(2))

    assert before == [link.bw for vertex in system for link in vertex.links]
    assert [describe(system, graph) for graph in first] == [describe(system, graph) for graph in second]


def test_speeds_tried_from_2_31_on_are_those_of_its_release_and_rubin_has_its_own_since_2_32() -> None:
    """As they stand in the released libraries of 2.30.7, 2.31.2 and 2.32.3."""
    assert [len(ladder(minor, 100, True)) for minor in (30, 31, 32)] == [20, 21, 21]
    assert ladder(31, 100, True)[1] == pytest.approx(90.2)
    assert ladder(31, 107, False) == ladder(31, 100, False)
    assert ladder(32, 107, False) == pytest.approx((280.8, 187.2, 140.4, 93.6, 70.2, 46.8, 35.1, 23.4, 17.55))
    assert len(ladder(32, 107, True)) == 28
    assert ladder(32, 107, True)[-1] == pytest.approx(0.1)
    assert ladder(32, 120, True) == ladder(32, 100, True)


# --- what the processes of the suite share of NCCL's search (tests/searches.py) is what each would find by itself

ENV = {
    "NCCL_CROSS_NIC": "1", "NCCL_NETDEVS_POLICY": "MAX:1", "NCCL_ALGO": "Ring", "NCCL_NVLS_ENABLE": "0",
    "NCCL_MAX_CTAS": "4", "NCCL_P2P_LEVEL": "PIX", "NCCL_PXN_DISABLE": "1",
}  # fmt: skip


def system_of(name: str, minor: int, env: dict[str, str]) -> System:
    (tree,) = numbered([tree_of(node_at(f"fixture:{name}")).tree])
    return build_system([HostTree(tree)], minor=minor, settings=read_settings(env, minor), nranks=64, me=0)


def found_by(system: System, env: dict[str, str], by: object) -> list[dict[str, object]] | str:
    try:
        return [asdict(graph) for graph in by(system, read_settings(env, system.minor))]  # type: ignore[operator]
    except RejectedError as rejected:
        return rejected.words


@pytest.mark.parametrize("env", [{}, ENV], ids=["unset", "set"])
@pytest.mark.parametrize("minor", [18, 24, 28, 32])
@pytest.mark.parametrize("name", ["dgx-h100-healthy", "hgx-a100", "gb200-tray"])
def test_a_search_looks_at_nothing_that_is_left_out_of_the_question(name: str, minor: int, env: dict[str, str]) -> None:
    records = found_by(system_of(name, minor, env), env, search.search_graphs)
    for _ in range(2):  # the second time it is known
        assert found_by(system_of(name, minor, env), env, searches.search_graphs) == records


# --- The compiled search, which skips repeated visits, against one that walks every link each time: the same graphs


Graphs = list[dict[str, object]]


def compiled(tree: Element, minor: int, nodes: int, env: dict[str, str], collnet: bool) -> Graphs | str:
    """Rings and trees, or why NCCL would give up."""
    try:
        system = built(tree, minor=minor, nodes=nodes, **env)
        graphs = search_graphs(system, read_settings(env, minor), nvls=False, collnet=collnet)
    except RejectedError as rejected:
        return rejected.words
    return [asdict(graph) for graph in graphs if graph.id != 4]


def plain(tree: Element, minor: int, nodes: int, env: dict[str, str], collnet: bool) -> Graphs | str:
    """The same without compiled ways, and without remembering visits or attempts or leaving one out."""
    try:
        system = built(tree, minor=minor, nodes=nodes, **env)
    except RejectedError as rejected:
        return rejected.words
    walk = plain_attempt({net.index: net.bw for net in system.nets})

    def attempt(this: object, trial: SearchGraph, best: SearchGraph, time: int, _known: object) -> int:
        if trial.pattern == 6:
            return time
        return walk(this.guide, trial, best, time, False)  # type: ignore[attr-defined]

    try:
        with (
            patch.object(search.Search, "_attempt", attempt),
            patch.object(Ceiling, "may_improve", lambda *_, **__: True),
        ):
            graphs = search_graphs(system, read_settings(env, minor), nvls=False, collnet=collnet)
    except RejectedError as rejected:
        return rejected.words
    return [asdict(graph) for graph in graphs if graph.id != 4]


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    machines(gpus=3, nics=2),
    st.sampled_from(range(18, 32)),
    st.integers(1, 2),
    st.sampled_from([{}, {}, {"NCCL_CROSS_NIC": "0"}, {"NCCL_CROSS_NIC": "1"}, {"NCCL_P2P_LEVEL": "SYS"}]),
    st.booleans(),
)
def test_both_find_the_same_on_any_small_machine(
    tree: Element, minor: int, nodes: int, env: dict[str, str], collnet: bool
) -> None:
    assert compiled(tree, minor, nodes, env, collnet) == plain(tree, minor, nodes, env, collnet)


def _sockets(sm: int, gdr: int) -> Element:
    return host(
        cpu(0, pci("80", gpu("10", dev=0, sm=sm), gpu("11", dev=1, sm=sm), nic("40", gdr=gdr))),
        cpu(1, pci("81", gpu("12", dev=2, sm=sm), gpu("13", dev=3, sm=sm), nic("41", gdr=gdr))),
    )


def _cube() -> Element:
    """Four GPUs, each with NVLink to all others, as in half a DGX-1."""
    buses = [f"1{at}" for at in range(4)]
    devices = [
        gpu(bus, *(to_gpu(other, 1) for other in buses if other != bus), dev=at, sm=70) for at, bus in enumerate(buses)
    ]
    return host(cpu(0, pci("80", *devices[:2], nic("40")), pci("81", *devices[2:], nic("41"))))


def _switched() -> Element:
    devices = [gpu(f"1{at}", nvlink("0000:ff:00.0", 4), dev=at, sm=90) for at in range(3)]
    return host(cpu(0, *(pci(f"8{at}", one, nic(f"4{at}", latency=at)) for at, one in enumerate(devices))))


@pytest.mark.parametrize("minor", [18, 19, 20, 21, 22, 23, 25, 26, 27, 28, 29, 30])
@pytest.mark.parametrize("tree", [_sockets(80, 1), _sockets(70, 0), _cube(), _switched()])
def test_both_find_the_same_in_every_version(tree: Element, minor: int) -> None:
    assert compiled(tree, minor, 2, {}, False) == plain(tree, minor, 2, {}, False)


@pytest.mark.parametrize("links", [(4, 4, 4, 4), (4, 0, 4, 4)])
def test_both_find_the_same_where_gpus_follow_each_other_in_a_row(links: tuple[int, ...]) -> None:
    """Behind an NVSwitch, whole and with a GPU that has no links."""
    devices = [
        gpu(f"1{at}", *([nvlink("0000:ff:00.0", count)] if count else []), dev=at, sm=90)
        for at, count in enumerate(links)
    ]
    tree = host(cpu(0, *(pci(f"8{at}", one, *([nic(f"4{at}")] if at < 2 else [])) for at, one in enumerate(devices))))
    assert compiled(tree, 30, 2, {}, False) == plain(tree, 30, 2, {}, False)
