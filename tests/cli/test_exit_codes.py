"""Every exit code that docs/exit-codes.md promises, asked of the real program."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs" / "exit-codes.md"
PROGRAM = Path(__file__).parent / "fake_program.py"


def test_debug_shows_the_traceback(topodiag):
    done = topodiag("--debug", "scan", fake="bug")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_without_a_command_the_help_is_shown(topodiag):
    done = topodiag()
    assert "Commands:" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def run_into_closed_pipe(fake):
    """The program writing into a pipe that nobody reads from the start."""
    reader, writer = os.pipe()
    os.close(reader)
    env = os.environ | {"FAKE": fake}
    with os.fdopen(writer, "wb") as out:
        return subprocess.run(
            [sys.executable, PROGRAM, "scan"], stdout=out, stderr=subprocess.PIPE, env=env, timeout=60, check=False
        )


@pytest.mark.parametrize(("fake", "code"), [("clean", 0), ("error", 1), ("huge", 1)])
def test_a_closed_pipe_is_quiet_and_keeps_the_verdict(fake, code):
    done = run_into_closed_pipe(fake)
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_2_and_said(topodiag):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, PROGRAM, "scan"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | {"FAKE": "huge"},
            text=True,
            timeout=60,
            check=False,
        )
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
