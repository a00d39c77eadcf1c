"""What NCCL runs for a size: by the least time of its table, as far as the combination may run."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.tuning_shapes import h100, one_gpu_nodes, shapes
from tests.tables import examples
from topodiag.nccl.graph.graph import CommShape
from topodiag.nccl.prediction import Choice
from topodiag.nccl.settings import Settings, read_settings
from topodiag.nccl.tuning.choice import LARGE_BYTES, busbw_factor, changes, choose, predicted_us, sweep
from topodiag.nccl.tuning.tuning import tuning_table
from topodiag.nccl.tuning.tuning_constants import COLLECTIVES
from topodiag.nccl.tuning.tuning_model import Cell

NOTHING_SET = Settings()
SIZES = tuple(8 << i for i in range(31))


def swept(shape: CommShape, collective: str) -> tuple[Choice, ...]:
    return sweep(shape, tuning_table(shape, NOTHING_SET), NOTHING_SET, collective, SIZES)


def shape_of(minor: int, nodes: int, shape: dict[str, Any]) -> CommShape:
    """A job on DGX H100s with other values of its fields, and with CollNet's graphs where `collnet_ranks` of a node are
    joined."""
    changes = dict(shape)
    made = h100(minor, nodes)
    if local := changes.pop("collnet_ranks", 0):
        graphs = {**made.graphs, **dict.fromkeys((2, 4), made.graphs[0])}
        changes |= {"nranks": nodes * local, "local_ranks": (local,) * nodes, "collnet": True, "graphs": graphs}
    return replace(made, **changes)


@examples("minor", "nodes", "shape", "collective", "nbytes", "env", "runs")
def test_what_is_chosen(
    *, minor: int, nodes: int, shape: dict[str, Any], collective: str, nbytes: int, env: dict[str, str], runs: str
) -> None:
    made = shape_of(minor, nodes, shape)
    settings = read_settings(env, minor)
    choice = choose(made, tuning_table(made, settings), settings, collective, nbytes)
    assert (f"{choice.algorithm} {choice.protocol}" if choice else "nothing") == runs


def test_a_number_of_bytes_beyond_any_machine_is_not_chosen_for() -> None:
    assert choose(h100(28), tuning_table(h100(28), NOTHING_SET), NOTHING_SET, "AllReduce", 10**400) is None


def test_nvls_of_two_nodes_has_a_bandwidth_for_allgather_before_it_has_a_kernel() -> None:
    shape = replace(h100(26, 2), collnet=True, nvls_heads=8)
    assert tuning_table(shape, NOTHING_SET)["AllGather"]["NVLS"]["Simple"][1] > 0


@examples("minor", "nodes", "shape", "algorithm", "entry", "nbytes", "starts_us", "share")
def test_what_a_time_is_made_of(
    *,
    minor: int,
    nodes: int,
    shape: dict[str, Any],
    algorithm: str,
    entry: tuple[float, float],
    nbytes: int,
    starts_us: float,
    share: float,
) -> None:
    """A start and the bytes at a share of the bandwidth in the table."""
    time_us = predicted_us(shape_of(minor, nodes, shape), Cell("AllReduce", algorithm, "Simple"), entry)(nbytes)
    assert time_us == pytest.approx(starts_us + nbytes / (entry[1] * 1e3 * share))


def test_one_rank_runs_a_ring_that_takes_no_time() -> None:
    comm_shape = replace(h100(28), nranks=1, local_ranks=(1,))
    assert choose(comm_shape, {}, NOTHING_SET, "AllReduce", 1024) == Choice(
        "AllReduce", 1024, "Ring", "Simple", 0.0, 0.0
    )


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
