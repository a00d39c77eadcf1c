"""A copy of `/sys` as a folder, brought to the one text in which the collector writes such files (evidence/tree.py)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence

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
