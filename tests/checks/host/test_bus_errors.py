"""Bus errors that are those of shared memory without room."""

from __future__ import annotations

from pathlib import Path

from tests.pasted import chain, said
from tests.tables import examples


@examples("text")
def test_a_bus_error_of_nccl_or_without_a_page_is_shared_memory_without_room(tmp_path: Path, text: str) -> None:
    assert chain(said(tmp_path, text))[:2] == [("HST001", ""), ("JOB009", "HST001")]


@examples("text")
def test_another_bus_error_or_signal_says_nothing_of_shared_memory(tmp_path: Path, text: str) -> None:
    assert "HST001" not in [check for check, _ in chain(said(tmp_path, text))]
