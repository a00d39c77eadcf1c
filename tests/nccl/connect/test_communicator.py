"""Communicators of any ranks on any hosts: nodes as NCCL counts them, what ranks agree on, what is searched once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nccl.small_trees import GEN5, cpu, gpu, host, nic, nvlink, pci
from topodiag.model.nccl_tree import Element
from topodiag.nccl.connect.communicator import Communicator, Member, communicator, communicator_of_files
from topodiag.nccl.connect.fuse import NVLS_ID, RING_ID, TREE_ID, fuse
from topodiag.nccl.graph.graph import RING, RejectedError, SearchGraph, System
from topodiag.nccl.search.search import search_graphs
from topodiag.nccl.search.searched import forget
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


def test_two_hosts_are_two_nodes_of_all_their_ranks() -> None:
    comm = made([switched(), switched()], whole(0, 1))
    assert [node.ranks for node in comm.nodes] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert comm.shape.local_ranks == (4, 4)
    assert all(sorted(ring) == list(range(8)) for ring in comm.rings())


def test_nodes_are_numbered_by_their_first_rank_wherever_ranks_lie() -> None:
    scattered = made([switched(), switched()], [(1, "31"), (0, "11"), (0, "41"), (1, "21")])
    assert [node.ranks for node in scattered.nodes] == [(0, 3), (1, 2)]
    assert dict(scattered.node_of) == {0: 0, 3: 0, 1: 1, 2: 1}


def test_orders_speak_of_the_communicators_ranks() -> None:
    comm = made([switched(), switched()], [(1, "31"), (0, "11"), (0, "41"), (1, "21")])
    for node, orders in zip(comm.nodes, comm.orders(), strict=True):
        assert all(sorted(order) == list(node.ranks) for order in (*orders.rings, *orders.trees))


def test_one_host_whose_sockets_only_the_network_joins_counts_as_two_nodes() -> None:
    comm = made([switched()], whole(0), NCCL_P2P_DISABLE="1")
    assert [node.ranks for node in comm.nodes] == [(0, 1), (2, 3)]
    assert comm.node(3).domain.local == (2, 3)


def test_bus_ids_are_found_however_they_are_spelt() -> None:
    members = [Member(0, 0, "00000000:11:00.0"), Member(1, 0, "0000:31:00.0")]
    comm = communicator([switched()], members, minor=28, settings=Settings())
    assert comm.nodes[0].ranks == (0, 1)


def test_a_gpu_that_no_host_has_is_refused() -> None:
    with pytest.raises(RejectedError, match=r"0000:99:00\.0 of rank 1"):
        made([switched()], [(0, "11"), (0, "99")])


def test_two_ranks_on_one_gpu_are_refused_in_nccls_words() -> None:
    with pytest.raises(RejectedError, match="Duplicate GPU detected : rank 1 and rank 2 both on CUDA device 21000"):
        made([switched(), switched()], [(1, "21"), (0, "21"), (0, "21")])


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


def test_nvls_of_two_gpus_is_tried_since_2_28() -> None:
    pair = [(0, "11"), (0, "21")]
    assert made([switched()], pair, minor=27).channels.nvls == 0
    assert made([switched()], pair, minor=28).channels.nvls == 16
    assert made([switched(sm=80)], whole(0)).channels.nvls == 0


def test_one_gpu_per_node_has_no_nvls() -> None:
    comm = made([switched(), switched()], [(0, "11"), (1, "11")])
    assert (comm.channels.nvls, comm.shape.nvls_heads) == (0, 0)


def test_hosts_with_different_cpus_are_mixed_since_2_22() -> None:
    hosts = [switched(), switched(vendor="AuthenticAMD")]
    assert made(hosts, whole(0, 1), minor=28).shape.cpu_vendor == 4
    assert made(hosts, whole(0, 1), minor=21).shape.cpu_vendor == 1
    assert made(hosts[:1] * 2, whole(0, 1)).shape.cpu_vendor == 1


def test_hosts_with_different_gpus_have_the_least_and_greatest_capability() -> None:
    shape = made([switched(), switched(sm=100)], whole(0, 1)).shape
    assert (shape.min_sm, shape.max_sm) == (90, 100)


def test_a_clique_of_hosts_is_one_node() -> None:
    comm = made([switched(), switched()], whole(0, 1), cliques=[7, 7])
    assert [node.ranks for node in comm.nodes] == [(0, 1, 2, 3, 4, 5, 6, 7)]
    assert not comm.nodes[0].domain.system.inter


@pytest.mark.parametrize("env", [{"NCCL_MNNVL_ENABLE": "0"}, {"NCCL_P2P_DISABLE": "1"}])
def test_settings_take_a_clique_apart(env: dict[str, str]) -> None:
    hosts = [switched(), switched()]
    parts = made(hosts, whole(0, 1), minor=28, cliques=[0, 0], **env)
    assert len(parts.nodes) > 1


def test_cliques_share_a_topology_since_2_21() -> None:
    hosts, ends = [switched(), switched()], [(0, "11"), (1, "11")]
    assert len(made(hosts, ends, minor=20, cliques=[0, 0]).nodes) == 2
    assert len(made(hosts, ends, minor=21, cliques=[0, 0]).nodes) == 1


def test_a_clique_of_some_hosts_still_needs_the_network() -> None:
    comm = made([switched()] * 3, whole(0, 1, 2), cliques=[0, 0, 1])
    assert [len(node.ranks) for node in comm.nodes] == [8, 4]
    assert comm.nodes[0].domain.system.inter


def test_2_30_refuses_hosts_with_different_numbers_of_nics() -> None:
    hosts = [switched(), switched(["11", "31"])]
    with pytest.raises(RejectedError, match=r"min 2, max 4"):
        made(hosts, whole(0, 1), minor=30)
    assert len(made(hosts, whole(0, 1), minor=30, NCCL_IGNORE_NET_MISMATCH="1").nodes) == 2
    assert len(made(hosts, whole(0, 1), minor=29).nodes) == 2


def test_equal_hosts_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[System] = []

    def counting(system: System, given_: Settings, *, nvls: bool, collnet: bool) -> tuple[SearchGraph, ...]:
        searched.append(system)
        return search_graphs(system, given_, nvls=nvls, collnet=collnet)

    monkeypatch.setattr("topodiag.nccl.search.searched.search_graphs", counting)
    forget()
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
    for places in comm.trees():
        assert [place.up for place in places.values()].count(-1) == 1


def test_the_ranks_of_a_file_are_those_in_its_order() -> None:
    by_file = communicator_of_files(switched(), nodes=2, minor=28, settings=Settings())
    by_member = made([switched()] * 2, whole(0, 1))
    assert by_file.shape == by_member.shape
    assert by_file.channels == by_member.channels
    assert by_file.rings() == by_member.rings()


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
    assert len(comm.rings()) == len(comm.trees()) == comm.channels.coll
    assert all(sorted(ring) == everyone for ring in comm.rings())
    for tree in comm.trees():
        assert sorted(tree) == everyone
        for rank, place in tree.items():
            assert place.up == -1 or rank in tree[place.up].down
