"""The tuning model of NCCL 2.31, against what its own sources make of the same communicators.

`truth_2_31.json` holds what the rules of src/tuning/{cost_model,ring,tree,nvls,collnet,pat,tuning_general}.cc of
v2.31.2 gave when they were compiled by themselves and run on these shapes.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.nccl.tuning_shapes import graph, h100, one_gpu_nodes
from topodiag.nccl.graph.graph import CommShape
from topodiag.nccl.settings import read_settings
from topodiag.nccl.tuning.choice import choose
from topodiag.nccl.tuning.tuning import explain_entry, tuning_table

TRUTH: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("truth_2_31.json").read_text())
COLLNET = graph(8, 40, minor=31, types=("NVL", "PIX"))
SHAPES = {
    "h100-1": h100(31, 1),
    "h100-2": h100(31, 2),
    "h100-4-amd": h100(31, 4, vendor=2),
    "h100-2-phb": h100(31, 2, inter_type="PHB"),
    "h100-2-phb-ll128": h100(31, 2, inter_type="PHB"),
    "h100-2-lists": h100(31, 2),
    "one-gpu-16": one_gpu_nodes(31, 16),
    "h100-8-4-ranks": replace(h100(31, 2), nranks=12, local_ranks=(8, 4)),
    "h100-4-collnet": replace(
        h100(31, 4), collnet=True, nvls_heads=8, graphs={**h100(31, 4).graphs, 2: COLLNET, 4: COLLNET}
    ),
}


def test_every_shape_of_the_truth_is_compared() -> None:
    assert SHAPES.keys() == TRUTH.keys()


@pytest.mark.parametrize("name", SHAPES)
def test_each_cell_of_the_table_is_nccls(name: str) -> None:
    truth = TRUTH[name]
    table = tuning_table(SHAPES[name], read_settings(truth["env"], 31))
    made = {
        f"{collective} {algorithm} {protocol}": pytest.approx(cell, rel=1e-4)
        for collective, rows in table.items()
        for algorithm, row in rows.items()
        for protocol, cell in row.items()
        if cell[1] > 0
    }
    assert {key: tuple(cell) for key, cell in truth["cells"].items()} == made


@pytest.mark.parametrize("name", SHAPES)
def test_each_choice_is_nccls(name: str) -> None:
    truth, shape = TRUTH[name], SHAPES[name]
    settings = read_settings(truth["env"], 31)
    table = tuning_table(shape, settings)
    for asked, said in truth["choices"].items():
        collective, _, size = asked.partition(" ")
        chosen = choose(shape, table, settings, collective, int(size))
        assert (f"{chosen.algorithm} {chosen.protocol}" if chosen else "") == said, asked


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
            made = choose(shape, tuning_table(shape, settings), settings, "AllGather", 1 << 20)
            chosen.append(made.algorithm if made else "")
        assert chosen[0] != "PAT"
        assert (chosen[1] == "PAT") == bool(asked)


def test_the_rings_of_blackwell_start_slower_on_one_node_too() -> None:
    times = {}
    for minor in (30, 31):
        shape = replace(h100(minor), min_sm=100, max_sm=100)
        rings = {"AllGather": {"Ring": {"Simple": (10.0, 50.0)}}}
        made = choose(shape, rings, read_settings({}, minor), "AllGather", 1 << 20)
        times[minor] = made.time_us if made else 0.0
    assert times[31] - times[30] == pytest.approx(4.0)


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
