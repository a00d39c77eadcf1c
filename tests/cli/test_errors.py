"""What goes wrong is one line with its remedy, and code 2."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests import program
from topodiag.cli.errors import print_note

ERRORS = {
    ("dgx-h100-healthy",): "fixture:dgx-h100-healthy",
    ("scan", "dgx-h100-healthy"): "fixture:dgx-h100-healthy",
    ("scan", "fixture:dgx-h100-helthy"): "did you mean dgx-h100-healthy",
    ("scna",): "Did you mean scan?",
    ("explain", "GPX"): "Did you mean GPU?",
    ("explain", "NVL9"): "Did you mean NVL",
    ("bench", "fixture:all-reduce-healthy", "--nodes", "two"): "'two' is not a whole number from 1 to 100000",
    ("model", "step", "--layers", "-3"): "'-3' is not a whole number from 1 to 10000",
    ("model", "step", "--efficiency", "nan"): "'nan' is not a number from 0.01 to 1",
    ("diagnose", "no-such-folder/"): "no such file or folder",
    ("scan", "https://example.com/node.tar.gz"): "topodiag reads local files: download it first",
    ("bench", "read", __file__): "give the folder of `topodiag bench run`",
    ("env", "--to"): "see topodiag env --help",
    ("diagnose", "fixture:healthy", "--tp", "3"): "needs a multiple of 3 ranks; the job has 16",
    ("place", "audit", "--tp", "8", "--model", "params=many"): "write it like params=7B,layers=32",
    ("logs",): "Missing argument 'PATH...'",
    ("fixture:demo", "--redacted"): "see topodiag diagnose --help",
    ("place", "emit", "--nodes", "8"): "--nodes belongs to topodiag place audit and solve; see",
    ("place", "emit"): "Choose from: slurm-hostfile, slurm-flags",
    ("ras", str(Path(__file__).parent)): "Answers that were kept: topodiag logs",
}


@pytest.mark.parametrize("args", ERRORS, ids=" ".join)
def test_an_error_is_one_line_with_its_remedy(args: tuple[str, ...]) -> None:
    done = program.run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("topodiag: error: ")
    assert len(done.stderr.splitlines()) <= 2
    assert ERRORS[args] in done.stderr


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
