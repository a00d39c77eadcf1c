"""One of several alike beside the others."""

from __future__ import annotations

import pytest

from topodiag.checks.shared.siblings import far, majority, unlike


@pytest.mark.parametrize(
    ("values", "odd"),
    [
        ({"a": 1, "b": 1, "c": 2}, ("c",)),
        ({"a": 1, "b": 1, "c": 1}, None),
        ({"a": 1, "b": 2}, None),  # of two nobody is odd
        ({"a": 1, "b": 1, "c": 2, "d": 2}, None),  # they agree on nothing
        ({}, None),
    ],
)
def test_the_odd_ones_are_those_that_most_do_not_agree_with(
    values: dict[str, int], odd: tuple[str, ...] | None
) -> None:
    found = unlike(values)
    assert (found.odd if found is not None else None) == odd


@pytest.mark.parametrize(
    ("values", "factor", "floor", "odd"),
    [
        ([10, 10, 10, 40], 2.0, 0.0, (3,)),
        ([10, 10, 10, 40], 2.0, 50.0, None),  # a difference that nobody waits for
        ([10, 10, 40, 40], 2.0, 0.0, None),  # two kinds, and none of them odd
        ([10, 10, 10, 4], 0.5, 0.0, (3,)),
        ([10, 10, 10, 6], 0.5, 0.0, None),
        ([10, 4], 0.5, 0.0, None),
    ],
)
def test_far_is_a_factor_and_a_floor_from_the_median(
    values: list[float], factor: float, floor: float, odd: tuple[int, ...] | None
) -> None:
    found = far(dict(enumerate(values)), factor=factor, floor=floor)
    assert (found.odd if found is not None else None) == odd


def test_where_the_rest_do_not_agree_nobody_is_far() -> None:
    values = {"a": 10.0, "b": 10.0, "c": 16.0, "d": 40.0, "e": 10.0}
    assert far(values, factor=2.0) is not None
    assert far(values, factor=2.0, close=1.3) is None


def test_a_majority_is_more_than_half() -> None:
    assert (majority("aab"), majority("aabb"), majority("")) == ("a", None, None)
