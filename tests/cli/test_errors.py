"""What goes wrong is one line with its remedy, and code 2."""

import io
import sys

import pytest

from topodiag.cli.errors import print_note


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
