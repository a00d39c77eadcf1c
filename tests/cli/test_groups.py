"""Groups of commands: without a command they print their help, and exit 2; asked for it they exit 0."""

import click
import pytest

from tests import program
from tests.cli.command_tree import ALL
from topodiag.cli import cli
from topodiag.cli.bench.judge import judge
from topodiag.cli.errors import run
from topodiag.model.node import Node
from topodiag.model.result import Result

GROUPS = [words for words, command in ALL.items() if words and isinstance(command, click.Group)]


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_a_group_without_a_command_prints_its_help_as_an_error(words):
    done, asked = program.run(*words), program.run(*words, "--help")
    assert (done.returncode, done.stdout) == (2, "")
    assert (asked.returncode, asked.stderr) == (0, "")
    assert done.stderr == asked.stdout
    assert "error:" not in done.stderr


def test_bench_help_has_the_options_of_bench_path():
    shown = program.run("bench", "--help").stdout
    for option in judge.params:
        if isinstance(option, click.Option):
            assert f" {option.opts[-1]}" in shown or f", {option.opts[0]}" in shown


@pytest.mark.parametrize(("gpu", "shown"), [(False, "Usage: topodiag"), (True, "this machine")])
def test_alone_it_scans_a_gpu_node_and_helps_elsewhere(gpu, shown, monkeypatch, capsys):
    monkeypatch.setattr("topodiag.app.here.is_gpu_node", lambda: gpu)
    monkeypatch.setattr("topodiag.app.scan.live", lambda **_: Result(nodes=(Node("this machine"),)))
    assert run(cli, []) == 0
    assert shown in capsys.readouterr().out
