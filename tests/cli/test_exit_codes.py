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
