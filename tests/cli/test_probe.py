"""`topodiag probe`: the collector as one file, the same bytes as from a checkout."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests import program
from topodiag.fleet.collect.archive import START, archive

ROOT = Path(__file__).parents[2]


def test_standard_output_file_and_checkout_have_the_same_bytes(tmp_path):
    made, built = tmp_path / "a.pyz", tmp_path / "b.pyz"
    assert program.run("probe", "-o", made).returncode == 0
    subprocess.run([sys.executable, ROOT / "tools/build_probe.py", built], check=True, capture_output=True, timeout=60)
    printed = program.run("probe", text=False)
    assert printed.returncode == 0
    assert printed.stdout == made.read_bytes() == built.read_bytes() == archive()


def test_the_file_runs_alone(tmp_path):
    made = tmp_path / "probe.pyz"
    assert program.run("probe", "-o", made).returncode == 0
    bare = {"PATH": os.environ["PATH"]}
    done = subprocess.run([made, "--version"], env=bare, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("topodiag-probe ")


def test_a_terminal_gets_one_line_and_no_binary():
    ours, theirs = pty.openpty()
    done = subprocess.run([*program.ARGV, "probe"], stdout=theirs, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert b"-o topodiag-probe.pyz" in done.stderr


def test_an_old_python_is_told_in_one_line_what_to_do(monkeypatch):
    """The first lines compile under any Python: no annotation, no f-string, and the check before the first import."""
    monkeypatch.setattr("sys.version_info", (2, 7, 5))
    with pytest.raises(SystemExit) as ended:
        exec(START, {"__name__": "__main__"})
    assert "needs Python 3.6 or later, and this is 2.7" in str(ended.value)
    assert "python3.8 topodiag-probe.pyz" in str(ended.value)
