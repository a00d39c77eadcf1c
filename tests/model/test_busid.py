"""PCI bus ids come to one spelling, whatever tool wrote them."""

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import examples
from topodiag.model.busid import normalise_bus_id, slot_of
from topodiag.model.nccl_tree import family_of


@examples("written", "meant")
def test_every_spelling_means_one_function(written: str, meant: str | None) -> None:
    assert normalise_bus_id(written) == meant


def test_functions_of_one_card_share_a_slot() -> None:
    assert slot_of("0000:1b:00.0") == slot_of("0000:1b:00.1")


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFF), st.integers(0, 0x1F), st.integers(0, 7))
def test_normalising_twice_changes_nothing(domain: int, bus: int, dev: int, fn: int) -> None:
    once = normalise_bus_id(f"{domain:08X}:{bus:02X}:{dev:02X}.{fn:X}")
    assert once == f"{domain:04x}:{bus:02x}:{dev:02x}.{fn}"
    assert normalise_bus_id(once) == once


# --- the family of a processor, however NCCL writes it --------------------------------------------------------


@examples("written", "family")
def test_both_spellings_are_one_family(written: int, family: int) -> None:
    assert family_of(written) == family


@given(st.integers(1, 15))
def test_an_extended_family_is_added_to_the_base(extended: int) -> None:
    assert family_of(15 + (extended << 4)) == 15 + extended
