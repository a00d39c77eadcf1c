"""What NCCL runs for a size: by the least time of its table, as far as the combination may run."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.tuning_shapes import h100, one_gpu_nodes, shapes
from topodiag.nccl.graph.graph import CommShape
from topodiag.nccl.prediction import Choice
from topodiag.nccl.settings import Settings, read_settings
from topodiag.nccl.tuning.choice import LARGE_BYTES, busbw_factor, changes, choose, predicted_us, sweep
from topodiag.nccl.tuning.tuning import tuning_table
from topodiag.nccl.tuning.tuning_constants import COLLECTIVES
from topodiag.nccl.tuning.tuning_model import Cell

NOTHING_SET = Settings()
SIZES = tuple(8 << i for i in range(31))


def chosen(shape: CommShape, collective: str, nbytes: int, **env: str) -> tuple[str, str] | None:
    settings = read_settings(env, shape.minor)
    choice = choose(shape, tuning_table(shape, settings), settings, collective, nbytes)
    return (choice.algorithm, choice.protocol) if choice else None


def swept(shape: CommShape, collective: str) -> tuple[Choice, ...]:
    return sweep(shape, tuning_table(shape, NOTHING_SET), NOTHING_SET, collective, SIZES)


def test_one_node_of_h100_reduces_small_sizes_by_ring_and_large_ones_in_the_switch() -> None:
    assert chosen(h100(28), "AllReduce", 1024) == ("Ring", "LL")
    assert chosen(h100(28), "AllReduce", 1 << 30) == ("NVLS", "Simple")
    assert chosen(h100(28), "AllReduce", 1 << 30, NCCL_ALGO="^NVLS") == ("Ring", "Simple")


def test_without_nvls_channels_its_cells_are_passed_over() -> None:
    assert chosen(replace(h100(28), nvls_channels=0), "AllReduce", 1 << 30) == ("Ring", "Simple")


def test_nvls_gathered_only_within_a_node_up_to_2_26() -> None:
    for minor, runs in ((26, None), (28, ("NVLS", "Simple"))):
        shape = replace(h100(minor, 2), collnet=True, nvls_heads=8)
        assert tuning_table(shape, NOTHING_SET)["AllGather"]["NVLS"]["Simple"][1] > 0
        assert chosen(shape, "AllGather", 1 << 30, NCCL_ALGO="NVLS") == runs
        assert chosen(h100(minor), "AllGather", 1 << 30, NCCL_ALGO="NVLS") == ("NVLS", "Simple")


def test_rings_come_back_where_what_the_lists_left_may_not_run() -> None:
    """NVLS of two nodes has a bandwidth for AllGather in 2.22, and no kernel."""
    shape = replace(h100(22, 2), collnet=True, nvls_heads=8)
    assert chosen(shape, "AllGather", 1 << 30, NCCL_ALGO="NVLS") == ("Ring", "Simple")
    assert chosen(replace(shape, minor=24), "AllGather", 1 << 30, NCCL_ALGO="NVLS") is None


def test_collnet_joins_eight_ranks_of_a_node_at_most() -> None:
    """The chain since 2.28, the direct way since 2.23."""
    for minor, local, algorithm, runs in (
        (28, 8, "CollNetChain", True),
        (28, 16, "CollNetChain", False),
        (27, 16, "CollNetChain", True),
        (27, 16, "CollNetDirect", False),
        (22, 16, "CollNetDirect", True),
    ):
        shape = h100(minor, 2)
        collnet = dict.fromkeys((2, 4), shape.graphs[0])
        shape = replace(
            shape, nranks=2 * local, local_ranks=(local,) * 2, collnet=True, graphs={**shape.graphs, **collnet}
        )
        assert (chosen(shape, "AllReduce", 1 << 30, NCCL_ALGO=algorithm) == (algorithm, "Simple")) is runs


def test_nothing_is_chosen_where_nothing_can_run() -> None:
    shape = h100(28)
    assert chosen(shape, "AllReduce", 1024, NCCL_ALGO="PAT") is None
    assert chosen(shape, "AllReduce", 1024, NCCL_ALGO="no such") is None
    assert chosen(shape, "AllToAll", 1024) is None
    for nbytes in (0, -8, 10**400):
        assert chosen(shape, "AllReduce", nbytes) is None


def test_one_rank_runs_a_ring_that_takes_no_time() -> None:
    comm_shape = replace(h100(28), nranks=1, local_ranks=(1,))
    assert choose(comm_shape, {}, NOTHING_SET, "AllReduce", 1024) == Choice(
        "AllReduce", 1024, "Ring", "Simple", 0.0, 0.0
    )


def test_a_ring_over_nodes_starts_later_from_64_bytes_per_channel_and_rank() -> None:
    shape, cell = h100(28, 4), Cell("AllReduce", "Ring", "Simple")
    entry, edge = (100.0, 200.0), 64 * 16 * 32
    assert predicted_us(shape, cell, entry)(edge - 1) == pytest.approx(100 + (edge - 1) / 2e5)
    assert predicted_us(shape, cell, entry)(edge) == pytest.approx(140 + edge / 2e5)
    assert predicted_us(replace(shape, min_sm=70), cell, entry)(edge) == pytest.approx(190 + edge / 2e5)


def test_a_tree_reaches_half_of_its_bandwidth_at_middle_sizes() -> None:
    cell, entry = Cell("AllReduce", "Tree", "Simple"), (10.0, 100.0)
    assert predicted_us(h100(28), cell, entry)(64 << 12) == pytest.approx(10 + (64 << 12) / (1e5 * 0.5))
    assert predicted_us(h100(28), cell, entry)(64 << 23) == pytest.approx(10 + (64 << 23) / 1e5)
    assert predicted_us(h100(21), cell, entry)(8) == pytest.approx(10 + 8 / (1e5 * 0.9))
    assert predicted_us(h100(22), cell, entry)(8) == pytest.approx(10 + 8 / 1e5)


def test_an_nvls_tree_is_corrected_like_a_tree_on_blackwell_since_2_29() -> None:
    cell, entry, nbytes = Cell("AllReduce", "NVLSTree", "Simple"), (10.0, 100.0), 64 << 23
    for minor, sm, arch, factor in ((28, 100, 1, 1), (29, 100, 1, 0.9), (29, 90, 1, 1), (29, 100, 3, 1)):
        shape = replace(h100(minor, 2), min_sm=sm, max_sm=sm, cpu_arch=arch)
        assert predicted_us(shape, cell, entry)(nbytes) == pytest.approx(10 + nbytes / (1e5 * factor))


def test_large_operations_reach_the_bandwidth_of_the_ring() -> None:
    """8 channels of 48 GB/s: what nccl-tests shows is at most 384 GB/s."""
    shape = replace(h100(28, 4), graphs={number: h100(28, 4).graphs[number] for number in (0, 1)})
    table = tuning_table(shape, NOTHING_SET)
    for collective in ("AllReduce", "AllGather", "ReduceScatter", "Broadcast"):
        choice = choose(shape, table, NOTHING_SET, collective, LARGE_BYTES)
        assert choice.busbw_gbs == pytest.approx(384, rel=0.02)
    comm_shape = replace(shape, nranks=1, local_ranks=(1,))
    nothing = choose(comm_shape, table, NOTHING_SET, "AllReduce", LARGE_BYTES)
    assert nothing is None or nothing.busbw_gbs == 0


def test_bus_bandwidth_is_that_of_nccl_tests() -> None:
    assert [busbw_factor(collective, 8) for collective in COLLECTIVES] == [1, 1, 7 / 8, 7 / 8, 14 / 8]


def test_the_byte_where_the_choice_changes_is_found() -> None:
    shape = h100(28, 2)
    table = tuning_table(shape, NOTHING_SET)
    choices = changes(shape, table, NOTHING_SET, "AllReduce", SIZES)
    assert choices[0].bytes == SIZES[0]
    for before, after in pairwise(choices):
        below = choose(shape, table, NOTHING_SET, "AllReduce", after.bytes - 1)
        assert (below.algorithm, below.protocol) == (before.algorithm, before.protocol)
        assert (after.algorithm, after.protocol) != (before.algorithm, before.protocol)
    kinds = {(choice.algorithm, choice.protocol) for choice in swept(shape, "AllReduce")}
    assert kinds <= {(choice.algorithm, choice.protocol) for choice in choices}


def test_a_sweep_keeps_the_order_of_its_sizes_and_leaves_out_none_that_can_run() -> None:
    choices = swept(one_gpu_nodes(28, 4), "AllGather")
    assert tuple(choice.bytes for choice in choices) == SIZES
    assert {choice.algorithm for choice in choices} <= {"Ring", "PAT"}


@given(shapes(), st.sampled_from(COLLECTIVES))
def test_twice_the_bytes_take_longer(shape: CommShape, collective: str) -> None:
    """Not every byte more: NCCL's correction of trees steps up at powers of two, by less than a half."""
    times = [choice.time_us for choice in swept(shape, collective)]
    assert times == sorted(times)
    assert len(set(times)) == len(times)


@given(shapes(), st.sampled_from(COLLECTIVES), st.integers(1, 1 << 40))
def test_the_choice_is_the_fastest_that_the_table_has(shape: CommShape, collective: str, nbytes: int) -> None:
    table = tuning_table(shape, NOTHING_SET)
    choice = choose(shape, table, NOTHING_SET, collective, nbytes)
    entry = table[collective][choice.algorithm][choice.protocol]
    assert choice.time_us == predicted_us(shape, Cell(collective, choice.algorithm, choice.protocol), entry)(nbytes)
    for protocol, ring in table[collective]["Ring"].items():
        if ring[1] > 0:
            assert choice.time_us <= predicted_us(shape, Cell(collective, "Ring", protocol), ring)(nbytes)
