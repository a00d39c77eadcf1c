"""The family of a processor, however NCCL writes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.model.cpuid import family_of


@pytest.mark.parametrize(
    ("written", "family"),
    [(6, 6), (7, 7), (15, 15), (23, 23), (25, 25), (26, 26), (143, 23), (175, 25), (191, 26), (0, 0), (-1, -1)],
)
def test_both_spellings_are_one_family(written: int, family: int) -> None:
    assert family_of(written) == family


@given(st.integers(1, 15))
def test_an_extended_family_is_added_to_the_base(extended: int) -> None:
    assert family_of(15 + (extended << 4)) == 15 + extended
