"""What the pages of docs/ show: their commands, and whether the program still prints what stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[1]


def shown_on(page: Path) -> list[tuple[str, str]]:
    """(command without its `topodiag`, output) of every console block."""
    return re.findall(r"```console\n\$ topodiag ([^\n]+)\n(.*?)```", page.read_text(), re.DOTALL)


def assert_printed(command: str, output: str) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LC_ALL", "FORCE_COLOR"}}
    argv = [sys.executable, "-m", "topodiag", *shlex.split(command)]
    done = subprocess.run(
        argv, capture_output=True, text=True, cwd=ROOT, env=clean | {"LANG": "C.UTF-8"}, timeout=120, check=False
    )
    assert done.stderr == ""
    # A line of three dots stands for any number of lines.
    pattern = "\n".join("*" if line == "..." else re.sub(r"([*?[])", r"[\1]", line) for line in output.splitlines())
    assert fnmatchcase(done.stdout.rstrip("\n"), pattern), done.stdout
