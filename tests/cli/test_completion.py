"""Completion knows the options and values of every command, fixtures, systems and checks, in bash, zsh and fish."""

import os
import subprocess

import click
import pytest
from click.shell_completion import ShellComplete

from tests import program
from tests.cli.command_tree import ALL
from topodiag.app.fixtures import shipped
from topodiag.app.model import known_systems
from topodiag.checks import registry
from topodiag.cli import cli
from topodiag.cli.params import Evidence

NAMES = [fixture.name for fixture in shipped()]
COMMANDS = [words for words, command in ALL.items() if not isinstance(command, click.Group)]


def completions(*args, incomplete=""):
    made = ShellComplete(cli, {}, "topodiag", "_TOPODIAG_COMPLETE")
    return [item.value for item in made.get_completions(list(args), incomplete)]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_option_and_every_value_of_a_choice_is_offered(words):
    options = [param for param in ALL[words].params if isinstance(param, click.Option)]
    offered = completions(*words, incomplete="--")
    for option in options:
        assert option.hidden or max(option.opts, key=len) in offered
        if isinstance(option.type, click.Choice):
            values = completions(*words, max(option.opts, key=len))
            assert [value.lower() for value in values] == [str(choice).lower() for choice in option.type.choices]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_option_that_takes_evidence_offers_fixtures(words):
    wanted = {f"fixture:{name}" for name in NAMES}
    for option in ALL[words].params:
        if isinstance(option, click.Option) and isinstance(option.type, Evidence):
            assert set(completions(*words, option.opts[0], incomplete="fixture:")) == wanted
    first = next((param for param in ALL[words].params if isinstance(param, click.Argument)), None)
    if first is not None and isinstance(first.type, Evidence):
        assert set(completions(*words, incomplete="fixture:")) == wanted


@pytest.mark.parametrize(
    "words", [command for command in COMMANDS if any("--system" in o.opts for o in ALL[command].params)]
)
def test_systems_are_offered(words):
    assert completions(*words, "--system", incomplete="dgx-") == [
        name for name in known_systems() if name.startswith("dgx-")
    ]


def test_checks_and_commands_are_offered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert completions("explain", incomplete="nvl") == [
        id_name for id_name in registry.ids() if id_name.startswith("NVL")
    ]
    assert {"scan", "topo", "bench", "probe"} <= set(completions())
    assert {"plan", "run", "read"} <= set(completions("bench"))
    assert "fixture:" in completions("bench", incomplete="fixture")


def test_bash_completes_behind_a_colon_although_it_splits_there():
    env = {
        "_TOPODIAG_COMPLETE": "bash_complete",
        "COMP_WORDS": "topodiag topo show fixture : dgx-h100-h",
        "COMP_CWORD": "5",
    }
    shown = program.run(env=env).stdout.split()
    assert shown == [f"plain,{name}" for name in NAMES if name.startswith("dgx-h100-h")] != []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed(shell):
    done = program.run("completion", shell)
    assert done.returncode == 0
    assert "_TOPODIAG_COMPLETE" in done.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=True, env=os.environ, timeout=60)
