"""What the pages of docs/ show: their commands, and whether the program still prints what stands there."""

import re
import shlex
from fnmatch import fnmatchcase
from pathlib import Path

from tests import program

ROOT = Path(__file__).parents[1]


def shown_on(page: Path) -> list[tuple[str, str]]:
    """(command without its `topodiag`, output) of every console block."""
    return re.findall(r"```console\n\$ topodiag ([^\n]+)\n(.*?)```", page.read_text(), re.DOTALL)


def assert_printed(command: str, output: str) -> None:
    done = program.run(*shlex.split(command), cwd=ROOT)
    assert done.stderr == ""
    # A line of three dots stands for any number of lines.
    pattern = "\n".join("*" if line == "..." else re.sub(r"([*?[])", r"[\1]", line) for line in output.splitlines())
    assert fnmatchcase(done.stdout.rstrip("\n"), pattern), done.stdout
