"""Texts of the field, jobs of a real GPU and incidents are judged right, but for those of the misses.toml beside them,
which says of each what is missed."""

import tomllib
from itertools import chain
from pathlib import Path

import pytest

import topodiag
from benchmarks import field, incidents, live
from topodiag.checks.registry import ids

MISSES: dict[str, dict[str, str]] = {
    room.FOLDER.name: tomllib.loads((room.FOLDER / "misses.toml").read_text())["misses"]
    for room in (field, incidents, live)
}
TEXTS = field.cases()
INCIDENTS = incidents.incidents()
LIVE = tomllib.loads((live.FOLDER / "truths.toml").read_text())


def assert_right(right: bool, room: Path, name: str, said: str) -> None:
    missed = name in MISSES[room.name]
    assert right is not missed, f"{name} is right now: take it off {room.name}/misses.toml" if right else said


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case.name)
def test_a_text_of_the_field_is_judged_right(case: field.Case) -> None:
    made = field.score(case)
    text = f"said {' '.join(made.ids) or '-'}; false: {made.false}; not read: {made.unread}; refused: {made.refused}"
    assert_right(made.right, field.FOLDER, case.name, text)


@pytest.mark.parametrize("name", live.names())
def test_a_real_job_is_judged_right(name: str) -> None:
    made = live.score(name)
    assert_right(made.right, live.FOLDER, name, f"said {' '.join(made.ids) or made.refused or '-'}: {made.headline}")


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.name)
def test_an_incident_is_judged_right(incident: incidents.Incident) -> None:
    made = incidents.score(incident)
    text = f"said {' '.join(made.causes) or '-'}: {'; '.join(made.misses)}"
    assert_right(made.right, incidents.FOLDER, incident.name, text)


def test_the_lists_of_misses_name_what_is_there_and_say_why() -> None:
    names = {"field": {case.name for case in TEXTS}, "incidents": {each.name for each in INCIDENTS}, "live": {*LIVE}}
    assert all(set(missed) <= names[room] for room, missed in MISSES.items())
    assert all(why.strip() for missed in MISSES.values() for why in missed.values())


def test_each_folder_of_a_real_job_has_a_truth_that_names_checks_and_each_truth_a_folder() -> None:
    assert {path.name for path in live.FOLDER.iterdir() if path.is_dir()} == set(LIVE)
    assert {each for truth in LIVE.values() for each in truth["first"]} <= set(ids())


def test_the_incidents_have_a_cause_of_its_own_each() -> None:
    truths = [incident.truth for incident in INCIDENTS]
    numbers = [truth["cause"] for truth in truths if truth["root_causes"]]
    assert len(INCIDENTS) == 44
    assert len(numbers) == len(set(numbers)) + 1 == 38  # a slow PCIe link: by a table, and by the steps of a training
    assert sum(len(truth["root_causes"]) >= 2 for truth in truths) >= 8
    assert sum(bool(truth["distractors"]) for truth in truths) >= 8
    assert all(
        truth["sources"] and all(source.startswith("https://") for source in truth["sources"]) for truth in truths
    )


def test_a_cause_whose_share_of_a_step_is_what_the_steps_lost_explains_them() -> None:
    """The steps follow from bytes and wires (fixtures/generate/incidents/steps.py), not from the model of a step."""
    folder = incidents.FOLDER / "a-gpu-link-stuck-at-gen2"
    verdict = topodiag.diagnose([str(path) for path in folder.iterdir() if path.name != "truth.json"]).result.verdict
    price = verdict.causes[0].price
    assert price.step_agrees
    assert "the cause explains it" in price.step_says
    assert not any("no cause that is known began then" in line for line in verdict.not_explained)


def test_the_folder_stays_small() -> None:
    size = sum(path.stat().st_size for path in chain.from_iterable(incident.path.rglob("*") for incident in INCIDENTS))
    assert size < 2_400_000
