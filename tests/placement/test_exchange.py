"""The smallest exchange that puts ranks, or nodes, in order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topodiag.placement.exchange import exchanges


def after(labels: list[int], pairs: list[tuple[int, int]]) -> list[int]:
    numbers = list(labels)
    for one, other in pairs:
        numbers[one], numbers[other] = numbers[other], numbers[one]
    return numbers


def runs(labels: list[int]) -> int:
    return 1 + int((np.diff(labels) != 0).sum()) if labels else 0


def test_what_lies_in_order_needs_no_exchange() -> None:
    assert exchanges([0, 0, 1, 1, 2]) == []
    assert exchanges([]) == []


def test_two_of_sixty_four_nodes_are_one_exchange() -> None:
    labels = np.arange(64) // 8
    labels[[3, 40]] = labels[[40, 3]]
    assert exchanges(labels) == [(3, 40)]


def test_three_in_a_circle_are_two_exchanges() -> None:
    labels = np.arange(30) // 10
    labels[[1, 11, 21]] = labels[[11, 21, 1]]
    assert len(exchanges(labels)) == 2


def test_an_order_that_is_another_one_altogether_is_no_exchange() -> None:
    assert exchanges(np.arange(512) % 8) == []


@given(st.lists(st.integers(0, 5), max_size=40))
def test_exchanges_leave_each_kind_side_by_side(labels: list[int]) -> None:
    numbers = after(labels, exchanges(labels))
    assert sorted(numbers) == sorted(labels)
    assert runs(numbers) == len(set(labels))
