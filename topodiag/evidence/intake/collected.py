"""What `topodiag fleet collect` writes beside bundles: sums, and which nodes did not answer. It is no evidence of a
machine: who reads the folder is told which nodes are not in it, and which bundles are not what their nodes sent.

A copy of `/sys` as a folder, brought to the one text in which the collector writes such files (evidence/tree.py).

Evidence that ships with the program: `fixture:NAME` stands for the path of one, so that every command can be tried.

A checkout has all of `fixtures/`: incidents with all their evidence, machines as folders, jobs with their logs, tables
of nccl-tests. A wheel has the few that `hatch_build.py` packs, one file each.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

from topodiag.lazy import dataclass, regex
from topodiag.model.collect import read_document
from topodiag.model.errors import InputError
from topodiag.words.units import fold_hosts, plural

PREFIX = "fixture:"
ANSWER = "truth.json"
"""What is known of an incident lies beside its evidence, and is none."""
INCIDENT, NODE, JOB, TABLE = "incident", "node", "job", "table"
_PLACES = {
    INCIDENT: ("incidents", ""),
    NODE: ("nodes", ""),
    JOB: ("jobs", "logs"),
    TABLE: ("tables", "out.txt"),
}
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
    return tuple(fixture.name for fixture in shipped() if fixture.kind == NODE)


def fixture_path(name: str) -> Path:
    """Where the evidence of one lies. Raises InputError with the names there are."""
    for fixture in shipped():
        if fixture.name == name:
            return fixture.path
    from difflib import get_close_matches  # noqa: PLC0415 - on a wrong name

    near = get_close_matches(name, [fixture.name for fixture in shipped()], n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise InputError(PREFIX + name, "no such fixture", hint=f"{hint}topodiag fixtures lists them")


def missing(path: str) -> InputError:
    """The error for a path that is not there: a fixture's name lacks its scheme."""
    known = path in {fixture.name for fixture in shipped()}
    remote = "topodiag reads local files: download it first" if "://" in path else ""
    return InputError(
        path, "no such file or folder", hint=f"it ships with topodiag: {PREFIX}{path}" if known else remote
    )


def resolve(path: str) -> str:
    """The path that is meant: of `fixture:NAME` that of the fixture, any other as it is."""
    return str(fixture_path(path.removeprefix(PREFIX))) if path.startswith(PREFIX) else path


def _packed(index: Path) -> Iterator[Fixture]:
    for name, item in json.loads(index.read_text(encoding="utf-8")).items():
        yield Fixture(name, item["kind"], index.parent / item["file"], item["about"])


def _unpacked(root: Path) -> Iterator[Fixture]:
    for kind, (folder, evidence) in _PLACES.items():
        for place in sorted((root / folder).glob("*")):
            about = _about(place)
            if about:
                yield Fixture(place.name, kind, place / evidence if evidence else place, about)


def _about(place: Path) -> str:
    """The first line of `about.txt`, or the summary of an incident's truth; "" for a folder that is no fixture."""
    if (about := place / "about.txt").is_file():
        return about.read_text(encoding="utf-8").strip().split("\n", 1)[0]
    if (truth := place / ANSWER).is_file():
        return str(json.loads(truth.read_text(encoding="utf-8"))["summary"])
    return ""


SUMS, ANSWERS = "SHA256SUMS", "collect.json"
_SUM_OF_ONE = ".sha256"
_SUM = regex(r"([0-9a-f]{64}) [ *]([^/\0\n]{1,255})")
_MOST = 64 << 20
_FOLDERS = 512
"""Folders whose sums a process remembers: nodes that write into a shared folder spread over 256."""


def without_bookkeeping(folder: str, names: Sequence[str], notes: list[str]) -> list[str]:
    """The files of a folder without those of a collection; a note names the nodes that left nothing there."""
    rest = [name for name in names if not name.endswith(f".tar.gz{_SUM_OF_ONE}")]
    if SUMS not in names or ANSWERS not in names:
        return rest
    path = os.path.join(folder, ANSWERS)
    document = read_document(_head(path))
    if document is None:
        return rest
    silent = [answer.node for answer in document.answers if not answer.file]
    if silent:
        notes.append(f"{path}: {plural(len(silent), 'node')} left no evidence: {fold_hosts(silent)}")
    return [name for name in rest if name not in {SUMS, ANSWERS}]


def changed(path: str) -> str:
    """Why a bundle is not what its node sent: it has another sum than the one that was written beside it. "" for all
    else, and for what has no sum or cannot be read."""
    folder, name = os.path.split(path)
    own = sums_of(path + _SUM_OF_ONE) if os.path.isfile(path + _SUM_OF_ONE) else sums_of(folder or ".")
    wanted = own.get(name)
    try:
        if wanted is None or os.path.isdir(path) or file_sum(path) == wanted:
            return ""
    except OSError:
        return ""
    return "has changed since it was collected: its SHA-256 is not the one that was written then"


def sums_of(place: str) -> Mapping[str, str]:
    """The sum of each file by its name, the last of a name counts: those of a folder's SHA256SUMS, or of one file as
    sha256sum writes it. None where there is no such file."""
    path = os.path.join(place, SUMS) if os.path.isdir(place) else place
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return {}
    return _sums(path, state.st_mtime_ns, state.st_size) if stat.S_ISREG(state.st_mode) else {}


@lru_cache(maxsize=_FOLDERS)
def _sums(path: str, _changed_ns: int, _size: int) -> Mapping[str, str]:
    matches = map(_SUM.fullmatch, _head(path).decode("utf-8", "replace").splitlines())
    return {match[2]: match[1] for match in matches if match}


def file_sum(path: str) -> str:
    """The SHA-256 of a file in hexadecimal digits. Raises OSError."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read(_MOST)
    except OSError:
        return b""


MAX_FILES = 20_000
MAX_BYTES = 8 << 20
MAX_FILE = 4096
"""A file of sysfs is a page at most."""
_BELOW = frozenset({"bus", "class", "devices", "kernel", "module"})


def is_copy(folder: str, folders: Sequence[str]) -> bool:
    """Whether a folder looks like a copy of /sys."""
    return os.path.basename(folder) == "sys" and not _BELOW.isdisjoint(folders)


def text_of_copy(folder: str) -> bytes:
    """The files below as one tree text, in the order of their names. What is no text, too large, or beyond the bounds
    is left out. Links to folders are not followed: what they lead to has a place of its own."""
    return b"".join(_lines(folder))


def _lines(folder: str) -> Iterator[bytes]:
    size = count = 0
    for here, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(here, name)
            data = _content(path)
            count += 1
            if count > MAX_FILES or size > MAX_BYTES:
                return
            place = os.path.join("sys", os.path.relpath(path, folder)).encode("utf-8", "replace")
            if b"\t" in place or b"\n" in place or data is None:
                continue
            for line in data.split(b"\n"):
                size += len(place) + len(line)
                yield b"= %s\t%s\n" % (place, line)


def _content(path: str) -> bytes | None:
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > MAX_FILE:
            return None
        with open(path, "rb") as stream:
            data = stream.read(MAX_FILE).rstrip(b"\n")
    except OSError:
        return None
    return data if b"\0" not in data else None
