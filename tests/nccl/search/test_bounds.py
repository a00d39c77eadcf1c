"""How often something fits is bound by any two sets together: never below what fits, and tighter than by each alone."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

from hypothesis import given
from hypothesis import strategies as st

from topodiag.nccl.search.bounds import Choice, by_pairs, undercut, weighed

MOST = 6

ways = st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=3, unique=True)


def fitting(free: list[int], choices: list[Choice]) -> int:
    """How often one of each choice fits, by trying all."""
    whole = [
        [tuple(map(sum, zip(*taken, strict=True))) for taken in combinations_with_replacement(options, times)]
        for times, options in choices
    ]
    once = {tuple(map(sum, zip(*parts, strict=True))) for parts in product(*whole)}
    reached = {tuple(free)}
    for count in range(MOST):
        left = {tuple(a - b for a, b in zip(before, way, strict=True)) for before in reached for way in once}
        reached = {each for each in left if min(each) >= 0}
        if not reached:
            return count
    return MOST


@given(
    st.lists(st.integers(0, 12), min_size=3, max_size=3),
    st.lists(st.tuples(st.integers(1, 2), ways), min_size=1, max_size=2),
)
def test_no_more_fits_than_the_bound_says(free: list[int], choices: list[Choice]) -> None:
    kept = [(times, undercut(options)) for times, options in choices]
    assert fitting(free, choices) <= by_pairs(free, kept, MOST)


def test_two_sets_bind_where_neither_does_alone() -> None:
    """Within a socket a channel takes 6 of PCIe, across them 5 and 4 of the link between. PCIe alone has room for 9."""
    ways: list[Choice] = [(1, [(6, 0), (5, 4)])]
    assert by_pairs([48, 4], ways, 9) == 8
    assert by_pairs([46, 4], ways, 9) == 7


def test_ways_that_take_no_less_of_anything_are_left_out() -> None:
    assert set(undercut([(1, 2), (2, 2), (2, 1), (3, 3)])) == {(1, 2), (2, 1)}


@given(st.integers(2, 60).flatmap(lambda size: st.tuples(st.just(size), st.integers(1, size // 2))), st.data())
def test_pieces_that_fit_together_weigh_no_more_than_the_link(sized: tuple[int, int], data: st.DataObject) -> None:
    size, part = sized
    weight, left, pieces = weighed(size, part), size, []
    while left and data.draw(st.booleans()):
        pieces.append(data.draw(st.integers(1, left)))
        left -= pieces[-1]
    assert sum(map(weight, pieces)) <= weight(size)


def test_two_pieces_of_more_than_half_weigh_more_than_the_link() -> None:
    weight = weighed(48, 24)
    assert 2 * weight(26) > weight(48) >= 2 * weight(24)
