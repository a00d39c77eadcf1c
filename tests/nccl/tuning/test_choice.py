"""What NCCL runs for a size: by the least time of its table, as far as the combination may run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.tuning_shapes import graph, h100, one_gpu_nodes, shapes
from tests.tables import examples
from topodiag.model.nccl_enums import CpuArch, busbw_factor
from topodiag.nccl.graph.graph import CommShape
from topodiag.nccl.prediction import Choice
from topodiag.nccl.settings import Settings, read_settings
from topodiag.nccl.tuning.choice import LARGE_BYTES, choose, predicted_us, sweep
from topodiag.nccl.tuning.tuning import explain_entry, tuning_table
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


# --- The tuning model of NCCL 2.31 and 2.32, against what their own sources make of the same communicators


MINORS = (31, 32)
TRUTHS: dict[int, dict[str, dict[str, Any]]] = {
    minor: json.loads(Path(__file__).with_name(f"truth_2_{minor}.json").read_text()) for minor in MINORS
}


def gb200(minor: int, nodes: int, net_gbs: float) -> CommShape:
    return replace(
        h100(minor, nodes),
        nranks=4 * nodes,
        local_ranks=(4,) * nodes,
        min_sm=100,
        max_sm=100,
        cpu_arch=CpuArch.ARM,
        min_net_gbs=net_gbs,
    )


def shapes_of(minor: int) -> dict[str, CommShape]:
    one, two, four = h100(minor, 1), h100(minor, 2), h100(minor, 4)
    collnet = graph(8, 40, minor=minor, types=("NVL", "PIX"))
    return {
        "h100-1": one,
        "h100-2": two,
        "h100-4-amd": h100(minor, 4, vendor=2),
        "h100-2-phb": h100(minor, 2, inter_type="PHB"),
        "h100-2-phb-ll128": h100(minor, 2, inter_type="PHB"),
        "h100-2-lists": two,
        "one-gpu-16": one_gpu_nodes(minor, 16),
        "h100-8-4-ranks": replace(two, nranks=12, local_ranks=(8, 4)),
        "h100-4-collnet": replace(four, collnet=True, nvls_heads=8, graphs={**four.graphs, 2: collnet, 4: collnet}),
        "b200-1": replace(one, min_sm=100, max_sm=100),
        "b200-2": replace(two, min_sm=100, max_sm=100),
        "gb200-2": gb200(minor, 2, 97.0),
        "gb200-4": gb200(minor, 4, 97.0),
        "gb200-2-slow": gb200(minor, 2, 50.0),
    }


CASES = [(minor, name) for minor in MINORS for name in shapes_of(minor)]


@pytest.mark.parametrize("minor", MINORS)
def test_every_shape_of_the_truth_is_compared(minor: int) -> None:
    assert shapes_of(minor).keys() == TRUTHS[minor].keys()


@pytest.mark.parametrize(("minor", "name"), CASES)
def test_each_cell_of_the_table_is_nccls(minor: int, name: str) -> None:
    truth = TRUTHS[minor][name]
    table = tuning_table(shapes_of(minor)[name], read_settings(truth["env"], minor))
    values_by_name = {
        f"{collective} {algorithm} {protocol}": pytest.approx(cell, rel=1e-4)
        for collective, rows in table.items()
        for algorithm, row in rows.items()
        for protocol, cell in row.items()
        if cell[1] > 0
    }
    assert {key: tuple(cell) for key, cell in truth["cells"].items()} == values_by_name


@pytest.mark.parametrize(("minor", "name"), CASES)
def test_each_choice_and_its_time_are_nccls(minor: int, name: str) -> None:
    truth, shape = TRUTHS[minor][name], shapes_of(minor)[name]
    settings = read_settings(truth["env"], minor)
    table = tuning_table(shape, settings)
    for asked, said in truth["choices"].items():
        collective, _, size = asked.partition(" ")
        chosen = choose(shape, table, settings, collective, int(size))
        assert (f"{chosen.algorithm} {chosen.protocol}" if chosen else "") == said.rpartition(" ")[0], asked
        assert chosen is None or chosen.time_us == pytest.approx(float(said.rpartition(" ")[2]), rel=1e-4), asked


def why(shape: CommShape, protocol: str, **env: str) -> str:
    return explain_entry(shape, read_settings(env, shape.minor), "AllReduce", "Ring", protocol)[-1].formula


def test_ll128_can_be_forced_where_it_is_not_safe_as_before() -> None:
    for minor in (30, 31):
        far = h100(minor, 2, inter_type="PHB")
        assert "within PXN" in why(far, "LL128")
        assert "within PXN" not in why(far, "LL128", NCCL_PROTO="LL128")


def test_pat_between_nodes_of_several_gpus_runs_where_a_list_leaves_nothing_else() -> None:
    for minor, asked in ((30, ""), (31, "PAT")):
        shape = replace(h100(minor, 4), nvls_heads=8)
        chosen = []
        for env in ({}, {"NCCL_ALGO": "PAT"}):
            settings = read_settings(env, minor)
            choice = choose(shape, tuning_table(shape, settings), settings, "AllGather", 1 << 20)
            chosen.append(choice.algorithm if choice else "")
        assert chosen[0] != "PAT"
        assert (chosen[1] == "PAT") == bool(asked)


def test_the_rings_of_blackwell_start_slower_on_one_node_too() -> None:
    times = {}
    for minor in (30, 31):
        shape = replace(h100(minor), min_sm=100, max_sm=100)
        rings = {"AllGather": {"Ring": {"Simple": (10.0, 50.0)}}}
        choice = choose(shape, rings, read_settings({}, minor), "AllGather", 1 << 20)
        times[minor] = choice.time_us if choice else 0.0
    assert times[31] - times[30] == pytest.approx(4.0)


def test_from_2_32_on_the_plateau_of_blackwells_rings_grows_with_their_steps_and_is_for_allreduce_too() -> None:
    def slower(minor: int, collective: str, ranks: int, nbytes: int) -> float:
        shape = replace(h100(minor), min_sm=100, max_sm=100, nranks=ranks, local_ranks=(ranks,), channels=1)
        choice = choose(
            shape, {collective: {"Ring": {"Simple": (10.0, 50.0)}}}, read_settings({}, minor), collective, nbytes
        )
        return round((choice.time_us - nbytes / 50e3) / 10, 4)

    assert slower(31, "AllReduce", 8, 1 << 20) == 1.0
    assert slower(32, "AllReduce", 8, 1 << 20) == 1.4
    assert slower(32, "AllGather", 2, 1 << 20) == 1.0, "a ring of one step has no plateau"
    assert slower(32, "AllGather", 3, 96 << 10) == 1.3
    assert slower(32, "AllReduce", 8, 8 * (384 << 10)) == 1.35, "it fades from 256 to 512 KiB a channel and rank"
    assert slower(32, "AllReduce", 8, 8 << 20) == 1.3


def test_a_list_of_algorithms_for_one_collective_leaves_nothing_to_another_that_only_protocols_name() -> None:
    env = {"NCCL_ALGO": "allreduce:ring", "NCCL_PROTO": "Simple"}
    for minor, left in ((30, True), (31, False)):
        shape, settings = h100(minor, 2), read_settings(env, minor)
        assert bool(choose(shape, tuning_table(shape, settings), settings, "Broadcast", 1 << 20)) == left


def test_of_two_equally_fast_ones_the_last_is_taken() -> None:
    flat = {"AllReduce": {"Tree": {"Simple": (10.0, 50.0)}, "NVLS": {"Simple": (10.0, 50.0)}}}
    size, said = 1 << 40, {}
    for minor in (30, 31):
        chosen = choose(h100(minor), flat, read_settings({}, minor), "AllReduce", size)
        said[minor] = chosen and chosen.algorithm
    assert said == {30: "Tree", 31: "NVLS"}
