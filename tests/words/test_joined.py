"""Sets of things that were joined two by two."""

from hypothesis import given
from hypothesis import strategies as st

from topodiag.words.joined import Sets


def test_a_thing_that_was_joined_to_none_is_its_own_root() -> None:
    assert Sets[str]().root("a") == "a"


def test_the_root_of_two_sets_that_are_joined_is_that_of_the_other() -> None:
    sets = Sets[str]()
    sets.join("a", "b")
    sets.join("c", "a")
    assert sets.roots() == {"a": "b", "b": "b", "c": "b"}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))))
def test_what_a_chain_of_pairs_joins_has_one_root(pairs: list[tuple[int, int]]) -> None:
    sets = Sets[int]()
    reached = {number: {number} for number in range(10)}
    for one, other in pairs:
        sets.join(one, other)
        both = reached[one] | reached[other]
        for number in both:
            reached[number] = both
    for one in range(10):
        assert {other for other in range(10) if sets.root(other) == sets.root(one)} == reached[one]
