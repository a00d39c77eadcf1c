"""One of several alike beside the others."""

from tests.tables import examples
from topodiag.checks.shared.comparisons import far, majority, unlike


@examples("values", "odd")
def test_the_odd_ones_are_those_that_most_do_not_agree_with(
    values: dict[str, int], odd: tuple[str, ...] | None
) -> None:
    outliers = unlike(values)
    assert (outliers.outliers if outliers is not None else None) == odd


@examples("values", "factor", "floor", "odd")
def test_far_is_a_factor_and_a_floor_from_the_median(
    values: list[float], factor: float, floor: float, odd: tuple[int, ...] | None
) -> None:
    outlier = far(dict(enumerate(values)), factor=factor, floor=floor)
    assert (outlier.outliers if outlier is not None else None) == odd


def test_where_the_rest_do_not_agree_nobody_is_far() -> None:
    values = {"a": 10.0, "b": 10.0, "c": 16.0, "d": 40.0, "e": 10.0}
    assert far(values, factor=2.0) is not None
    assert far(values, factor=2.0, close=1.3) is None


def test_a_majority_is_more_than_half() -> None:
    assert (majority("aab"), majority("aabb"), majority("")) == ("a", None, None)
