"""Captures are read alike by one process and by several."""

from pathlib import Path

import pytest

from tests.app.judge.test_history import capture
from topodiag.evidence.intake.captures import captures
from topodiag.evidence.intake.gather import gather
from topodiag.fleet import workers
from topodiag.fleet.history.capture import read_captures


def test_the_captures_are_the_same_for_any_number_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in (1, 2, 3):
        capture(tmp_path / f"{day}", "gpu07", f"2026-03-0{day}T08:00:00Z", base="no-gpu")
    intake = gather([str(tmp_path)])
    places = captures(intake).captures
    alone = list(read_captures(places, intake))
    monkeypatch.setattr(workers, "FEW", 1)
    monkeypatch.setattr(workers, "CHUNK", 1)
    monkeypatch.setattr(workers, "cpus", lambda: 2)
    assert list(read_captures(places, intake)) == alone
    assert [each.host for each in alone if not isinstance(each, str)] == ["gpu07"] * 3


def test_a_capture_that_cannot_be_read_is_said_and_the_others_are_read(tmp_path: Path) -> None:
    for day in (1, 2):
        capture(tmp_path / f"{day}", "gpu07", f"2026-03-0{day}T08:00:00Z", base="no-gpu")
    intake = gather([str(tmp_path)])
    places = captures(intake).captures
    for path in (tmp_path / "1").rglob("*"):
        if path.is_file():
            path.unlink()
    first, second = read_captures(places, intake)
    assert isinstance(first, str)
    assert not isinstance(second, str)
