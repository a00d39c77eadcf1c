"""What goes wrong is one line with its remedy, and code 2."""

from __future__ import annotations

import io
import shlex
import sys

import pytest

from tests import program
from tests.shown import ROOT
from tests.tables import examples
from topodiag.cli.errors import print_note


@examples("command", "words")
def test_an_error_is_one_line_with_its_remedy(command: str, words: str) -> None:
    done = program.run(*shlex.split(command), cwd=ROOT)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("topodiag: error: ")
    assert len(done.stderr.splitlines()) <= 2
    assert words in done.stderr


def test_a_family_of_checks_is_listed() -> None:
    done = program.run("explain", "GPU")
    assert done.returncode == 0
    *listed, last = done.stdout.splitlines()
    assert all(line.startswith("GPU0") for line in listed)
    assert last == "topodiag explain GPU001 for one"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_breaks_an_error_between_words_and_a_file_has_it_whole(monkeypatch, terminal: bool) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "40")
    words = "topodiag: error: No such option '--redacted'. (Did you mean one of: '--recompute', '--redact'?)"
    print_note(words)
    lines = stream.getvalue().splitlines()
    assert " ".join(line.strip() for line in lines) == words
    assert (max(map(len, lines)) <= 40) == terminal
