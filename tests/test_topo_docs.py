"""docs/topo.md shows what the program prints, and names every option."""

import doctest

import pytest

from tests.shown import ROOT, assert_printed, shown_on
from topodiag.app.case import topology as pipeline_topo
from topodiag.cli.topo.check import check
from topodiag.cli.topo.diff import diff
from topodiag.cli.topo.predict import predict
from topodiag.cli.topo.show import show
from topodiag.cli.topo.what_if import what_if

PAGE = ROOT / "docs" / "topo.md"
SHOWN = shown_on(PAGE)


def test_the_page_shows_each_command_that_answers() -> None:
    assert {shown.split()[1] for shown, _ in SHOWN} == {"check", "predict", "what-if", "diff"}


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[shown[:60] for shown, _ in SHOWN])
def test_what_the_page_shows_is_what_the_program_prints(command: str, output: str) -> None:
    assert_printed(command, output)


@pytest.mark.parametrize("command", [check, predict, what_if, diff, show], ids=lambda document: document.name)
def test_every_option_is_on_the_page(command) -> None:
    text = PAGE.read_text()
    options = [param for param in command.params if param.opts[0].startswith("-")]
    assert [option.opts for option in options if not any(f"`{option}" in text for option in option.opts)] == []


def test_the_examples_for_python_users_work() -> None:
    assert doctest.testfile(str(PAGE), module_relative=False)[:2] == (0, 3)
    assert doctest.testmod(pipeline_topo)[:2] == (0, 3)
