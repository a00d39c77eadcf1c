"""Files of /sys and /proc as a shell shows them, brought to the form in which the collector writes them.

    $ grep "" /sys/class/infiniband/mlx5_0/ports/1/hw_counters/*
    /sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence:41002
    $ cat /sys/class/infiniband/mlx5_1/tc/1/traffic_class
    Global tclass=236
    ==> /sys/class/net/eth0/mtu <==
    cat: /sys/class/net/eth0/speed: Invalid argument
    $ ls /sys/class/infiniband
    mlx5_0  mlx5_1

A path that the same text shows twice is taken once, as it was first shown: the second time is another moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain

from topodiag.lazy import regex
from topodiag.words.own_data import own_data, patterns

MAX_LINE = 4096
MAX_SHOWN = 200
"""Lines that one command shows of one file."""

_LIKE = patterns("evidence/lines", "pasted_files")
_MARGIN = " \t>|"
LOOSE_PROMPT = r"[^\n$#]{0,120}[$#] ?"
"""Source of a pattern for what may stand before a command in a terminal: whoever uses it looks at the command, too."""
_ERRNO: Mapping[str, str] = own_data("evidence/words")["errno"]


Shown = tuple[int, str, str, str]
"""The line of a paste, and the line of a tree file (evidence/tree.py) that it stands for: its sign, path and text."""


def shown_files(text: str) -> Iterator[Shown]:
    """What a paste shows of files, in its order. Never raises."""
    if "/sys/" not in text and "/proc/" not in text:
        return
    paste = _Paste()
    for number, whole in enumerate(text.split("\n"), 1):
        yield from paste.read(number, whole[:MAX_LINE].strip(_MARGIN).rstrip())


class _Paste:
    """What the lines so far say of the next one: the file or folder that they opened, and the files shown already."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._open()

    def _open(self, path: str = "", folder: str = "") -> None:
        """What stands below is of this file or folder."""
        self.path, self.folder, self.left = "" if path in self.seen else path, folder, MAX_SHOWN

    def read(self, number: int, line: str) -> Iterator[Shown]:
        """What one line shows."""
        if asked := _LIKE["asked"].search(line):
            self._open(path=_one((asked["file"] or "").rstrip(";")), folder=_one(asked["folder"] or ""))
        elif line.startswith("==> /") and line.endswith(" <=="):
            self._open(path=line[4:-4])
        elif failed := _LIKE["failed"].match(line):
            self._open()
            code = _ERRNO.get(failed[2].strip().lower())
            if code and _one(failed[1]):
                yield from self._once(number, "!", failed[1], f"{code} {failed[2].strip()}")
        elif named := _LIKE["named"].match(line):
            self._open()
            yield from self._once(number, "=", named[1].replace("//", "/"), named[2])
        elif not line or _LIKE["prompt"].match(line):
            self._open()
        elif self.path and self.left:
            self.left -= 1
            self.seen.add(self.path)
            yield number, "=", self.path[1:], line
        elif self.folder:
            yield from _in_folder(number, self.folder, line)

    def _once(self, number: int, op: str, path: str, text: str) -> Iterator[Shown]:
        if path not in self.seen:
            self.seen.add(path)
            yield number, op, path[1:], text


def _one(path: str) -> str:
    """A path of one file; "" for one that the shell expands."""
    return "" if any(sign in path for sign in "*?{}[]$") else path


def _in_folder(number: int, folder: str, line: str) -> Iterator[Shown]:
    """The names that a line of `ls` shows of a folder, with the target of a link where it shows one."""
    long = _LIKE["long"].match(line)
    if long is not None:
        op, text = (">", long[2]) if long[2] else ("d", "")
        yield number, op, f"{folder[1:]}/{long[1]}", text
    elif _LIKE["listed"].match(line) and not line.startswith("total "):
        for name in line.split():
            yield number, "d", f"{folder[1:]}/{name}", ""


@lru_cache(maxsize=8)
def _paths(text: str) -> tuple[str, ...]:
    return tuple(path for _, _, path, _ in shown_files(text))


_TREE_LINE = regex(r"^[=>x!d] /?(\S{1,200})", re.MULTILINE)


def shows(text: str, *starts: str) -> bool:
    """Whether a paste, or a tree of the collector, shows a file below one of these places (`sys/class/infiniband/`)."""
    of_tree = (f"{match[1]}/" for match in _TREE_LINE.finditer(text))
    return any(path.startswith(starts) for path in chain(of_tree, _paths(text)))
