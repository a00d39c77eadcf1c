"""Every check is registered, documented and has its fixtures."""

import inspect
import json
import re
from pathlib import Path

import pytest

from topodiag.checks import registry
from topodiag.checks.interface import NodeCheck

CASES = Path(__file__).parents[2] / "fixtures" / "checks"
SECTIONS = (
    "What it finds",
    "Why it matters",
    "Evidence it reads",
    "When it stays silent",
    "How to confirm",
    "How to fix",
    "References",
)


def _judges_nodes(check_id: str) -> bool:
    """Whether bundles of nodes are its fixtures; those of checks of jobs are built in tests/checks/jobs.py."""
    return any(issubclass(each, NodeCheck) for each in registry.check_classes(check_id))


@pytest.mark.parametrize("check_id", registry.ids())
def test_the_page_has_every_section_in_order(check_id: str) -> None:
    cls = registry.check_class(check_id)
    page = inspect.cleandoc(cls.__doc__ or "")  # Python indents it up to 3.12
    assert page.startswith(f"{check_id}: ")
    places = [page.find(f"\n{section}\n") for section in SECTIONS]
    assert -1 not in places, dict(zip(SECTIONS, places, strict=True))
    assert places == sorted(places)


@pytest.mark.parametrize("check_id", registry.ids())
def test_an_id_is_a_family_and_a_number(check_id: str) -> None:
    assert re.fullmatch(r"[A-Z0-9]{3}[0-9]{3}", check_id)


@pytest.mark.parametrize("check_id", [id_name for id_name in registry.ids() if _judges_nodes(id_name)])
def test_fixtures_fire_it_keep_it_silent_and_leave_it_unknown(check_id: str) -> None:
    expectations = {case["expect"] for case in json.loads((CASES / check_id / "cases.json").read_text())}
    assert "finding" in expectations
    assert expectations & {"clean", "not_applicable"}
    assert "unknown" in expectations


def test_there_is_no_check_of_another_name() -> None:
    assert registry.check_class("NVL999") is None
