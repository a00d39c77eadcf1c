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
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_LINE = 4096
MAX_SHOWN = 200
"""Lines that one command shows of one file."""

_ROOT = r"/(?:sys|proc)/"
_MARGIN = " \t>|"
_NAMED = re.compile(rf"({_ROOT}(?:[^\s/]{{1,120}}/){{0,30}}[^\s/:]{{1,120}}):[ \t]?(.*)\Z")
_HEAD = re.compile(rf"==> ({_ROOT}\S{{1,400}}) <==\s*\Z")
_CAT = re.compile(
    rf"(?:^|[$#>;] ?|sudo )(?:cat|head|more) (?:-[a-z0-9]{{1,8}} ){{0,3}}({_ROOT}\S{{1,400}})[ ;]*(?:\|[^|]{{0,99}})?\Z"
)
"""Of one file: what several files hold is not told apart in the output."""
_LS = re.compile(rf"(?:^|[$#>;] ?|sudo )ls (?:-[A-Za-z0-9]+ )*({_ROOT}\S{{0,200}}?)/?\s*\Z")
_FAILED = re.compile(
    rf"(?:cat|ls|grep|head|more|bash|-bash)(?:: cannot access|: cannot open)?:? ['\"‘]?({_ROOT}[^\s:'\"’]{{1,400}}"
    r"(?::[^\s:'\"’]{1,60}){0,3})['\"’]?(?: for reading)?: ([A-Z][a-z][A-Za-z ]{3,40})\s*\Z"
)
_LISTED = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,63}(?:[ \t]+[A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,63}){0,199}\Z")
_LONG = re.compile(r"[dlcb-][rwxsStT-]{9}\S?\s.{10,200}?\s(\S{1,64})(?: -> (\S{1,400}))?\s*\Z")
_PROMPT = re.compile(r"(?:[^\s$#%]{0,80}[$#%] |[^\n]{1,80}[\]~)][$#%] |\+ )\S")
_PATTERN = re.compile(r"[*?{}\[\]$]")
_ERRNO = {
    "no such file or directory": "ENOENT", "not a directory": "ENOTDIR", "invalid argument": "EINVAL",
    "permission denied": "EACCES", "operation not permitted": "EPERM", "input/output error": "EIO",
}  # fmt: skip
_MARK = re.compile(rf"{_ROOT}[a-z]")


@dataclass(frozen=True, slots=True)
class Shown:
    """One line of a tree file (evidence/tree.py) and the line of the paste that it stands for."""

    line: int
    op: str
    path: str
    text: str


def shown_files(text: str) -> Iterator[Shown]:
    """What a paste shows of files, in its order. Never raises."""
    if _MARK.search(text) is None:
        return
    seen: set[str] = set()
    open_path, folder, left = "", "", 0
    for number, whole in enumerate(text.split("\n"), 1):
        line = whole[:MAX_LINE].strip(_MARGIN).rstrip()
        asked = _CAT.search(line)
        listed = _LS.search(line)
        named = _NAMED.match(line)
        failed = _FAILED.match(line)
        head = _HEAD.match(line)
        if asked or listed or head or failed or named or not line or _PROMPT.match(line):
            open_path, folder = "", ""
        if asked:
            path = asked[1].rstrip(";")
            if not _PATTERN.search(path) and path not in seen:
                open_path, left = path, MAX_SHOWN
        elif head:
            open_path, left = ("" if head[1] in seen else head[1]), MAX_SHOWN
        elif listed:
            folder = "" if _PATTERN.search(listed[1]) else listed[1]
        elif failed:
            code = _ERRNO.get(failed[2].strip().lower())
            if code and failed[1] not in seen and not _PATTERN.search(failed[1]):
                seen.add(failed[1])
                yield Shown(number, "!", failed[1][1:], f"{code} {failed[2].strip()}")
        elif named:
            if named[1] not in seen or named[1] == open_path:
                seen.add(named[1])
                yield Shown(number, "=", named[1][1:], named[2])
        elif open_path and line and left:
            left -= 1
            seen.add(open_path)
            yield Shown(number, "=", open_path[1:], line)
        elif folder and line:
            yield from _in_folder(number, folder, line)


def _in_folder(number: int, folder: str, line: str) -> Iterator[Shown]:
    """The names that a line of `ls` shows of a folder, with the target of a link where it shows one."""
    long = _LONG.match(line)
    if long is not None:
        op, text = (">", long[2]) if long[2] else ("d", "")
        yield Shown(number, op, f"{folder[1:]}/{long[1]}", text)
    elif _LISTED.match(line) and not line.startswith("total "):
        for name in line.split():
            yield Shown(number, "d", f"{folder[1:]}/{name}", "")


@lru_cache(maxsize=8)
def _paths(text: str) -> tuple[str, ...]:
    return tuple(shown.path for shown in shown_files(text))


def shows(text: str, *starts: str) -> bool:
    """Whether a paste shows a file below one of these places (`sys/class/infiniband/`)."""
    return any(path.startswith(starts) for path in _paths(text))


__all__ = ["Shown", "shown_files", "shows"]
