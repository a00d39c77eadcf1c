"""Linux cpu lists as sets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topodiag.model.cpulist import parse_cpulist
from topodiag.words.units import fold_numbers


def test_ranges_and_single_cpus() -> None:
    assert parse_cpulist("0-2,8,64-65") == {0, 1, 2, 8, 64, 65}


def test_an_empty_list_is_a_memory_only_node() -> None:
    assert parse_cpulist("") == frozenset()


@pytest.mark.parametrize("text", ["-31,64-95", "N/A", "0-", "3-1", "0-99999999999", "0x3", "٣"])
def test_a_cut_or_foreign_list_is_no_list(text: str) -> None:
    assert parse_cpulist(text) is None


@given(st.sets(st.integers(0, 1023), max_size=64))
def test_writing_and_reading_round_trips(cpus: set[int]) -> None:
    assert parse_cpulist(fold_numbers(cpus)) == cpus
