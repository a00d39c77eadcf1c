"""Channels that NCCL runs with, and communicators of any ranks on any hosts: rules of every version."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.nccl_rings import all_orders, rings_of, trees_of
from tests.nccl.small_trees import GEN5, built, cpu, gpu, host, nic, nvlink, pci, slot
from tests.tables import examples, parts
from topodiag.model.nccl_tree import Element
from topodiag.nccl.connect.channels import (
    limits,
    nvls_channels,
    nvls_possible,
    p2p_channels,
    per_peer_of_rank,
    runtime_channels,
)
from topodiag.nccl.connect.communicator import Communicator, Member, communicator, communicator_of_files
from topodiag.nccl.connect.fuse import NVLS_ID, RING_ID, TREE_ID, fuse
from topodiag.nccl.graph.graph import RING, TREE, CommShape, RejectedError, SearchGraph, System
from topodiag.nccl.search import searched as searches
from topodiag.nccl.search.search import search_graphs
from topodiag.nccl.settings import Settings, read_settings


def shape(
    local_ranks: tuple[int, ...], minor: int = 28, *, sm: int = 80, nranks: int | None = None, channels: int = 0,
    graphs: dict[int, SearchGraph] | None = None, net_gbs: float = 0.0
) -> CommShape:  # fmt: skip
    count = sum(local_ranks) if nranks is None else nranks
    return CommShape(minor, count, local_ranks, sm, sm, 1, 1, graphs or {}, channels, 0, True, min_net_gbs=net_gbs)


def channels(searched: int, *, minor: int = 28, nodes: int = 1, sm: int = 80, bw: float = 20.0, nvls: int = 0,
             collnet: tuple[float, float] | None = None, **env: str) -> list[int]:  # fmt: skip
    graphs = {0: SearchGraph(0, RING, channels=searched, bw_intra=bw)}
    if collnet is not None:
        graphs[2] = SearchGraph(2, TREE, bw_intra=collnet[0], bw_inter=collnet[1])
    numbers, steps = runtime_channels(
        shape((8,) * nodes, minor, sm=sm, graphs=graphs), limits(read_settings(env, minor), minor), nvls
    )
    assert steps[-1].count == len(numbers)
    return numbers


@examples("cases")
def test_channels_at_run_time(cases: list[tuple[dict[str, Any], int | list[int]]]) -> None:
    """Their number, or which channels of the search they repeat."""
    for given_, wanted in cases:
        numbers = channels(**given_)
        assert (numbers if isinstance(wanted, list) else len(numbers)) == wanted, given_


def test_limits_stay_within_what_nccl_has() -> None:
    wild = limits(read_settings({"NCCL_MIN_NCHANNELS": "999", "NCCL_MAX_NCHANNELS": "-3"}, 28), 28)
    assert (wild.least, wild.most) == (64, 1)
    assert limits(read_settings({"NCCL_MAX_CTAS": "4", "NCCL_MIN_CTAS": "9"}, 28), 28).min_ctas == 4
    assert limits(Settings(), 24).max_ctas == 32


@given(
    st.integers(1, 32),
    st.sampled_from(range(18, 32)),
    st.tuples(st.integers(1, 4), st.sampled_from([70, 80, 90, 100])),
    st.tuples(st.integers(-5, 99), st.integers(-5, 99)),
)
def test_channels_repeat_from_the_start_and_stay_within_bounds(
    searched: int, minor: int, machine: tuple[int, int], bounds: tuple[int, int]
) -> None:
    searched = min(searched, 16 if minor < 25 else 32)
    least, most = map(str, bounds)
    env = {"NCCL_MIN_NCHANNELS": least, "NCCL_MAX_NCHANNELS": most}
    numbers = channels(searched, minor=minor, nodes=machine[0], sm=machine[1], bw=48.0, nvls=16, **env)
    assert 1 <= len(numbers) <= (64 if minor >= 25 else 32)
    assert all(after in {before + 1, 0} for before, after in pairwise(numbers))
    assert max(numbers) < 2 * searched


def nvls(
    minor: int, *, sm: int = 90, hosts: int = 1, ranks: tuple[int, ...] = (8,), bw: float = 0.0, **env: str
) -> int:
    given_ = read_settings(env, minor)
    comm = shape(ranks, minor, sm=sm, net_gbs=bw)
    return nvls_channels(comm, given_, limits(given_, minor), sm=sm, many_hosts=hosts > 1)


@examples("cases")
def test_channels_of_nvls(cases: list[tuple[dict[str, Any], int]]) -> None:
    for given_, wanted in cases:
        assert nvls(**given_) == wanted, given_


def test_nvls_takes_three_gpus_before_2_28_and_two_since() -> None:
    assert [nvls_possible(Settings(), 2, minor) for minor in (18, 27, 28, 30)] == [False, False, True, True]
    assert nvls_possible(Settings(), 3, 18)
    assert not nvls_possible(Settings(), 1, 30)
    assert not nvls_possible(read_settings({"NCCL_NVLS_ENABLE": "0"}, 28), 8, 28)


def switched(links: int = 18, nics: int = 1, mbps: int = 400000) -> Element:
    """Two GPUs on an NVSwitch, each below a PCIe switch with NICs."""
    return host(cpu(0, *(slot(at, nics, links=links, mbps=mbps) for at in (1, 2))))


PLAIN = host(cpu(0, pci("10", gpu("11"), gpu("12"))))


def per_peer(system: System, nranks: int, runtime: int, nodes: int = 1, **env: str) -> tuple[int, int]:
    given_ = read_settings(env, system.minor)
    least = min(per_peer_of_rank(system, one, given_, nranks) for one in system.gpus) if system.minor >= 29 else 0
    return p2p_channels(system, given_, shape((1,) * nodes, nranks=nranks, channels=runtime), least)


@examples("cases")
def test_channels_in_all_and_for_each_peer(cases: list[tuple[dict[str, Any], dict[str, Any], list[int]]]) -> None:
    """On two GPUs of an NVSwitch, or plain ones, of one or several versions."""
    for machine, asked, wanted in cases:
        options = dict(machine)
        minors = options.pop("minor", 28)
        tree = PLAIN if options.pop("plain", False) else switched(**options)
        for minor in minors if isinstance(minors, list) else [minors]:
            system = built(tree, minor=minor, nodes=min(asked.get("nodes", 1), 2))
            assert per_peer(system, **asked) == tuple(wanted), (machine, asked, minor)


FOUR = ("11", "21", "31", "41")


def four_switched(
    nics: Sequence[str] = FOUR, mbps: int = 400000, sm: int = 90, vendor: str = "GenuineIntel"
) -> Element:
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
    trees = [four_switched(**named) for named in hosts]
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
    comm = made([four_switched(), four_switched()], [(1, "31"), (0, "11"), (0, "41"), (1, "21")])
    for node, orders in zip(comm.nodes, all_orders(comm), strict=True):
        assert all(sorted(order) == list(node.ranks) for order in (*orders.rings, *orders.trees))


def test_bus_ids_are_found_however_they_are_spelt() -> None:
    members = [Member(0, 0, "00000000:11:00.0"), Member(1, 0, "0000:31:00.0")]
    comm = communicator([four_switched()], members, minor=28, settings=Settings())
    assert comm.nodes[0].ranks == (0, 1)


def test_ranks_agree_on_the_least() -> None:
    full, half = made([four_switched()] * 2, whole(0, 1)), made([four_switched(["11", "31"])] * 2, whole(0, 1))
    mixed = made([four_switched(), four_switched(["11", "31"])], whole(0, 1))
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
    made([four_switched()] * 6, whole(*range(6)))
    assert len(searched) == 1
    made([four_switched()] * 2, [(0, "11"), (0, "21"), (1, "31"), (1, "41")])
    assert len(searched) == 3
    made([four_switched()] * 6, whole(*range(6)), NCCL_NVLS_ENABLE="0")
    assert len(searched) == 3  # NCCL asks for NVLS after the search
    made([four_switched()] * 6, whole(*range(6)), NCCL_CROSS_NIC="0")
    assert len(searched) == 4


def test_trees_reach_all_nodes() -> None:
    comm = made([four_switched()] * 5, whole(*range(5)))
    for places in trees_of(comm):
        assert [place.up for place in places.values()].count(-1) == 1


def test_the_ranks_of_a_file_are_those_in_its_order() -> None:
    by_file = communicator_of_files(four_switched(), nodes=2, minor=28, settings=Settings())
    by_member = made([four_switched()] * 2, whole(0, 1))
    assert by_file.shape == by_member.shape
    assert by_file.channels == by_member.channels
    assert rings_of(by_file) == rings_of(by_member)


def test_a_file_whose_hosts_form_one_nvlink_domain_is_told_by_a_setting() -> None:
    joined = read_settings({"NCCL_MNNVL_ENABLE": "1"}, 28)
    assert communicator_of_files(four_switched(), nodes=2, minor=28, settings=joined).shape.local_ranks == (8,)
    assert communicator_of_files(four_switched(), nodes=2, minor=28, settings=Settings()).shape.nodes == 2


@given(
    st.sampled_from([21, 27, 28, 30]),
    st.lists(st.lists(st.sampled_from(FOUR), min_size=1, max_size=4, unique=True), min_size=1, max_size=3),
    st.permutations(range(12)),
)
@settings(max_examples=10)
def test_rings_and_trees_hold_every_rank_once(minor: int, hosts: list[list[str]], order: list[int]) -> None:
    sorted_ = [(index, bus) for index, buses in enumerate(hosts) for bus in buses]
    places = [sorted_[index] for index in order if index < len(sorted_)]
    comm = made([four_switched()] * len(hosts), places, minor=minor)
    everyone = list(range(len(places)))
    assert sorted(rank for node in comm.nodes for rank in node.ranks) == everyone
    assert len(rings_of(comm)) == len(trees_of(comm)) == comm.channels.coll
    assert all(sorted(ring) == everyone for ring in rings_of(comm))
    for tree in trees_of(comm):
        assert sorted(tree) == everyone
        for rank, place in tree.items():
            assert place.up == -1 or rank in tree[place.up].down
