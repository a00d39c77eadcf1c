"""Which demands count most, and which ranks they join."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topodiag.model.cluster import Demand
from topodiag.placement.price import heaviest_first, labels


def demand(name: str, groups: list[list[int]], size: float, *, together: bool = False) -> Demand:
    return Demand(name, np.asarray(groups, np.int64), bytes=size, keep_together=together)


def test_families_join_what_any_group_joins() -> None:
    chain = [demand("a", [[0, 1], [1, 2], [3, 4]], 1.0)]
    assert labels(6, chain)[0].tolist() == [0, 0, 0, 3, 3, 5]


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


def test_what_belongs_together_comes_before_what_is_merely_large() -> None:
    large, inside = demand("dp", [[0, 1]], 1e9), demand("tp", [[0, 1]], 1e6, together=True)
    assert [each.dimension for each in heaviest_first([large, inside])] == ["tp", "dp"]
