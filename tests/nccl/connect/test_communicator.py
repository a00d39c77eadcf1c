"""Communicators of any ranks on any hosts: nodes as NCCL counts them, what ranks agree on, what is searched once."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.nccl_rings import all_orders, rings_of, trees_of
from tests.nccl.small_trees import GEN5, cpu, gpu, host, nic, nvlink, pci
from tests.tables import examples, parts
from topodiag.model.nccl_tree import Element
from topodiag.nccl.connect.communicator import Communicator, Member, communicator, communicator_of_files
from topodiag.nccl.connect.fuse import NVLS_ID, RING_ID, TREE_ID, fuse
from topodiag.nccl.graph.graph import RING, RejectedError, SearchGraph, System
from topodiag.nccl.search import searched as searches
from topodiag.nccl.search.search import search_graphs
from topodiag.nccl.settings import Settings, read_settings

FOUR = ("11", "21", "31", "41")


def switched(nics: Sequence[str] = FOUR, mbps: int = 400000, sm: int = 90, vendor: str = "GenuineIntel") -> Element:
    """Four GPUs on an NVSwitch, two per socket, each below a PCIe switch with a NIC where `nics` names its bus."""

    def part(bus: str) -> Element:
        near = [nic(f"{bus[0]}2", mbps, speed=GEN5)] if bus in nics else []
        return pci(f"{bus[0]}0", gpu(bus, nvlink("0000:05:00.0", 18), sm=sm, speed=GEN5), *near, speed=GEN5)

    return host(cpu(0, part("11"), part("21"), vendor=vendor), cpu(1, part("31"), part("41"), vendor=vendor))


def made(
    trees: Sequence[Element], places: Sequence[tuple[int, str]], *, minor: int = 28,
    cliques: Sequence[int] | None = None, **env: str
) -> Communicator:  # fmt: skip
    members = [Member(rank, place, f"0000:{bus}:00.0") for rank, (place, bus) in enumerate(places)]
    return communicator(trees, members, minor=minor, settings=read_settings(env, minor), cliques=cliques)


def whole(*hosts: int) -> list[tuple[int, str]]:
    return [(place, bus) for place in hosts for bus in FOUR]


@examples("hosts", "places", "options", "wanted")
def test_communicators(
    hosts: list[Any], places: list[list[Any]] | list[int], options: dict[str, Any] | None, wanted: dict[str, Any]
) -> None:
    """Hosts by the keywords of `switched`, ranks by host and bus, or all those of some hosts. By version what the
    communicator has, or the words with which NCCL refuses it."""
    trees = [switched(**named) for named in hosts]
    ranks = [(place, bus) for place, bus in places] if isinstance(places[0], list) else whole(*places)
    for minor, want in wanted.items():
        if isinstance(want, str):
            with pytest.raises(RejectedError, match=want):
                made(trees, ranks, minor=int(minor), **(options or {}))
        else:
            comm = made(trees, ranks, minor=int(minor), **(options or {}))
            assert {name: parts(getattr(comm, name), own) for name, own in want.items()} == want
            assert all(sorted(ring) == list(range(len(ranks))) for ring in rings_of(comm))


def test_orders_speak_of_the_communicators_ranks() -> None:
    comm = made([switched(), switched()], [(1, "31"), (0, "11"), (0, "41"), (1, "21")])
    for node, orders in zip(comm.nodes, all_orders(comm), strict=True):
        assert all(sorted(order) == list(node.ranks) for order in (*orders.rings, *orders.trees))


def test_bus_ids_are_found_however_they_are_spelt() -> None:
    members = [Member(0, 0, "00000000:11:00.0"), Member(1, 0, "0000:31:00.0")]
    comm = communicator([switched()], members, minor=28, settings=Settings())
    assert comm.nodes[0].ranks == (0, 1)


def test_ranks_agree_on_the_least() -> None:
    full, half = made([switched()] * 2, whole(0, 1)), made([switched(["11", "31"])] * 2, whole(0, 1))
    mixed = made([switched(), switched(["11", "31"])], whole(0, 1))
    for graph in (RING_ID, TREE_ID, NVLS_ID):
        fuseds = [comm.shape.graphs[graph] for comm in (full, half)]
        assert mixed.shape.graphs[graph].bw_inter == min(one.bw_inter for one in fuseds)
        assert mixed.shape.graphs[graph].type_inter == max(one.type_inter for one in fuseds)
    assert mixed.shape.graphs[RING_ID].channels == mixed.shape.graphs[TREE_ID].channels


def graph(
    number: int = 0, channels: int = 4, bw: float = 20.0, *, type_inter: int = 4, cross_nic: int = 0, same: int = 1
) -> SearchGraph:
    return SearchGraph(number, RING, channels=channels, bw_intra=bw, bw_inter=bw, type_inter=type_inter,
                       cross_nic=cross_nic, same_channels=same)  # fmt: skip


def test_fusing_takes_the_least_of_speeds_and_the_greatest_of_types() -> None:
    one = {0: graph(type_inter=4, cross_nic=0), 1: graph(1, channels=3)}
    other = {0: graph(channels=6, bw=12.0, type_inter=8, cross_nic=2, same=0), 1: graph(1, channels=9)}
    fused = fuse([one, other], 28)[0]
    assert (fused.channels, fused.bw_intra, fused.type_inter, fused.cross_nic, fused.same_channels) == (3, 12, 8, 2, 0)
    assert fuse([one, other], 20)[0].cross_nic == 0


def test_a_graph_that_one_node_lacks_is_off_for_all() -> None:
    with_nvls = {0: graph(), 1: graph(1), 3: graph(3)}
    assert 3 in fuse([with_nvls, with_nvls], 28)
    assert 3 not in fuse([with_nvls, {0: graph(), 1: graph(1)}], 28)
    assert 3 not in fuse([with_nvls, with_nvls | {3: graph(3, channels=0)}], 28)


def test_equal_hosts_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[System] = []

    def counting(system: System, given_: Settings, *, nvls: bool, collnet: bool) -> tuple[SearchGraph, ...]:
        searched.append(system)
        return search_graphs(system, given_, nvls=nvls, collnet=collnet)

    monkeypatch.setattr("topodiag.nccl.search.searched.search_graphs", counting)
    searches._searched.cache_clear()
    made([switched()] * 6, whole(*range(6)))
    assert len(searched) == 1
    made([switched()] * 2, [(0, "11"), (0, "21"), (1, "31"), (1, "41")])
    assert len(searched) == 3
    made([switched()] * 6, whole(*range(6)), NCCL_NVLS_ENABLE="0")
    assert len(searched) == 3  # NCCL asks for NVLS after the search
    made([switched()] * 6, whole(*range(6)), NCCL_CROSS_NIC="0")
    assert len(searched) == 4


def test_trees_reach_all_nodes() -> None:
    comm = made([switched()] * 5, whole(*range(5)))
    for places in trees_of(comm):
        assert [place.up for place in places.values()].count(-1) == 1


def test_the_ranks_of_a_file_are_those_in_its_order() -> None:
    by_file = communicator_of_files(switched(), nodes=2, minor=28, settings=Settings())
    by_member = made([switched()] * 2, whole(0, 1))
    assert by_file.shape == by_member.shape
    assert by_file.channels == by_member.channels
    assert rings_of(by_file) == rings_of(by_member)


def test_a_file_whose_hosts_form_one_nvlink_domain_is_told_by_a_setting() -> None:
    joined = read_settings({"NCCL_MNNVL_ENABLE": "1"}, 28)
    assert communicator_of_files(switched(), nodes=2, minor=28, settings=joined).shape.local_ranks == (8,)
    assert communicator_of_files(switched(), nodes=2, minor=28, settings=Settings()).shape.nodes == 2


@given(
    st.sampled_from([21, 27, 28, 30]),
    st.lists(st.lists(st.sampled_from(FOUR), min_size=1, max_size=4, unique=True), min_size=1, max_size=3),
    st.permutations(range(12)),
)
@settings(max_examples=10)
def test_rings_and_trees_hold_every_rank_once(minor: int, hosts: list[list[str]], order: list[int]) -> None:
    sorted_ = [(index, bus) for index, buses in enumerate(hosts) for bus in buses]
    places = [sorted_[index] for index in order if index < len(sorted_)]
    comm = made([switched()] * len(hosts), places, minor=minor)
    everyone = list(range(len(places)))
    assert sorted(rank for node in comm.nodes for rank in node.ranks) == everyone
    assert len(rings_of(comm)) == len(trees_of(comm)) == comm.channels.coll
    assert all(sorted(ring) == everyone for ring in rings_of(comm))
    for tree in trees_of(comm):
        assert sorted(tree) == everyone
        for rank, place in tree.items():
            assert place.up == -1 or rank in tree[place.up].down
