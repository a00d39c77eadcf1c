"""Ranks and nodes in the order in which they are matched."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topodiag.model.cluster import Cluster, Demand, Level
from topodiag.placement.order import labels, node_order, rank_order


def demand(name: str, groups: list[list[int]], size: float, *, together: bool = False) -> Demand:
    return Demand(name, np.asarray(groups, np.int64), bytes=size, keep_together=together)


def grid(tp: int, dp: int) -> list[Demand]:
    """Tensor groups with the stride of the data dimension: what a launcher that knows nothing makes."""
    ranks = np.arange(tp * dp).reshape(tp, dp)
    return [demand("dp", ranks.tolist(), 1e6), demand("tp", ranks.T.tolist(), 1e9, together=True)]


def test_the_heaviest_groups_stand_together() -> None:
    order = rank_order(8, grid(tp=4, dp=2)).tolist()
    assert sorted(map(sorted, (order[:4], order[4:]))) == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_families_join_what_any_group_joins() -> None:
    chain = [demand("a", [[0, 1], [1, 2], [3, 4]], 1.0)]
    assert labels(6, chain)[0].tolist() == [0, 0, 0, 3, 3, 5]


def cluster(free: list[int], leaf: list[int]) -> Cluster:
    usable = np.zeros((len(free), 8), bool)
    for node, count in enumerate(free):
        usable[node, :count] = True
    numbers = np.arange(len(free))
    return Cluster(tuple(f"n{n}" for n in numbers), usable, numbers, (Level("leaf", np.asarray(leaf), 5, 45),), 1, 400)


def test_the_smallest_leaf_that_holds_the_job_is_taken() -> None:
    made = node_order(cluster([8, 8, 8, 8, 8], [0, 0, 0, 1, 1]), 16).tolist()
    assert made[:2] == [3, 4]


def test_whole_nodes_come_before_fragments() -> None:
    assert node_order(cluster([4, 8, 2], [0, 0, 0]), 8).tolist() == [1, 0, 2]


def test_nodes_without_a_free_gpu_are_left_out() -> None:
    assert 1 not in node_order(cluster([8, 0, 8], [0, 0, 0]), 8).tolist()


@given(st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=2, unique=True), min_size=1, max_size=12))
def test_families_are_what_a_search_finds(pairs: list[list[int]]) -> None:
    made = labels(10, [demand("a", pairs, 1.0)])[0].tolist()
    parent = list(range(10))

    def root(x: int) -> int:
        while parent[x] != x:
            x = parent[x]
        return x

    for a, b in pairs:
        low, high = sorted((root(a), root(b)))
        parent[high] = low
    assert made == [root(rank) for rank in range(10)]


@given(st.permutations(range(12)))
def test_an_order_holds_every_rank_once(ranks: list[int]) -> None:
    groups = np.asarray(ranks).reshape(3, 4).tolist()
    assert sorted(rank_order(12, [demand("a", groups, 1.0)]).tolist()) == list(range(12))
