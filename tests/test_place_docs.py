"""docs/place.md shows what `topodiag place` prints, and names every option of `place audit`."""

from __future__ import annotations

import doctest

import pytest

from tests.shown import ROOT, assert_printed, shown_on
from topodiag.cli.model.step_options import TRAINED
from topodiag.cli.place.audit import audit

PAGE = ROOT / "docs" / "place.md"
SHOWN = shown_on(PAGE)
_OF_ALL_REPORTS = {
    "--format", "--output", "--color", "--ascii", "--quiet", "--verbose", "--width", "--html", "--redact"
}  # fmt: skip


PRICED = {name for param in TRAINED for name in param.opts}


def test_the_page_shows_a_bad_layout_and_a_good_one_a_drawing_and_a_solution() -> None:
    assert [shown.split()[1] for shown, _ in SHOWN] == ["audit", "audit", "solve", "solve"]


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[shown[:60] for shown, _ in SHOWN])
def test_what_the_page_shows_is_what_the_program_prints(command: str, output: str) -> None:
    assert_printed(command, output)


def test_every_option_is_on_the_page_or_that_of_the_model() -> None:
    text, elsewhere = PAGE.read_text(), _OF_ALL_REPORTS
    names = {param.opts[0] for param in audit.params if param.opts[0].startswith("--")} - elsewhere
    assert sorted(name for name in names if f"`{name}" not in text) == []


def test_options_of_training_are_those_of_model_step() -> None:
    assert {"--params", "--layers", "--chunks", "--zero", "--overlap", "--peak-tflops"} <= PRICED
    assert not PRICED & {"--nodes", "--tp", "--cp", "--ep", "--pp", "--dp", "--order"}


def test_the_example_for_python_users_works() -> None:
    assert doctest.testfile(str(PAGE), module_relative=False) == (0, 10)
