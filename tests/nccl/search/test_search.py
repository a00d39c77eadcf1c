"""NCCL's graph search on small machines made by hand: one rule each, what it does to the channels that are found."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.nccl.small_machines import machines
from tests.nccl.small_trees import GEN5, built, cpu, gpu, host, nic, nvlink, pci, to_gpu
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import MAX_CHANNELS, path_types
from topodiag.nccl.graph.graph import BALANCED_TREE, NVLS, RING, TREE, RejectedError, SearchGraph, System
from topodiag.nccl.prediction import PredictedGraph
from topodiag.nccl.search import search
from topodiag.nccl.search.attempt import attempt
from topodiag.nccl.search.candidates import Guide
from topodiag.nccl.search.ceiling import Ceiling
from topodiag.nccl.search.described import describe
from topodiag.nccl.search.ladders import ladder
from topodiag.nccl.search.search import search_graphs
from topodiag.nccl.settings import read_settings

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


@pytest.mark.parametrize("minor", MINORS)
def test_rings_over_an_nvswitch_run_in_the_order_of_the_gpus(minor: int) -> None:
    ring = found(switched(4), minor)[RING_ID]

    assert ring.pattern == RING
    assert set(orders(ring)) == {"g0 g1 g2 g3"}
    assert ring.type_intra == "NVL"


def test_channels_share_the_nvlinks_until_they_are_full() -> None:
    """18 links of 20.6 GB/s hold 12 channels of 30."""
    ring = found(switched(4))[RING_ID]

    assert (ring.channels, ring.bw_intra) == (12, 30)


def test_a_tree_has_as_many_channels_as_the_ring() -> None:
    graphs = found(switched(4))

    assert graphs[TREE_ID].pattern == BALANCED_TREE
    assert graphs[TREE_ID].channels == graphs[RING_ID].channels


def test_a_tree_needs_no_way_back_and_so_may_be_faster_than_the_ring() -> None:
    """Two GPUs with 4 NVLinks of 20 GB/s: 4 rings fill them with 20, 4 chains of two directions with 40."""
    graphs = found(host(cpu(0, gpu("10", to_gpu("11", 4), dev=0), gpu("11", to_gpu("10", 4), dev=1))))

    assert (graphs[RING_ID].channels, graphs[RING_ID].bw_intra) == (4, 20)
    assert (graphs[TREE_ID].channels, graphs[TREE_ID].bw_intra) == (4, 40)
    assert set(orders(graphs[TREE_ID])) == {"g0 g1", "g1 g0"}


def test_gpus_below_one_pci_switch_follow_each_other() -> None:
    ring = found(sockets())[RING_ID]

    assert orders(ring) == ["g0 g1 g2 g3"]
    assert ring.type_intra == "SYS"


def test_the_slowest_link_on_the_way_sets_the_speed() -> None:
    """Between the sockets: 20 GB/s of UPI (model 143), for older NCCL 10."""
    assert found(sockets(), 28)[RING_ID].bw_intra == 20
    assert found(sockets(), 21)[RING_ID].bw_intra == 10


@pytest.mark.parametrize("minor", MINORS)
def test_one_gpu_alone_has_a_ring_to_itself_and_a_plain_tree(minor: int) -> None:
    graphs = found(host(cpu(0, gpu("10", dev=0))), minor)

    assert set(orders(graphs[RING_ID])) == set(orders(graphs[TREE_ID])) == {"g0"}
    assert graphs[TREE_ID].pattern == TREE
    assert graphs[RING_ID].type_intra == "LOC"


def test_fast_channels_are_doubled_and_halved() -> None:
    """One NIC of 48 GB/s: a channel of 48 becomes two of 24 for the ring, and the tree then takes 48 inside."""
    graphs = found(switched(2, nics=1), nodes=2)

    assert orders(graphs[RING_ID]) == ["n0 g0 g1 n0"] * 2
    assert (graphs[RING_ID].channels, graphs[RING_ID].bw_intra, graphs[RING_ID].bw_inter) == (2, 24, 24)
    assert graphs[TREE_ID].bw_intra > graphs[TREE_ID].bw_inter == 24


def test_a_channel_leaves_by_the_nic_through_which_it_came() -> None:
    for graph in found(switched(4, nics=4), nodes=2, NCCL_CROSS_NIC="0").values():
        assert graph.cross_nic == 0
        assert all(order[0] == order[-1] for order in graph.orders)


def test_with_cross_nic_1_a_ring_leaves_by_the_nic_of_its_last_gpu() -> None:
    ring = found(switched(4, nics=4), nodes=2, NCCL_CROSS_NIC="1")[RING_ID]

    assert ring.cross_nic == 1
    assert orders(ring)[:2] == ["n0 g0 g3 g2 g1 n1", "n1 g1 g0 g3 g2 n2"]


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


def test_hopper_takes_the_plain_tree_where_the_balanced_one_is_slower() -> None:
    assert found(switched(4, nics=4), nodes=2)[TREE_ID].pattern == TREE


def test_gpus_older_than_hopper_never_take_the_plain_tree() -> None:
    assert found(switched(4, nics=4, sm=80), nodes=2)[TREE_ID].pattern == BALANCED_TREE


def test_a_channel_starts_at_the_gpu_nearest_to_its_nic() -> None:
    tree = found(switched(4, nics=4), nodes=2)[TREE_ID]

    assert [order.split()[:2] for order in orders(tree)[:4]] == [["n0", "g0"], ["n1", "g1"], ["n2", "g2"], ["n3", "g3"]]


def test_intel_root_complexes_cost_a_fifth_from_gpu_to_nic() -> None:
    """Without GPUDirect all goes over the CPU: 24 GB/s of PCI carry 20 there (INTEL_P2P_OVERHEAD)."""

    def bandwidth(vendor: str) -> float:
        return found(host(cpu(0, gpu("10", dev=0), nic("40", gdr=0), vendor=vendor)), nodes=2)[RING_ID].bw_inter

    assert bandwidth("GenuineIntel") == 20
    assert bandwidth("AuthenticAMD") == 24


def test_data_from_a_nic_costs_gpus_before_ampere_an_eighth_on_the_way_back() -> None:
    """12 GB/s of PCI: 12 in leave no 12 out, but 10 in leave 10.75."""

    def bandwidth(sm: int) -> float:
        both = gpu("10", dev=0, sm=sm, speed="8.0 GT/s PCIe"), nic("40", 100000, speed="8.0 GT/s PCIe")
        return found(host(cpu(0, pci("80", *both))), nodes=2)[RING_ID].bw_inter

    assert bandwidth(70) == 10
    assert bandwidth(80) == 12


@pytest.mark.parametrize(("minor", "channels"), [(25, 1), (26, 3)])
def test_two_groups_of_nvlinked_gpus_get_two_channels_at_least(minor: int, channels: int) -> None:
    """From 2.26 on, so that the trees, which profit from NVLink, may have two."""
    tree = host(
        cpu(0, gpu("10", to_gpu("11", 2), dev=0), gpu("11", to_gpu("10", 2), dev=1)),
        cpu(1, gpu("12", to_gpu("13", 2), dev=2), gpu("13", to_gpu("12", 2), dev=3)),
    )

    assert found(tree, minor)[RING_ID].channels == channels


def test_nvls_has_every_gpu_as_a_head_within_a_node() -> None:
    heads = found(switched(4))[NVLS_ID]

    assert (heads.pattern, heads.same_channels) == (NVLS, 0)
    assert orders(heads) == ["g0", "g1", "g2", "g3"]


def test_nvls_heads_of_several_nodes_are_the_gpus_next_to_the_nics() -> None:
    assert orders(found(switched(4, nics=2), nodes=2)[NVLS_ID]) == ["n0 g0 n0", "n1 g1 n1"]


def test_two_nics_at_one_gpu_make_one_head() -> None:
    two = pci("80", gpu("10", nvlink("0000:ff:00.0", 18), sm=90, dev=0), nic("40"), nic("41"))
    tree = host(cpu(0, two, gpu("11", nvlink("0000:ff:00.0", 18), sm=90, dev=1)))

    assert [order.split()[1] for order in orders(found(tree, nodes=2)[NVLS_ID])] == ["g0"]


@pytest.mark.parametrize("tree", [switched(4, sm=80), host(cpu(0, gpu("10", sm=90, dev=0), gpu("11", sm=90, dev=1)))])
def test_nvls_needs_an_nvswitch_and_hopper(tree: Element) -> None:
    assert found(tree)[NVLS_ID].channels == 0


def test_collnet_uses_only_nics_that_can() -> None:
    able = found(switched(2, nics=2, coll=1), nodes=2, collnet=True)
    unable = found(switched(2, nics=2), nodes=2, collnet=True)

    assert able[CHAIN_ID].channels == able[RING_ID].channels
    assert orders(able[DIRECT_ID]) == ["n0 g0 g1 n0", "n1 g1 g0 n1"]
    assert unable[CHAIN_ID].channels == unable[DIRECT_ID].channels == 0


def test_collnet_direct_is_there_from_2_22_on() -> None:
    tree = switched(2, nics=2, coll=1)

    assert DIRECT_ID not in found(tree, 21, nodes=2, collnet=True)
    assert DIRECT_ID in found(tree, 22, nodes=2, collnet=True)


def test_where_nothing_is_found_one_slow_channel_runs_over_all_gpus() -> None:
    ring = found(sockets(), 28, nodes=2)[RING_ID]

    assert orders(ring) == ["n0 g0 g1 g2 g3 n0"]
    assert (ring.bw_intra, ring.type_intra, ring.type_inter) == (pytest.approx(0.1), "SYS", "SYS")


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


@pytest.mark.parametrize("minor", [31, 32])
def test_a_file_without_nics_is_searched_from_2_31_on_too(minor: int) -> None:
    assert orders(found(sockets(), minor, nodes=2)[RING_ID]) == ["n0 g0 g1 g2 g3 n0"]


def test_amd_sockets_keep_equal_channels() -> None:
    """NCCL 2.19 on does not look for different channels over AMD sockets."""
    assert found(sockets("AuthenticAMD"))[RING_ID].same_channels == 1


def test_blackwell_tries_faster_channels_than_its_nics_alone() -> None:
    speeds = {found(switched(4, sm=sm), 28)[RING_ID].bw_intra for sm in (90, 100)}

    assert speeds == {30, 45}


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


def test_channels_of_a_search_rise_with_the_nics() -> None:
    counts = [found(switched(4, nics=nics), nodes=2)[RING_ID].channels for nics in (1, 2, 4)]

    assert all(fewer < more for fewer, more in pairwise(counts))


def test_a_policy_of_one_nic_per_gpu_keeps_rings_from_going_elsewhere() -> None:
    """NCCL_NETDEVS_POLICY=MAX:1 (2.28 on): a GPU leaves by its own NIC or not at all."""
    limited = found(switched(4, nics=4), nodes=2, NCCL_NETDEVS_POLICY="MAX:1", NCCL_PXN_DISABLE="1")[RING_ID]

    own = {"g0": "n0", "g1": "n1", "g2": "n2", "g3": "n3"}
    for order in orders(limited):
        *_, last, net = order.split()
        assert own[last] == net


def test_speeds_tried_from_2_31_on_are_those_of_its_release_and_rubin_has_its_own_since_2_32() -> None:
    """As they stand in the released libraries of 2.30.7, 2.31.2 and 2.32.3."""
    assert [len(ladder(minor, 100, True)) for minor in (30, 31, 32)] == [20, 21, 21]
    assert ladder(31, 100, True)[1] == pytest.approx(90.2)
    assert ladder(31, 107, False) == ladder(31, 100, False)
    assert ladder(32, 107, False) == pytest.approx((280.8, 187.2, 140.4, 93.6, 70.2, 46.8, 35.1, 23.4, 17.55))
    assert len(ladder(32, 107, True)) == 28
    assert ladder(32, 107, True)[-1] == pytest.approx(0.1)
    assert ladder(32, 120, True) == ladder(32, 100, True)
