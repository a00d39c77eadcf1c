"""Ports that come and go, and adapters whose transmit queues stand still, in the words of any system's log."""

from __future__ import annotations

from pathlib import Path

from tests.pasted import first_of, loud
from tests.tables import examples


@examples("text")
def test_a_port_that_goes_down_and_up_flaps_in_any_systems_words(text: str, tmp_path: Path) -> None:
    assert first_of(tmp_path, text)["id"] == "NIC003"


@examples("line")
def test_an_adapter_whose_transmit_queue_stands_still_is_faulty_whatever_its_driver(line: str, tmp_path: Path) -> None:
    assert first_of(tmp_path, f"{line}\n")["id"] == "NIC003"


@examples("text")
def test_a_start_an_empty_port_and_what_is_no_adapter_of_the_node_are_no_fault(text: str, tmp_path: Path) -> None:
    assert not loud(tmp_path, text)
