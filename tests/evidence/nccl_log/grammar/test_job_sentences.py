"""Words of frameworks for ranks whose calls differ, and texts in which the same words tell of nothing wrong."""

from pathlib import Path

from tests.pasted import loud
from tests.tables import examples
from topodiag.evidence.nccl_log.grammar.job_lines import said_of


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
