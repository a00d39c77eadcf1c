"""Each incident of fixtures/incidents is judged right, but for those that its misses.toml lists with what is missed."""

from __future__ import annotations

import tomllib
from itertools import chain

import pytest

from benchmarks.incidents import FOLDER, Incident, incidents, score

MISSES = tomllib.loads((FOLDER / "misses.toml").read_text())["misses"]
INCIDENTS = incidents()


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.name)
def test_an_incident_is_judged_right(incident: Incident) -> None:
    made = score(incident)
    said = f"said {' '.join(made.causes) or '-'}: {'; '.join(made.misses)}"
    if incident.name in MISSES:
        assert not made.right, f"{incident.name} is right now: take it off fixtures/incidents/misses.toml"
        return
    assert made.right, said


def test_the_list_of_misses_names_incidents_that_are_there_and_says_why() -> None:
    assert set(MISSES) <= {each.name for each in INCIDENTS}
    assert all(why.strip() for why in MISSES.values())


def test_the_incidents_have_a_cause_of_its_own_each() -> None:
    truths = [each.truth for each in INCIDENTS]
    numbers = [truth["cause"] for truth in truths if truth["root_causes"]]
    assert len(INCIDENTS) == 42
    assert len(numbers) == len(set(numbers)) == 37
    assert sum(len(truth["root_causes"]) >= 2 for truth in truths) >= 8
    assert sum(bool(truth["distractors"]) for truth in truths) >= 8
    assert all(truth["sources"] and all(each.startswith("https://") for each in truth["sources"]) for truth in truths)


def test_the_folder_stays_small() -> None:
    size = sum(path.stat().st_size for path in chain.from_iterable(each.path.rglob("*") for each in INCIDENTS))
    assert size < 2_400_000
