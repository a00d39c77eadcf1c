"""Fragments cut into groups, and what bounds how many there can be."""

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.placement.small_jobs import cluster
from topodiag.placement.cut import Counts, cuts
from topodiag.placement.room import most_groups
from topodiag.placement.shares import Class, make_seats
from topodiag.placement.worth import WHOLE, weights, worths


def counted(free: list[int], most: int = 8) -> Counts:
    return tuple(free.count(have) for have in range(most + 1))


def by_trying(free: list[int], size: int, least: int) -> int:
    """The most groups, by trying every share of every node."""

    @cache
    def best(left: tuple[int, ...]) -> int:
        return max((1 + best(after) for after in after_one(left, size, 0)), default=0)

    def after_one(left: tuple[int, ...], need: int, start: int) -> Iterator[tuple[int, ...]]:
        if not need:
            yield tuple(sorted(left))
            return
        for node in range(start, len(left)):
            for share in range(least, min(left[node], need) + 1):
                yield from after_one((*left[:node], left[node] - share, *left[node + 1 :]), need - share, node + 1)

    return best(tuple(sorted(free)))


def test_four_nodes_of_seven_hold_three_groups_of_eight_in_threes_to_fives() -> None:
    assert len(cuts(counted([7, 7, 7, 7]), 8, 3, 0)) == 3
    assert len(cuts(counted([7, 7, 7, 7]), 8, 4, 0)) == 2


@given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.sampled_from([4, 6, 8]), st.integers(1, 4))
def test_no_other_cut_makes_more_groups(free: list[int], size: int, least: int) -> None:
    free = [min(have, size - 1) for have in free]
    if 2 * least <= size:
        assert len(cuts(counted(free), size, least, 0)) == by_trying(free, size, least)


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=24), st.integers(2, 12), st.integers(1, 6), st.sampled_from([0, 1])
)
def test_shares_are_there_to_be_taken(free: list[int], size: int, least: int, later: int) -> None:
    free = [min(have, size - 1) for have in free]
    if 2 * least > size:
        return
    left = list(counted(free))
    for group in cuts(counted(free), size, least, later and least):
        assert sum(share for _, share in group) == size
        for have, share in group:
            assert share >= least
            assert left[have] > 0
            left[have] -= 1
            left[have - share] += 1


def test_what_is_left_is_kept_useful_for_those_after() -> None:
    """Seven and five: one group of eight in shares of three leaves four, or nothing; four is half a group elsewhere."""
    taken = cuts(counted([7, 5]), 8, 3, 4)
    assert [sorted(share for _, share in group) for group in taken] == [[3, 5]]


@pytest.mark.parametrize("size", range(2, 11))
def test_the_shares_of_any_group_weigh_at_least_a_whole(size: int) -> None:
    for least in range(1, size // 2 + 1):
        for weight in weights(size, least):
            for parts in partitions(size, least):
                assert sum(weight[part] for part in parts) >= WHOLE


def partitions(total: int, least: int) -> list[list[int]]:
    numbers = [[total]]
    for part in range(least, total // 2 + 1):
        numbers += [[part, *rest] for rest in partitions(total - part, part) if total - part >= part]
    return numbers


def test_sevens_count_for_three_quarters_where_shares_are_three_to_five() -> None:
    assert min(worth.node[7] for worth in worths(8, 3, 8)) == WHOLE * 3 // 4
    assert min(sum(worth.node[have] for have in (7, 7, 7, 7)) for worth in worths(8, 3, 8)) < 4 * WHOLE


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 2)), min_size=1, max_size=5),
    st.sampled_from([4, 6, 8]),
    st.integers(1, 4),
)
def test_no_region_holds_more_groups_than_are_told(nodes: list[tuple[int, int]], size: int, least: int) -> None:
    if 2 * least > size:
        return
    free, leaf = [have for have, _ in nodes], [where for _, where in nodes]
    machines = cluster(free, leaf)
    ndarray = most_groups(machines, size, Class((least, 0, 0)), level=1)
    for number in set(leaf):
        mine = [have for have, where in nodes if where == number]
        assert ndarray[number] >= by_trying(mine, size, least)
    everywhere = most_groups(machines, size, Class((least, least, least)), level=3)
    assert int(everywhere.sum()) >= by_trying(free, size, least)


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3)), min_size=1, max_size=40),
    st.lists(st.integers(1, 4), min_size=3, max_size=3).map(lambda least: tuple(sorted(least))),
)
def test_seats_are_never_more_than_there_is_room_for(nodes: list[tuple[int, int]], least: tuple[int, ...]) -> None:
    free = [have for have, _ in nodes]
    machines = cluster(free, [where for _, where in nodes])
    seats = make_seats(machines, np.asarray(free, np.int64), 8, Class(least), 99)
    assert len(seats) <= int(most_groups(machines, 8, Class(least), level=3).sum())


def test_two_copies_of_every_share_need_nodes_twice_as_large() -> None:
    machines = cluster([8, 8, 7, 7], [0, 0, 0, 0])
    assert most_groups(machines, 8, Class((4, 0, 0)), level=3, copies=2).sum() == 2
    assert most_groups(machines, 8, Class(), level=3, copies=2).sum() == 0
