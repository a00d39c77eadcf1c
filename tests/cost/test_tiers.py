"""Tiers of systems, and what holds for the cost model on any of them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.cost import collectives
from topodiag.cost.collectives import BYTES_PER_US, Link
from topodiag.cost.hierarchy import bound_us, leaders, total_us, two_level
from topodiag.cost.questions import spread_over
from topodiag.cost.spread import Spread, available, bound, derivation, price
from topodiag.cost.spread import time_us as spread_us
from topodiag.cost.tiers import LackingError, UnknownSystemError, find_system, machine, system_names, with_spine
from topodiag.hardware import catalog

ALONE = ("gh200-single-superchip",)
"""One GPU per node, and no NIC in the datasheet: nothing joins it to anything."""


@examples("typed", "name")
def test_a_system_is_found_by_what_people_type(typed: str, name: str) -> None:
    assert find_system(typed).name == name


def test_an_unknown_name_suggests_near_ones_and_one_of_several_lists_them() -> None:
    with pytest.raises(UnknownSystemError, match="no system is called 'dgx-h1000'") as unknown:
        find_system("dgx-h1000")
    assert unknown.value.near[0] == "dgx-h100"
    with pytest.raises(UnknownSystemError, match="several systems") as several:
        find_system("dgx")
    assert {"dgx-a100", "dgx-h100", "dgx-b200"} <= set(several.value.near)


@pytest.mark.parametrize("name", [name for name in system_names() if name not in ALONE])
def test_every_system_has_tiers_from_the_fastest_inside_to_the_network(name: str) -> None:
    server = machine(find_system(name), 2)
    assert server.inside in server.tiers
    assert server.domain >= server.gpus_per_node
    assert all(tier.source for tier in server.tiers)
    if server.network is not None:
        assert server.network.link.gbs <= server.network.line_gbs, "never above the wire"
        assert server.network.link.gbs <= server.inside.link.gbs


def test_every_name_finds_its_own_system() -> None:
    assert [find_system(name).name for name in system_names()] == [spec.name for spec in catalog.systems()]


def test_nics_may_be_given_and_must_be_where_the_datasheet_leaves_them_open() -> None:
    board = find_system("hgx-h100-h200-8-gpu")
    with pytest.raises(LackingError, match="--nics"):
        machine(board, 2).outside()
    assert machine(board, 2, nics=(4, 200.0)).outside().gbs == pytest.approx(12.5)


def test_a_gpu_is_chosen_where_a_system_is_sold_with_several() -> None:
    board = find_system("hgx-h100-h200-8-gpu")
    chosen = machine(board, 1, gpu="h200").gpu
    assert chosen.name == "H200"
    with pytest.raises(LackingError, match="not sold with 'b200'"):
        machine(board, 1, gpu="b200")


def test_pairs_with_bridges_meet_over_pcie() -> None:
    server = machine(find_system("NC96ads_A100_v4"), 1)
    assert (server.inside.kind, server.domain) == ("pcie", 4)
    assert [tier.gpus for tier in server.tiers if tier.kind == "nvlink"] == [2]


def test_a_placement_over_more_nodes_than_a_leaf_holds_is_carried_by_the_spine() -> None:
    fabric = with_spine(machine(find_system("dgx-h100"), 16), 4, 2.0)
    assert spread_over(fabric, 4, 8).level == "network"
    assert spread_over(fabric, 5, 8).level == "spine"


def test_an_oversubscribed_spine_carries_less() -> None:
    flat = machine(find_system("dgx-h100"), 16)
    fabric = with_spine(flat, 4, 2.0)
    assert fabric.spine.link.gbs == flat.network.link.gbs / 2
    assert fabric.spine.link.alpha_us > flat.network.link.alpha_us
    assert with_spine(flat, 16, 2.0).spine is None, "one leaf holds them all"


@pytest.mark.parametrize("name", ALONE)
def test_one_gpu_without_a_nic_asks_for_one(name: str) -> None:
    with pytest.raises(LackingError, match=r"one GPU per node.*--nics"):
        machine(find_system(name), 2)
    server = machine(find_system(name), 2, nics=(1, 400.0))
    assert (server.domain, server.spread(range(2)).nodes) == (1, 2)


# --- what holds of every price: it grows with bytes and ranks, and nothing is faster than its links


links = st.builds(Link, st.floats(0, 100), st.floats(0.1, 1000))
sizes = st.floats(1, 1e12)
KINDS = [
    (collective, algorithm)
    for collective in collectives.COLLECTIVES
    for algorithm in collectives.algorithms(collective)
]
kinds = st.sampled_from(KINDS)
spreads = st.builds(Spread, st.integers(1, 64), st.integers(1, 16), links, links)
switched = st.builds(Spread, st.integers(1, 32), st.integers(1, 16), links, links, st.just(True))
PHASED = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all")
NEAR = 1 + 1e-9


@given(kinds, st.integers(1, 10).map(lambda power: 1 << power), sizes, sizes, links)
def test_time_grows_with_bytes(kind: tuple[str, str], ranks: int, one: float, other: float, link: Link) -> None:
    small, large = sorted((one, other))
    assert collectives.time_us(*kind, ranks, small, link) <= collectives.time_us(*kind, ranks, large, link) * NEAR


@given(kinds, st.integers(1, 4096), st.integers(1, 4096), sizes, links)
def test_time_never_falls_with_more_ranks(kind: tuple[str, str], one: int, other: int, size: float, link: Link) -> None:
    fewer, more = sorted((one, other))
    if kind[1] == "halving_doubling":
        fewer, more = 1 << (fewer.bit_length() - 1), 1 << (more.bit_length() - 1)
    assert collectives.time_us(*kind, fewer, size, link) <= collectives.time_us(*kind, more, size, link) * NEAR


@given(kinds, st.integers(1, 9).map(lambda power: 1 << power), sizes, links)
def test_no_rank_sends_faster_than_its_link(kind: tuple[str, str], ranks: int, size: float, link: Link) -> None:
    sent = collectives.bytes_per_rank(*kind, ranks, size)
    assert sent / collectives.time_us(*kind, ranks, size, link) <= link.gbs * BYTES_PER_US * NEAR


@given(st.sampled_from(PHASED), spreads, sizes)
def test_no_hierarchy_beats_the_physical_bound(collective: str, spread: Spread, size: float) -> None:
    nodes, per_node, inside, outside = spread.nodes, spread.per_node, spread.inside, spread.outside
    least = bound_us(collective, size, nodes, per_node, inside=inside, outside=outside)
    assert total_us(two_level(nodes, per_node, inside, outside, collective), size) * NEAR >= least
    if collective == "all_reduce":
        assert total_us(leaders(nodes, per_node, inside, outside), size) * NEAR >= least


@given(st.sampled_from(PHASED), st.one_of(spreads, switched), sizes)
def test_no_algorithm_over_two_tiers_beats_the_physical_bound(collective: str, spread: Spread, size: float) -> None:
    assume(spread.ranks > 1)
    assert price(collective, spread, size).time_us * NEAR >= bound(collective, spread, size)


@given(st.sampled_from(PHASED), spreads, sizes)
def test_a_prediction_never_exceeds_the_sum_of_its_links(collective: str, spread: Spread, size: float) -> None:
    """Bus bandwidth is what a rank's links carry: its way inside and its node's ways out."""
    way = price(collective, spread, size)
    most = (spread.inside.gbs if spread.per_node > 1 else 0) + (spread.outside.gbs * spread.per_node)
    assert collectives.busbw_gbs(collective, spread.ranks, size, way.time_us) <= most * NEAR


@given(st.sampled_from(PHASED), spreads, st.integers(1, 64), sizes)
def test_time_never_falls_with_more_nodes_of_as_many_ranks(
    collective: str, spread: Spread, more: int, size: float
) -> None:
    """Where the network is no faster a hop than the node: the slower value of each two is the network's. Direct sends
    of one node are left out: on several a rank sends inside and outside at once, which links of one rate do faster."""
    (least_us, most_us), (least_gbs, most_gbs) = (
        sorted((getattr(spread.inside, name), getattr(spread.outside, name))) for name in ("alpha_us", "gbs")
    )
    spread = replace(spread, inside=Link(least_us, most_gbs), outside=Link(most_us, least_gbs))
    larger = replace(spread, nodes=spread.nodes + more)
    both = set(available(collective, spread)) & set(available(collective, larger))
    for name in both - ({"direct"} if spread.nodes == 1 else set()):
        assert spread_us(collective, name, spread, size) <= spread_us(collective, name, larger, size) * NEAR


@given(st.sampled_from(PHASED), switched, sizes)
def test_the_fastest_is_no_slower_than_any_it_chose_from(collective: str, spread: Spread, size: float) -> None:
    assume(spread.ranks > 1)
    took = price(collective, spread, size).time_us
    assert all(took <= spread_us(collective, name, spread, size) for name in available(collective, spread))


@given(kinds, st.integers(1, 9).map(lambda power: 1 << power), sizes, links)
def test_latency_and_transfer_are_the_time(kind: tuple[str, str], ranks: int, size: float, link: Link) -> None:
    named = {term.name: term.value for term in collectives.terms(*kind, ranks, size, link)}
    assert named["latency"] + named["transfer"] == pytest.approx(named["time"])
    assert named["transfer"] >= -1e-6 * named["time"]


@pytest.mark.parametrize(("collective", "algorithm"), KINDS)
def test_many_sizes_at_once_give_what_each_gives_alone(collective: str, algorithm: str) -> None:
    link, many = Link(2.5, 48.0), np.array([1.0, 4096.0, 1e6, 1e9])
    for ranks in (2, 8, 64):
        numbers = [collectives.time_us(collective, algorithm, ranks, float(size), link) for size in many]
        assert np.allclose(collectives.time_us(collective, algorithm, ranks, many, link), numbers)


@pytest.mark.parametrize("collective", PHASED)
def test_many_sizes_over_two_tiers_give_what_each_gives_alone(collective: str) -> None:
    spread = Spread(4, 8, Link(1.0, 300.0), Link(5.0, 50.0))
    many = np.array([1.0, 4096.0, 1e6, 1e9])
    for name in available(collective, spread):
        numbers = [spread_us(collective, name, spread, float(size)) for size in many]
        assert np.allclose(spread_us(collective, name, spread, many), numbers)


@pytest.mark.parametrize("collective", PHASED)
def test_every_derivation_ends_with_its_time(collective: str) -> None:
    for spread in (Spread(1, 8, Link(1, 300), Link(5, 50)), Spread(4, 8, Link(1, 300), Link(5, 50))):
        for name in available(collective, spread):
            last = derivation(collective, name, spread, 1e8)[-1]
            assert (last.name, last.value) == ("time", spread_us(collective, name, spread, 1e8))


def test_pipelines_take_as_many_chunks_as_pay() -> None:
    chain = collectives.shape("broadcast", "ring", 16)
    link = Link(5.0, 50.0)
    assert chain.chunks(1.0, link) == 1, "a byte is not cut"
    best = chain.chunks(1e9, link)

    def at(chunks: float) -> float:
        return (chain.depth + chunks - 1) * (link.alpha_us + 1e9 / (chunks * link.gbs * BYTES_PER_US))

    assert at(best) <= min(at(best / 2), at(best * 2))
    assert chain.time_us(1e9, link) == pytest.approx(at(best))
    assert collectives.shape("broadcast", "ring", 16).count(1.0, link) == 15


def test_a_reducing_switch_gives_eight_h100_the_480_gb_s_that_is_published() -> None:
    took = collectives.time_us("all_reduce", "nvls", 8, 8e9, Link(0.6, 370.8))
    assert collectives.busbw_gbs("all_reduce", 8, 8e9, took) == pytest.approx(480, rel=0.02)


H100 = Spread(2, 8, Link(0.6, 370.8), Link(5.0, 48.0), switch=True)


def test_switches_and_trees_over_two_nodes_of_h100_keep_what_one_has() -> None:
    """Published are 465 to 490 GB/s, and where rings alone are left 370."""
    tree, ring = (spread_us("all_reduce", name, H100, 8e9) for name in ("nvls_tree", "ring"))
    assert collectives.busbw_gbs("all_reduce", 16, 8e9, tree) == pytest.approx(480, rel=0.04)
    assert collectives.busbw_gbs("all_reduce", 16, 8e9, ring) == pytest.approx(370, rel=0.01)
    assert price("all_reduce", H100, 8e9).algorithm == "nvls_tree"


def test_over_more_nodes_a_tree_passes_the_ways_out_twice() -> None:
    four = replace(H100, nodes=4)
    took = spread_us("all_reduce", "nvls_tree", four, 8e9)
    assert collectives.busbw_gbs("all_reduce", 32, 8e9, took) == pytest.approx(48 * 8 * 31 / 32, rel=0.05)


@pytest.mark.parametrize(
    ("collective", "spread"),
    [
        ("all_gather", H100),
        ("all_reduce", replace(H100, switch=False)),
        ("all_reduce", replace(H100, nodes=1)),
        ("all_reduce", replace(H100, per_node=1)),
    ],
)
def test_only_an_all_reduce_over_several_switches_has_them(collective: str, spread: Spread) -> None:
    assert "nvls_tree" not in available(collective, spread)
    with pytest.raises(collectives.NotModelledError, match="over several domains"):
        spread_us(collective, "nvls_tree", spread, 1e6)


def test_a_latency_that_vanishes_is_none() -> None:
    assert collectives.shape("broadcast", "ring", 8).chunks(1e6, Link(5e-324, 0.5)) == collectives.shape(
        "broadcast", "ring", 8
    ).chunks(1e6, Link(0.0, 0.5))


def test_one_rank_takes_no_time() -> None:
    assert all(collectives.time_us(*kind, 1, 1e9, Link(1, 1)) == 0 for kind in KINDS)
    assert price("all_reduce", Spread(1, 1, Link(1, 1), Link(1, 1)), 1e9).time_us == 0


@examples("collective", "algorithm", "ranks", "why")
def test_what_is_not_modelled_says_what_is(collective: str, algorithm: str, ranks: int, why: str) -> None:
    with pytest.raises(collectives.NotModelledError, match=why):
        collectives.shape(collective, algorithm, ranks)


@pytest.mark.parametrize(("alpha", "gbs"), [(-1.0, 1.0), (1.0, 0.0), (float("nan"), 1.0), (1.0, float("inf"))])
def test_a_link_that_cannot_be_is_refused(alpha: float, gbs: float) -> None:
    with pytest.raises(ValueError, match="a link has"):
        Link(alpha, gbs)


def test_every_algorithm_is_one_of_the_known() -> None:
    assert {algorithm for _, algorithm in KINDS} == set(collectives.ALGORITHMS)
