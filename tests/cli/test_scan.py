"""What `topodiag scan` does with its options, its streams and its environment."""

import contextlib
import fcntl
import os
import re
import stat
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from click import BadParameter

from tests.tables import examples
from topodiag.cli.params import TYPES

PROGRAM = Path(__file__).parent / "fake_program.py"


@pytest.mark.parametrize("format_", ["table", "json", "prometheus", "nagios"])
def test_output_goes_to_a_file_that_others_can_read(topodiag, tmp_path, format_):
    target = tmp_path / "report.prom"
    done = topodiag("scan", "--format", format_, "--output", str(target))
    assert (done.returncode, done.stdout) == (0, "")
    assert "gpu-001" in target.read_text()
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~umask
    assert [path.name for path in tmp_path.iterdir()] == ["report.prom"]


def test_quiet_says_less_and_verbose_more(topodiag):
    sizes = [len(topodiag("scan", *args, fake="error").stdout) for args in (["-q"], [], ["-v"])]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) == 3


@examples("text", "seconds")
def test_durations_read_as_people_write_them(text, seconds):
    assert TYPES["duration"].convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "-1", "5h", "s", "1e9", "nan", "61m", "٥s", "9" * 500])
def test_other_durations_are_usage_errors(text):
    with pytest.raises(BadParameter):
        TYPES["duration"].convert(text, None, None)


def test_a_spinner_shows_on_a_terminal_and_leaves_stdout_alone():
    master, slave = os.openpty()
    done = subprocess.run(
        [sys.executable, PROGRAM, "scan"],
        stdout=subprocess.PIPE,
        stderr=slave,
        env=os.environ | {"FAKE": "clean", "TERM": "xterm", "LANG": "C.UTF-8"},
        timeout=60,
        check=False,
    )
    os.close(slave)
    shown = os.read(master, 65536).decode()
    os.close(master)
    assert "judging" in shown
    assert shown.endswith("\x1b[2K")
    assert done.stdout.decode().startswith("✔ gpu-001")


def test_a_terminal_gets_colour_and_its_width():
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 61, 0, 0))
    clean = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR", "LC_ALL"}}
    child = subprocess.Popen(
        [sys.executable, PROGRAM, "scan", "-q"],
        stdout=slave,
        stderr=subprocess.DEVNULL,
        env=clean | {"FAKE": "error", "TERM": "xterm", "LANG": "C.UTF-8"},
    )
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the other end of the terminal is closed
        while piece := os.read(master, 65536):
            shown += piece
    assert child.wait(60) == 1
    os.close(master)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r", "")
    assert shown.startswith(b"\x1b[1;31m")
    assert 50 < max(map(len, plain.splitlines())) <= 61
