"""Each incident of fixtures/incidents is judged right, but for those that its misses.toml lists with what is missed."""

import tomllib
from itertools import chain

import pytest

import topodiag
from benchmarks.incidents import FOLDER, Incident, incidents, score

MISSES = tomllib.loads((FOLDER / "misses.toml").read_text())["misses"]
INCIDENTS = incidents()


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.name)
def test_an_incident_is_judged_right(incident: Incident) -> None:
    made = score(incident)
    text = f"said {' '.join(made.causes) or '-'}: {'; '.join(made.misses)}"
    if incident.name in MISSES:
        assert not made.right, f"{incident.name} is right now: take it off fixtures/incidents/misses.toml"
        return
    assert made.right, text


def test_the_list_of_misses_names_incidents_that_are_there_and_says_why() -> None:
    assert set(MISSES) <= {incident.name for incident in INCIDENTS}
    assert all(why.strip() for why in MISSES.values())


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
    folder = FOLDER / "a-gpu-link-stuck-at-gen2"
    verdict = topodiag.diagnose([str(path) for path in folder.iterdir() if path.name != "truth.json"]).result.verdict
    price = verdict.causes[0].price
    assert price.step_agrees
    assert "the cause explains it" in price.step_says
    assert not any("no cause that is known began then" in line for line in verdict.not_explained)


def test_the_folder_stays_small() -> None:
    size = sum(path.stat().st_size for path in chain.from_iterable(incident.path.rglob("*") for incident in INCIDENTS))
    assert size < 2_400_000
