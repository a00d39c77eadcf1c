"""NCCL's enumerations: the numbers and texts that its logs, tables and settings have."""

import pytest

from topodiag.evidence.nccl_log.grammar.grammar import choice
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
