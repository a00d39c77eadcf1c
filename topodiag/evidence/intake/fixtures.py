"""Evidence that ships with the program: `fixture:NAME` stands for the path of one, so that every command can be tried.

A checkout has all of `fixtures/`: incidents with all their evidence, machines as folders, jobs with their logs, tables
of nccl-tests. A wheel has the few that `hatch_build.py` packs, one file each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from topodiag.lazy import dataclass
from topodiag.model.errors import InputError

PREFIX = "fixture:"
INCIDENT, NODE, JOB, TABLE = "incident", "node", "job", "table"
_FOLDERS = {INCIDENT: ("incidents", ""), NODE: ("nodes", ""), JOB: ("jobs", "logs"), TABLE: ("tables", "out.txt")}
"""Folder below fixtures/ of each kind, and what of a fixture is the evidence."""


@dataclass(frozen=True, slots=True)
class Fixture:
    """One of them: `kind` is incident, node, job or table; `about` is one sentence on what it shows."""

    name: str
    kind: str
    path: Path
    about: str


@cache
def shipped() -> tuple[Fixture, ...]:
    """All of them, by kind and name."""
    package = Path(__file__).resolve().parents[2]
    packed = package / "fixtures" / "about.json"
    return tuple(_packed(packed) if packed.is_file() else _unpacked(package.parent / "fixtures"))


def fixtures() -> tuple[str, ...]:
    """Names of the machines among them."""
    return tuple(each.name for each in shipped() if each.kind == NODE)


def fixture_path(name: str) -> Path:
    """Where the evidence of one lies. Raises InputError with the names there are."""
    for each in shipped():
        if each.name == name:
            return each.path
    near = get_close_matches(name, [each.name for each in shipped()], n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise InputError(PREFIX + name, "no such fixture", hint=f"{hint}topodiag fixtures lists them")


def missing(path: str) -> InputError:
    """The error for a path that is not there: a fixture's name lacks its scheme."""
    known = path in {fixture.name for fixture in shipped()}
    return InputError(path, "no such file or folder", hint=f"it ships with topodiag: {PREFIX}{path}" if known else "")


def resolve(path: str) -> str:
    """The path that is meant: of `fixture:NAME` that of the fixture, any other as it is."""
    return str(fixture_path(path.removeprefix(PREFIX))) if path.startswith(PREFIX) else path


def _packed(index: Path) -> Iterator[Fixture]:
    for name, each in json.loads(index.read_text(encoding="utf-8")).items():
        yield Fixture(name, each["kind"], index.parent / each["file"], each["about"])


def _unpacked(root: Path) -> Iterator[Fixture]:
    for kind, (folder, evidence) in _FOLDERS.items():
        for place in sorted((root / folder).glob("*")):
            about = _about(place)
            if about:
                yield Fixture(place.name, kind, place / evidence if evidence else place, about)


def _about(place: Path) -> str:
    """The first line of `about.txt`, or the summary of an incident's truth; "" for a folder that is no fixture."""
    if (about := place / "about.txt").is_file():
        return about.read_text(encoding="utf-8").strip().split("\n", 1)[0]
    if (truth := place / "truth.json").is_file():
        return str(json.loads(truth.read_text(encoding="utf-8"))["summary"])
    return ""
