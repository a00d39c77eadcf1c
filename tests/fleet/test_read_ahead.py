"""Texts that workers look through before anybody asks for them: the same as afterwards, and nothing that goes on."""

import os
import signal
import time
from pathlib import Path

import pytest

from topodiag.evidence.intake.pieces import Piece
from topodiag.fleet import read_ahead
from topodiag.fleet.workers import end_with_parent, pool_of

PIECES = {name: Piece(name, (), size) for name, size in (("a", 2), ("b", 3), ("c", 1))}


def doubled(piece: Piece) -> int:
    return 2 * piece.size


def killed(piece: Piece) -> int:
    if piece.root != str(os.getpid()):
        os.kill(os.getpid(), signal.SIGKILL)
    return piece.size


def endless(piece: Piece) -> None:
    Path(piece.root).write_text(str(os.getpid()))
    time.sleep(600)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "MUCH_BYTES", 5)
    monkeypatch.setattr(read_ahead, "_LARGE_BYTES", 2)


def test_what_was_begun_and_what_was_not_comes_once_it_is_asked_for() -> None:
    for begin in (False, True):
        with read_ahead.ReadAhead(doubled, PIECES) as looked, pool_of(2, end_with_parent) as pool:
            if begin:
                looked.begin(pool)
            assert looked.results({"a", "c", "of another input"}, 1) == {"a": 4, "c": 2}


def test_a_text_whose_worker_was_killed_is_looked_through_by_this_process() -> None:
    pieces = {name: Piece(name, (), 5, root=str(os.getpid())) for name in "ab"}
    with read_ahead.ReadAhead(killed, pieces) as looked:
        with pool_of(1, end_with_parent) as pool:
            looked.begin(pool)
        assert looked.results({"a", "b"}, 1) == {"a": 5, "b": 5}


def test_what_nobody_asked_for_ends(tmp_path: Path) -> None:
    at = tmp_path / "pid"
    with read_ahead.ReadAhead(endless, {"a": Piece("a", (), 5, root=str(at))}) as looked:
        with pool_of(1, end_with_parent) as pool:
            looked.begin(pool)
        while not (at.exists() and at.read_text()):
            time.sleep(0.01)
    with pytest.raises(ProcessLookupError):
        os.kill(int(at.read_text()), 0)
