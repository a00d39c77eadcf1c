"""docs/model.md shows what the program prints, and names every option."""

from __future__ import annotations

import doctest

import click
import pytest

from tests.shown import ROOT, assert_printed, shown_on
from topodiag.app import model as pipeline_model
from topodiag.cli.model.collective import collective
from topodiag.cli.model.hierarchy import hierarchy
from topodiag.cli.model.link import link
from topodiag.cli.model.step import step

PAGE = ROOT / "docs" / "model.md"
SHOWN = shown_on(PAGE)


def test_the_page_shows_each_command() -> None:
    assert {shown.split()[1] for shown, _ in SHOWN} == {"link", "collective", "hierarchy", "step"}


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[shown[:60] for shown, _ in SHOWN])
def test_what_the_page_shows_is_what_the_program_prints(command: str, output: str) -> None:
    assert_printed(command, output)


@pytest.mark.parametrize("command", [link, collective, hierarchy, step], ids=lambda document: document.name)
def test_every_option_is_on_the_page(command: click.Command) -> None:
    text = PAGE.read_text()
    options = [param for param in command.params if param.opts[0].startswith("-")]
    assert [option.opts for option in options if not any(f"`{option}" in text for option in option.opts)] == []


def test_the_examples_for_python_users_work() -> None:
    assert doctest.testfile(str(PAGE), module_relative=False) == (0, 6)
    assert doctest.testmod(pipeline_model)[:2] == (0, 4)
