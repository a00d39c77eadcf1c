"""Groups of commands: without a command they print their help, and exit 2; asked for it they exit 0."""

import click
import pytest

from tests import program
from tests.cli.command_tree import ALL
from topodiag.cli.bench.show import show

GROUPS = [words for words, command in ALL.items() if isinstance(command, click.Group)]


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_a_group_without_a_command_prints_its_help_as_an_error(words):
    done, asked = program.run(*words), program.run(*words, "--help")
    assert (done.returncode, done.stdout) == (2, "")
    assert (asked.returncode, asked.stderr) == (0, "")
    assert done.stderr == asked.stdout
    assert "error:" not in done.stderr


def test_bench_help_has_the_options_of_bench_path():
    shown = program.run("bench", "--help").stdout
    for option in show.params:
        if isinstance(option, click.Option):
            assert f" {option.opts[-1]}" in shown or f", {option.opts[0]}" in shown


def test_an_option_alone_is_not_taken_for_a_command():
    done = program.run("--debug")
    assert done.returncode == 2
    assert "Missing command" in done.stderr
