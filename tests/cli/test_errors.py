"""What goes wrong is one line with its remedy, and code 2."""

from __future__ import annotations

import pytest

from tests import program

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
    ("logs",): "Missing argument 'PATH...'",
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
