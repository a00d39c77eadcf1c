"""Texts of several jobs of a scheduler are told apart by the numbers in their names."""

from pathlib import Path

from tests.files import laid
from tests.tables import examples, with_texts
from topodiag.api import diagnose
from topodiag.app.case.job_numbers import job_number
from topodiag.model.verdict import State


@examples("name", "number")
def test_the_number_of_a_job_stands_in_the_names_that_a_scheduler_gives(name: str, number: str) -> None:
    assert job_number(name) == number


@examples("texts", "states")
def test_each_number_is_a_job(tmp_path: Path, texts: dict[str, str], states: dict[str, State]) -> None:
    laid(tmp_path, {name: with_texts(text, __file__) for name, text in texts.items()})
    verdict = diagnose(str(tmp_path)).verdict
    assert {job.name: job.state for job in verdict.jobs} == states
