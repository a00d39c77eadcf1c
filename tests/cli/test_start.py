"""How the program starts, completes words in a shell and ends, and its man page."""

import builtins
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete

from tests import program
from tests.cli.command_tree import ALL, OF_PATHS
from tests.tables import examples
from tools import build_man
from topodiag import __main__ as start
from topodiag.app.fixtures import shipped
from topodiag.app.model import known_systems
from topodiag.checks import registry
from topodiag.cli import cli
from topodiag.cli.errors import run
from topodiag.cli.params import Evidence


def test_ctrl_c_during_the_first_imports_is_130_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def interrupted(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "topodiag.cli":
            raise KeyboardInterrupt
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    with pytest.raises(SystemExit) as ended:
        start.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "topodiag: interrupted\n"


@pytest.mark.parametrize("closed", ["stderr", "stdout"])
def test_a_closed_stream_changes_no_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], closed: str
) -> None:
    monkeypatch.setattr(sys, closed, None)
    code = run(cli, ["logs", "fixture:version-mismatch"])
    getattr(sys, closed).close()
    monkeypatch.undo()
    assert code == 1
    assert ("errors" in capsys.readouterr().out) is (closed == "stderr")


def test_an_error_without_standard_error_keeps_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert run(cli, ["logs", "/nowhere/at/all"]) == 2
    sys.stderr.close()


# --- what a command prints without -v fits a terminal of 80 by 24, says the verdict first and last, and its exit code

LAST_ACTION = 3
"""Lines of the last action: one, or as many as its first command needs."""


@examples("command", "most", "code")
def test_an_output_fits_a_screen_and_ends_as_it_begins(
    command: str, most: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(cli, shlex.split(command)) == code
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= most
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line.endswith("exit 1")] == lines[-1:] * code
    if code:
        actions = [at for at, line in enumerate(lines) if line.startswith("  do  ")]
        assert actions[0] < 4
        assert actions[-1] >= len(lines) - LAST_ACTION
        assert lines[actions[-1] - 1][0] == lines[0][0]


# --- completion knows the options and values of every command, fixtures, systems and checks, in bash, zsh and fish


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


# --- docs/topodiag.1 is what the help says


def test_the_man_page_is_current():
    assert build_man.PAGE.read_text(encoding="utf-8") == build_man.man_page(), "run python tools/build_man.py"


def test_the_man_page_has_every_command_and_every_option():
    page = build_man.man_page().replace("\\-", "-")
    for words, command in ALL.items():
        assert not words or f"\n.SS topodiag {' '.join(words).replace(OF_PATHS, 'PATH...')}\n" in page
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert re.search(rf"^\.B .*{re.escape(option.opts[-1])}\b", page, re.M), option.opts


def test_the_lines_of_an_example_stay_lines():
    assert "\n.nf\nExamples\n  topodiag diagnose incident/\n" in build_man.man_page()


def test_text_is_never_taken_for_a_request():
    assert build_man.roff(".so /etc/passwd") == "\\&.so /etc/passwd"
    assert build_man.roff("'x \\fB-y") == "\\&'x \\efB\\-y"


DOCS = Path(__file__).parents[2] / "docs" / "exit-codes.md"
PROGRAM = Path(__file__).parent / "fake_program.py"


def test_debug_shows_the_traceback(topodiag):
    done = topodiag("--debug", "scan", fake="bug")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def run_into(out, fake):
    argv = [sys.executable, PROGRAM, "scan"]
    env = os.environ | {"FAKE": fake}
    return subprocess.run(argv, stdout=out, stderr=subprocess.PIPE, env=env, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("fake", "code"), [("clean", 0), ("error", 1), ("huge", 1)])
def test_a_closed_pipe_is_quiet_and_keeps_the_verdict(fake, code):
    """A pipe that nobody reads from the start."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as out:
        done = run_into(out, fake)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_2_and_said():
    with Path("/dev/full").open("w") as full:
        done = run_into(full, "huge")
    assert done.returncode == 2
    assert done.stderr == "topodiag: error: the output cannot be written: No space left on device\n"


def test_a_real_ctrl_c_is_130():
    program = [
        sys.executable,
        "-c",
        "import signal, sys, time\n"
        "from topodiag.cli.errors import run\n"
        "import click\n"
        "@click.command()\n"
        "def wait():\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
        "sys.exit(run(wait, []))\n",
    ]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        first = child.stdout.readline()
        assert first == "ready\n", child.stderr.read()
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == 130
        assert child.stderr.read() == "topodiag: interrupted\n"


def test_the_page_of_exit_codes_has_them_all():
    documented = set(re.findall(r"^\| (\d+) \|", DOCS.read_text(), re.M))
    assert documented == {"0", "1", "2", "3", "130"}
