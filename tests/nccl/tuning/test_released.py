"""The tuning model of NCCL 2.31 and 2.32, against what their own sources make of the same communicators.

`truth_2_31.json` and `truth_2_32.json` hold what the rules of
src/tuning/{cost_model,ring,tree,nvls,collnet,pat,tuning_general}.cc of v2.31.2 and v2.32.3 gave when they were compiled
by themselves and run on these shapes: latency and bandwidth of each cell, and the choice with its time by size. The
constants of 2.32 are those of the library that NVIDIA released.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.nccl.tuning_shapes import graph, h100, one_gpu_nodes
from topodiag.model.nccl_enums import CpuArch
from topodiag.nccl.graph.graph import CommShape
from topodiag.nccl.settings import read_settings
from topodiag.nccl.tuning.choice import choose
from topodiag.nccl.tuning.tuning import explain_entry, tuning_table

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


def shapes(minor: int) -> dict[str, CommShape]:
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


CASES = [(minor, name) for minor in MINORS for name in shapes(minor)]


@pytest.mark.parametrize("minor", MINORS)
def test_every_shape_of_the_truth_is_compared(minor: int) -> None:
    assert shapes(minor).keys() == TRUTHS[minor].keys()


@pytest.mark.parametrize(("minor", "name"), CASES)
def test_each_cell_of_the_table_is_nccls(minor: int, name: str) -> None:
    truth = TRUTHS[minor][name]
    table = tuning_table(shapes(minor)[name], read_settings(truth["env"], minor))
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
    truth, shape = TRUTHS[minor][name], shapes(minor)[name]
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
