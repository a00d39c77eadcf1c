"""Runs the program as users do: a process of its own, its streams captured, an environment without surprises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "fake_program.py"
REPORTS = Path(__file__).parents[1] / "report"
FOREIGN = {"COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "LC_ALL", "TERM", "PYTHONIOENCODING"}

sys.path.insert(0, str(REPORTS))


@pytest.fixture
def topodiag():
    def run(*args, fake="clean", env=(), **kwargs):
        clean = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        return subprocess.run(
            [sys.executable, PROGRAM, *args],
            env=clean | {"FAKE": fake, "LANG": "C.UTF-8"} | dict(env),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            stdin=subprocess.DEVNULL,
            check=False,
            **kwargs,
        )

    return run
