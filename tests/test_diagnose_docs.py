"""docs/diagnose.md shows what `topodiag diagnose` prints, and explains every line, state and status of the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.shown import ROOT, assert_printed, shown_on
from topodiag.model.verdict import CauseStatus, State

PAGE = ROOT / "docs" / "diagnose.md"
SHOWN = shown_on(PAGE)
DRAWN = Path(ROOT / "topodiag" / "report" / "verdict")


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[shown[:60] for shown, _ in SHOWN])
def test_what_the_page_shows_is_what_the_program_prints(command: str, output: str) -> None:
    assert_printed(command, output)


def test_the_page_shows_a_fault_and_a_healthy_machine() -> None:
    assert [output.split()[1] for _, output in SHOWN] == ["FAILED", "SLOW", "HEALTHY"]


def test_every_state_and_status_is_explained() -> None:
    text = PAGE.read_text()
    for state in State:
        assert f"| {state.value.replace('_', ' ')} |" in text
    for status in set(CauseStatus) - {CauseStatus.UNKNOWN}:
        assert f"| {status.value} |" in text


def test_every_label_of_the_page_is_explained() -> None:
    text = PAGE.read_text()
    drawn = "".join(path.read_text() for path in DRAWN.glob("*.py"))
    labels = set(re.findall(r'(?:page\.entry\(|_draw_lines\(page, |label = )"([a-z ]+)"', drawn))
    assert labels >= {"do", "cost", "verdict", "where", "evidence", "next", "ruled out", "read"}
    assert sorted(label for label in labels if f"`{label}`" not in text) == []
