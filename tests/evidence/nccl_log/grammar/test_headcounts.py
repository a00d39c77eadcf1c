"""How many of how many came to where a job meets, and starts that only go on."""

from __future__ import annotations

from pathlib import Path

from tests.pasted import first_of, loud
from tests.tables import examples
from topodiag.evidence.nccl_log.grammar.headcounts import absent_of
from topodiag.evidence.nccl_log.grammar.job_lines import said_of


@examples("text", "counted")
def test_a_wait_that_is_over_names_who_came(text: str, counted: dict[str, str]) -> None:
    assert absent_of(text.strip()) == counted


@examples("text")
def test_a_start_that_goes_on_counts_nobody(text: str) -> None:
    assert absent_of(text) is None


@examples("text")
def test_a_start_that_waited_in_vain_is_told(tmp_path: Path, text: str) -> None:
    assert first_of(tmp_path, text)["id"] == "JOB001"


def test_the_count_stands_in_the_finding(tmp_path: Path) -> None:
    found = first_of(tmp_path, "TimeoutError: not all ranks joined: expected 16, got 8 after 600s\n")
    assert found["message"] == "not all processes came to where the job meets: 8 of 16 did"


def test_a_start_that_counts_up_accuses_nobody(tmp_path: Path) -> None:
    text = "".join(f"INFO {at} of 4 ranks joined so far, waiting\n" for at in range(1, 4))
    assert loud(tmp_path, text + "INFO all ranks joined\nINFO step 1\n") == []
    assert loud(tmp_path, "".join(f"INFO {at}/4 workers joined, waiting for others\n" for at in range(1, 5))) == []


@examples("text")
def test_a_placement_group_that_ray_cannot_make_has_no_room(text: str) -> None:
    assert (said_of(text) or ("", {}))[1].get("how") == "no room"
    assert said_of("INFO that placement group creation timed out is met by another trial") is None
    assert said_of("INFO No current placement group found. Creating a new placement group.") is None
