"""Words of frameworks for ranks whose calls differ, and texts in which the same words tell of nothing wrong."""

from __future__ import annotations

from pathlib import Path

from tests.pasted import first_of, loud
from tests.tables import examples
from topodiag.evidence.nccl_log.grammar.job_lines import said_of

ABORTED = "InternalError: Collective ops is aborted by: Shape mismatch in the collective"


@examples("text")
def test_calls_that_differ_by_rank_are_told(tmp_path: Path, text: str) -> None:
    finding = first_of(tmp_path, text + "\n")
    assert (finding["id"], finding["severity"]) == ("JOB006", "warning")


@examples("text")
def test_ranks_that_others_wait_for_are_told(tmp_path: Path, text: str) -> None:
    assert first_of(tmp_path, text + "\n")["id"] == "JOB006"


@examples("text")
def test_a_start_that_waited_in_vain_is_told(tmp_path: Path, text: str) -> None:
    assert first_of(tmp_path, text + "\n")["id"] == "JOB001"


@examples("text")
def test_a_placement_group_that_ray_cannot_make_has_no_room(text: str) -> None:
    assert (said_of(text) or ("", {}))[1].get("how") == "no room"
    assert said_of("INFO that placement group creation timed out is met by another trial") is None
    assert said_of("INFO No current placement group found. Creating a new placement group.") is None


@examples("text")
def test_the_same_words_without_a_difference_accuse_nobody(tmp_path: Path, text: str) -> None:
    assert loud(tmp_path, text + "\n") == []
    pair = said_of(text)
    assert pair is None or "told" not in pair[1]
