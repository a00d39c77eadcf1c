"""What `topodiag fleet collect` writes beside bundles: sums, and which nodes did not answer. It is no evidence of a
machine: who reads the folder is told which nodes are not in it, and which bundles are not what their nodes sent.

A copy of `/sys` as a folder, brought to the one text in which the collector writes such files (evidence/tree.py).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from topodiag.lazy import regex
from topodiag.model.collect import read_document
from topodiag.words.fold import fold_hosts, plural

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
    found = read_document(_head(path))
    if found is None:
        return rest
    silent = [each.node for each in found.answers if not each.file]
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
MAX_SHOWN = 100
MAX_HEAD = 64 << 10
MAX_FILE = 4096
"""A file of sysfs is a page at most."""
_BELOW = frozenset({"bus", "class", "devices", "kernel", "module"})


def is_copy(folder: str, folders: Sequence[str]) -> bool:
    """Whether a folder looks like a copy of /sys."""
    return os.path.basename(folder) == "sys" and not _BELOW.isdisjoint(folders)


def text_of_copy(folder: str) -> tuple[bytes, bytes]:
    """The files below as one tree text, in the order of their names, and the first lines of each of its parts, by which
    it is recognised. What is no text, too large, or beyond the bounds is left out. Links to folders are not followed:
    what they lead to has a place of its own."""
    lines = list(_lines(folder))
    shown: Counter[bytes] = Counter()
    head = []
    for line in lines:
        part = b"/".join(line.split(b"/", 3)[:3])
        shown[part] += 1
        if shown[part] <= MAX_SHOWN:
            head.append(line)
    return b"".join(lines), b"".join(head)[:MAX_HEAD]


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
