"""docs/place.md shows what `topodiag place` prints, and names every option of `place audit`."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from topodiag.cli.place_audit import audit

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "place.md"
SHOWN = re.findall(r"```console\n\$ topodiag ([^\n]+)\n(.*?)```", PAGE.read_text(), re.DOTALL)
_OF_ALL_REPORTS = {"--format", "--output", "--color", "--ascii", "--quiet", "--verbose", "--width"}


def _priced() -> set[str]:
    """The options that say what is trained: docs/model.md has them."""
    from topodiag.cli.model_step_options import MODEL_OPTIONS, TRAINING_OPTIONS  # noqa: PLC0415

    def bare() -> None: ...

    for option in (*MODEL_OPTIONS, *TRAINING_OPTIONS):
        bare = option(bare)
    return {name for param in bare.__click_params__ for name in param.opts}  # type: ignore[attr-defined]


def test_the_page_shows_a_bad_layout_and_a_good_one_a_drawing_and_a_solution() -> None:
    assert [shown.split()[1] for shown, _ in SHOWN] == ["audit", "audit", "look", "solve"]


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[shown[:60] for shown, _ in SHOWN])
def test_what_the_page_shows_is_what_the_program_prints(command: str, output: str) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LC_ALL", "FORCE_COLOR"}}
    argv = [sys.executable, "-m", "topodiag", *shlex.split(command)]
    done = subprocess.run(
        argv, capture_output=True, text=True, cwd=ROOT, env=clean | {"LANG": "C.UTF-8"}, timeout=120, check=False
    )
    assert done.stderr == ""
    # A line of three dots stands for any number of lines.
    pattern = "\n".join("*" if line == "..." else re.sub(r"([*?[])", r"[\1]", line) for line in output.splitlines())
    assert fnmatchcase(done.stdout.rstrip("\n"), pattern), done.stdout


def test_every_option_is_on_the_page_or_that_of_the_model() -> None:
    text, elsewhere = PAGE.read_text(), _priced() | _OF_ALL_REPORTS
    names = {each.opts[0] for each in audit.params if each.opts[0].startswith("--")} - elsewhere
    assert sorted(name for name in names if f"`{name}" not in text) == []


def test_options_of_training_are_those_of_model_step() -> None:
    assert {"--params", "--layers", "--chunks", "--zero", "--overlap", "--peak-tflops"} <= _priced()
    assert not _priced() & {"--nodes", "--tp", "--cp", "--ep", "--pp", "--dp", "--order"}


def test_the_example_for_python_users_works() -> None:
    assert doctest.testfile(str(PAGE), module_relative=False) == (0, 8)
