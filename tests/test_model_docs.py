"""docs/model.md shows what the program prints, and names every option."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import click
import pytest

from topodiag import pipeline_model
from topodiag.cli.model_collective import collective
from topodiag.cli.model_hierarchy import hierarchy
from topodiag.cli.model_link import link
from topodiag.cli.model_step import step

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "model.md"
SHOWN = re.findall(r"```console\n\$ topodiag ([^\n]+)\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_page_shows_each_command() -> None:
    assert {shown.split()[1] for shown, _ in SHOWN} == {"link", "collective", "hierarchy", "step"}


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


@pytest.mark.parametrize("command", [link, collective, hierarchy, step], ids=lambda each: each.name)
def test_every_option_is_on_the_page(command: click.Command) -> None:
    text = PAGE.read_text()
    options = [each for each in command.params if each.opts[0].startswith("-")]
    assert [each.opts for each in options if not any(f"`{option}" in text for option in each.opts)] == []


def test_the_examples_for_python_users_work() -> None:
    assert doctest.testfile(str(PAGE), module_relative=False) == (0, 6)
    assert doctest.testmod(pipeline_model)[:2] == (0, 4)
