"""docs/contributing.md is performed, section by section, in a copy of the tree: files are written, commands run."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.copied import Copy
from tests.shown import ROOT

PAGE = (ROOT / "docs" / "contributing.md").read_text()
PROGRAMS = {
    "topodiag": [sys.executable, "-m", "topodiag"],
    "pytest": [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
    "python": [sys.executable],
}
_STEP = re.compile(
    r"(?:^(?P<verb>Create|Replace|Append to) `(?P<path>[^`]+)`:\n\n"
    r"|^In `(?P<in>[^`]+)`, (?P<how>above|below|in place of) `(?P<line>[^`]+)`:\n\n)?"
    r"^```(?P<language>\w+)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Step:
    """One code block of the page: a file to write, a line to change, or commands to run."""

    verb: str
    path: str
    line: str
    body: str


def steps(section: str) -> list[Step]:
    found = []
    for match in _STEP.finditer(section):
        verb = match["verb"] or match["how"] or "run"
        assert verb != "run" or match["language"] == "console", f"say what to do with this block: {match['body']}"
        found.append(Step(verb, match["path"] or match["in"] or "", match["line"] or "", match["body"]))
    return found


SECTIONS = {
    name: made for name, _, text in (part.partition("\n") for part in PAGE.split("\n## ")[1:]) if (made := steps(text))
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("tree"))


@pytest.fixture
def tree(copy: Copy) -> Iterator[Path]:
    with copy.for_a_test() as place:
        yield place


@pytest.mark.parametrize("section", SECTIONS)
def test_the_section_works_as_it_is_written(section: str, tree: Path) -> None:
    for step in SECTIONS[section]:
        if step.verb == "run":
            run(step.body, tree)
        else:
            write(step, tree / step.path)


def write(step: Step, path: Path) -> None:
    if step.verb in {"Create", "Replace"}:
        assert path.exists() == (step.verb == "Replace"), f"{step.verb} {step.path}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.body)
        return
    text = path.read_text()
    if step.verb == "Append to":
        path.write_text(text + step.body)
        return
    lines = text.splitlines(keepends=True)
    at = [number for number, line in enumerate(lines) if line.strip() == step.line]
    assert len(at) == 1, f"{step.path} has {len(at)} lines {step.line!r}"
    until = at[0] + (step.verb != "above")
    path.write_text("".join([*lines[: at[0] + (step.verb == "below")], step.body, *lines[until:]]))


def run(block: str, tree: Path) -> None:
    """The commands of a console block one after the other, each with the output below it."""
    clean = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LC_ALL", "FORCE_COLOR"}}
    env = clean | {"LANG": "C.UTF-8", "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'probes'}", "COLUMNS": "100"}
    for command, _, output in (part.partition("\n") for part in block.removeprefix("$ ").split("\n$ ")):
        program, *arguments = shlex.split(command)
        done = subprocess.run(
            [*PROGRAMS[program], *arguments],
            capture_output=True,
            text=True,
            cwd=tree,
            env=env,
            timeout=120,
            check=False,
        )
        assert done.returncode in (0, 1), f"$ {command}\n{done.stdout}{done.stderr}"
        if output.strip():
            pattern = re.sub(r"([*?[])", r"[\1]", output.strip("\n")).replace("...", "*")
            printed = done.stdout.strip("\n")
            assert fnmatchcase(printed, pattern), f"$ {command}\n{done.stdout}{done.stderr}"


def test_every_section_of_the_table_has_its_steps() -> None:
    named = re.findall(r"^\| \[([^\]]+)\]\(#", PAGE, re.MULTILINE)
    assert {name.lower() for name in named} == {name.lower() for name in SECTIONS}
