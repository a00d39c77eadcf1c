"""Small values of the model: NCCL's numbers, bus ids, lists of CPUs, layouts, waits for data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.evidence.live.step_times import read_steps
from topodiag.evidence.nccl_log.grammar.grammar import choice
from topodiag.model.busid import normalise_bus_id, slot_of
from topodiag.model.cpulist import parse_cpulist
from topodiag.model.data_waits import data_waits
from topodiag.model.layout import Layout, LayoutError
from topodiag.model.layout_groups import groups_of
from topodiag.model.nccl_enums import (
    BY_WEIGHT,
    GRAPH_OF,
    SIMPLE_ONLY,
    Algorithm,
    Collective,
    CpuArch,
    CpuVendor,
    Graph,
    Pattern,
    Protocol,
)
from topodiag.model.nccl_tree import family_of
from topodiag.model.nccl_versions import KNOWN, path_types


def test_every_algorithm_runs_on_a_graph() -> None:
    assert set(GRAPH_OF) == set(Algorithm)
    assert set(GRAPH_OF.values()) == set(Graph)


def test_graphs_and_patterns_have_words() -> None:
    assert all(each.words for each in (*Graph, *Pattern))


@pytest.mark.parametrize(("number", "algorithm"), list(enumerate(Algorithm)))
def test_old_logs_give_the_number_of_an_algorithm_and_new_ones_its_name(number: int, algorithm: Algorithm) -> None:
    old = choice(f"64 Bytes -> Algo {number} proto {list(Protocol).index(Protocol.SIMPLE)} time 1.0")
    new = choice(f"AllReduce: 64 Bytes -> Algo {algorithm.name} proto SIMPLE channel{{Lo..Hi}}={{0..1}}")
    assert (old[0][1]["algo"], old[0][1]["proto"]) == (new[0][1]["algo"], new[0][1]["proto"])


def test_settings_are_spelt_as_the_user_guide_does_and_read_back_by_any_case() -> None:
    words = [algorithm.setting for algorithm in Algorithm]
    assert sorted(words) == ["CollnetChain", "CollnetDirect", "NVLS", "NVLSTree", "PAT", "Ring", "Tree"]
    assert {word.lower() for word in words} == {algorithm.lower() for algorithm in Algorithm}


def test_every_collective_is_told_of_once() -> None:
    assert sorted(BY_WEIGHT) == sorted(Collective)
    assert Collective.REDUCE_SCATTER.tested == "reduce_scatter"


def test_only_rings_and_trees_have_protocols_besides_simple() -> None:
    assert set(Algorithm) - set(SIMPLE_ONLY) == {Algorithm.RING, Algorithm.TREE}


def test_mixed_processors_are_no_kind_of_their_own() -> None:
    assert (CpuArch.MIXED, CpuVendor.MIXED) == (4, 4)


@pytest.mark.parametrize("minor", KNOWN)
def test_path_types_keep_their_order_in_every_version(minor: int) -> None:
    types = path_types(minor)
    assert types.loc < types.nvl <= types.c2c < types.pix < types.pxb < types.pxn < types.phb < types.sys < types.dis
    assert types.names[types.nvb] == "NVB"
    assert ("C2C" in types.names, "P2C" in types.names) == (minor >= 26, minor >= 27)


# --- PCI bus ids come to one spelling, whatever tool wrote them


@examples("written", "meant")
def test_every_spelling_means_one_function(written: str, meant: str | None) -> None:
    assert normalise_bus_id(written) == meant


def test_functions_of_one_card_share_a_slot() -> None:
    assert slot_of("0000:1b:00.0") == slot_of("0000:1b:00.1")


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFF), st.integers(0, 0x1F), st.integers(0, 7))
def test_normalising_twice_changes_nothing(domain: int, bus: int, dev: int, fn: int) -> None:
    once = normalise_bus_id(f"{domain:08X}:{bus:02X}:{dev:02X}.{fn:X}")
    assert once == f"{domain:04x}:{bus:02x}:{dev:02x}.{fn}"
    assert normalise_bus_id(once) == once


# --- the family of a processor, however NCCL writes it --------------------------------------------------------


@examples("written", "family")
def test_both_spellings_are_one_family(written: int, family: int) -> None:
    assert family_of(written) == family


@given(st.integers(1, 15))
def test_an_extended_family_is_added_to_the_base(extended: int) -> None:
    assert family_of(15 + (extended << 4)) == 15 + extended


# --- linux cpu lists as sets


def test_ranges_and_single_cpus() -> None:
    assert parse_cpulist("0-2,8,64-65") == {0, 1, 2, 8, 64, 65}


def test_an_empty_list_is_a_memory_only_node() -> None:
    assert parse_cpulist("") == frozenset()


@pytest.mark.parametrize("text", ["-31,64-95", "N/A", "0-", "3-1", "0-99999999999", "0x3", "٣"])
def test_a_cut_or_foreign_list_is_no_list(text: str) -> None:
    assert parse_cpulist(text) is None


# --- the ranks of one group, by arithmetic, against the groups of all ranks


SIZES = st.sampled_from((1, 2, 3, 4))


def test_an_open_data_dimension_counts_as_one() -> None:
    assert (Layout(tp=8).world, Layout(tp=8).filled.dp, Layout(tp=8, dp=4).filled.dp) == (8, 1, 4)
    assert Layout(tp=8).for_world(64).world == 64


def test_the_first_dimension_of_the_order_has_neighbouring_ranks() -> None:
    layout = Layout(tp=2, pp=2, dp=4, order="tp-pp-dp")
    assert layout.dense_order == ("tp", "pp", "dp", "cp")
    assert list(layout.group("tp", 6)) == [6, 7]
    assert list(layout.group("pp")) == [0, 2]
    assert list(layout.group("dp", 1)) == [1, 5, 9, 13]


def test_of_groups_that_do_not_divide_a_domain_the_one_over_most_domains_is_the_worst() -> None:
    assert list(Layout(tp=6, dp=4).worst("tp", 8)) == [6, 7, 8, 9, 10, 11]


def test_shards_are_neighbours_among_the_replicas() -> None:
    layout = Layout(tp=2, dp=4)
    assert (layout.shards(2), layout.shard_replicas(2)) == ((0, 2), (0, 4))
    with pytest.raises(LayoutError, match="a shard group of 3 does not divide cp x dp = 4"):
        layout.shards(3)


@given(tp=SIZES, cp=SIZES, pp=SIZES, dp=SIZES, ep=st.sampled_from((2, 3, 4)))
def test_experts_are_groups_of_the_expert_grid(tp: int, cp: int, pp: int, dp: int, ep: int) -> None:
    layout = Layout(tp=tp, pp=pp, dp=dp, cp=cp, ep=ep)
    if cp * dp % ep:
        with pytest.raises(LayoutError, match="does not divide"):
            groups_of(layout, layout.world)
        return
    listed = groups_of(layout, layout.world)
    assert list(layout.shards(layout.ep)) in listed["ep"].tolist()
    if cp * dp > ep:
        assert list(layout.shard_replicas(layout.ep)) in listed["expert-dp"].tolist()
    if cp > 1 and dp > 1:
        assert list(layout.replicas()) in listed["dp-cp"].tolist()


# --- how much of a training's steps is waiting for data, and when nothing is said of it


def _share(waits: list[float], took: float) -> float | None:
    lines = (f"Epoch: [0][{at:3d}/900]  time: {took:.4f}  data: {wait:.4f}" for at, wait in enumerate(waits))
    [series] = read_steps("\n".join(lines).encode(), "train.log")
    waiting = data_waits(series)
    return waiting and round(waiting.share, 1)


UNEVEN = [0.80 + 0.01 * (at * 7 % 11) for at in range(60)]


@pytest.mark.parametrize(
    ("waits", "share"),
    [
        pytest.param(UNEVEN, 0.9, id="all wait, now longer, now shorter"),
        pytest.param([0.86] * 20, 0.9, id="few lines may be alike by chance"),
        pytest.param([0.85 + 0.0001 * (at % 3) for at in range(60)], None, id="all wait equally long: for their GPUs"),
        pytest.param([0.05] * 60, None, id="the loader keeps up"),
    ],
)
def test_steps_wait_for_data_where_their_lines_say_so(waits: list[float], share: float | None) -> None:
    assert _share(waits, 1.0) == share
