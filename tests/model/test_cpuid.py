"""The family of a processor, however NCCL writes it."""

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.model.nccl_tree import family_of


@examples("written", "family")
def test_both_spellings_are_one_family(written: int, family: int) -> None:
    assert family_of(written) == family


@given(st.integers(1, 15))
def test_an_extended_family_is_added_to_the_base(extended: int) -> None:
    assert family_of(15 + (extended << 4)) == 15 + extended
