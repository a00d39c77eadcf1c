"""Node sets as Slurm and ClusterShell write them (`gpu[001-064]`, `rack[1-2]node[0-7]`) and lists of GPUs, bounded."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from topodiag.lazy import regex

if TYPE_CHECKING:
    from ClusterShell.NodeUtils import GroupResolver

MAX_NODES = 200_000
"""Twice the nodes of the largest machines: more is a slip of the keyboard."""
MAX_TEXT = 4 << 20
MAX_GPUS = 256
"""GPUs of one node: no machine has more."""
MAX_BRACKETS = 8
"""Ranges in one name. Halls, rows, racks, chassis and nodes are five; with more, a line was torn."""
_BRACKET = regex(r"\[([^\[\]]*)\]")
_TAIL = regex(r"\][0-9\[]", re.ASCII)
_RANGE = regex(r"(\d{1,12})(?:-(\d{1,12}))?(?:/(\d{1,6}))?", re.ASCII)
_NAME = regex(r"[A-Za-z0-9_][A-Za-z0-9._:/-]{0,252}", re.ASCII)
_WORD = r"(?:[A-Za-z0-9._-]*[A-Za-z._-])?"
_PRODUCT = regex(rf"[A-Za-z_]{_WORD}(?:\[[0-9,/-]+\](?:[A-Za-z._-]{_WORD})?)+", re.ASCII)
MAX_NAME = 200
"""Characters of a set that is taken apart here: its names are host names."""
_SIMPLE = regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}", re.ASCII)


class NodeSetError(ValueError):
    """Not a node set, or too large a one; the text is one line for the reader."""


def expand(text: str, most: int = MAX_NODES, *, groups: bool = False) -> tuple[str, ...]:
    """The nodes of a set in its order; `most` are counted before anything is expanded. Groups (`@all`) are looked up
    with `groups`, where the site has a file of them, and refused otherwise: what they mean depends on the machine that
    asks. Raises NodeSetError."""
    text = text.strip()
    if _SIMPLE.fullmatch(text):
        return (text,)
    named = "@" in text
    if not text or (named and not groups):
        raise NodeSetError(f"{short(text)!r} is no node set: write gpu[001-064] or a,b,c")
    if len(text) > MAX_TEXT or _count(text) > most:
        raise NodeSetError(f"{short(text)!r} is more than {most} nodes")
    if _TAIL.search(text):
        # ClusterShell would join them with the range: n[1-4]99999 is 300,001 numbers to it.
        raise NodeSetError(f"{short(text)!r} is no node set: a digit follows a bracket")
    simple = _product(text)
    if simple is not None:
        return simple
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException  # noqa: PLC0415 - slow to load
    from ClusterShell.NodeUtils import GroupResolverError, GroupSourceError  # noqa: PLC0415

    wrong = (
        NodeSetException,
        GroupResolverError,
        GroupSourceError,
        ValueError,
        IndexError,
        OverflowError,
        AssertionError,
    )
    try:
        node_set = NodeSet(text, resolver=_site_groups(text) if named else RESOLVER_NOGROUP)
        if len(node_set) > most:
            raise NodeSetError(f"{short(text)!r} is more than {most} nodes")
        nodes = tuple(str(node) for node in node_set)
    except NodeSetError:
        raise
    except wrong as error:
        raise NodeSetError(f"{short(text)!r} is no node set: {short(str(error))}") from None
    bad = next((node for node in nodes if not _NAME.fullmatch(node)), None)
    if bad is not None or not nodes:
        raise NodeSetError(f"{short(bad or text)!r} is no host name")
    return nodes


def _product(text: str) -> tuple[str, ...] | None:
    """The nodes of one name with ranges of numbers in brackets, in ClusterShell's order, which takes seconds for a
    hundred thousand nodes of many brackets. None for all that asks for more: lists of names, numbers of mixed widths,
    numbers before a bracket."""
    if not _PRODUCT.fullmatch(text) or len(text) > MAX_NAME:
        return None
    choices = [_numbers(piece) if place % 2 else (piece,) for place, piece in enumerate(_BRACKET.split(text))]
    if not all(choices):
        return None
    return tuple(map("".join, product(*choices)))


def _numbers(text: str) -> tuple[str, ...]:
    """The numbers in a bracket, in order and once each, padded as they are written; () for mixed widths."""
    ends = [match.groups() for part in text.split(",") if (match := _RANGE.fullmatch(part)) is not None]
    width = _width([end for low, high, _ in ends for end in (low, high) if end])
    ranges = [(int(low), int(high or low), int(step or 1)) for low, high, step in ends]
    if width is None or any(low > high or step == 0 for low, high, step in ranges):
        return ()
    numbers = {number for low, high, step in ranges for number in range(low, high + 1, step)}
    return tuple(f"{number:0{width}d}" if width else str(number) for number in sorted(numbers))


def _width(written: Sequence[str]) -> int | None:
    """Digits that numbers are padded to; 0 where none is padded, None where they are padded to different widths."""
    if not any(len(digits) > 1 and digits.startswith("0") for digits in written):
        return 0
    widths = {len(digits) for digits in written}
    return widths.pop() if len(widths) == 1 else None


def _site_groups(text: str) -> GroupResolver:
    """The groups of this site. ClusterShell's own package brings groups of example hosts: they are nobody's nodes."""
    from ClusterShell.Defaults import config_paths  # noqa: PLC0415 - slow to load
    from ClusterShell.NodeUtils import GroupResolverConfig  # noqa: PLC0415

    own = Path(sys.prefix).resolve()
    files = [path for path in map(Path, config_paths("groups.conf")) if path.is_file()]
    files = [file for file in files if not file.resolve().is_relative_to(own)]
    if not files:
        raise NodeSetError(
            f"{short(text)!r} names a group, and this machine has no groups (/etc/clustershell/groups.conf)"
        )
    return GroupResolverConfig([str(file) for file in files])


def _count(text: str) -> int:
    """At least as many nodes as the set has, before anything is expanded. Raises NodeSetError for a bracket that holds
    anything but numbers and ranges: ClusterShell takes `[-1-9]` and the like for ranges of its own making."""
    total, here, brackets = 0, 1, 0
    for piece in re.split(r"(\[[^\[\]]*\]|,)", text):
        if piece == ",":
            total, here, brackets = total + here, 1, 0
        elif bracket := _BRACKET.fullmatch(piece):
            here, brackets = here * max(_in_bracket(bracket[1]), 1), brackets + 1
            if brackets > MAX_BRACKETS:
                raise NodeSetError(f"{short(text)!r} has more than {MAX_BRACKETS} ranges in one name")
            if here > MAX_NODES:
                return here
    return total + here


def _in_bracket(text: str) -> int:
    """How many numbers a bracket holds, at most. Raises NodeSetError."""
    total = 0
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise NodeSetError(f"{short(text)!r} is no range of a node set: write gpu[001-064]")
        low, high = int(match[1]), int(match[2] or match[1])
        total += max(high - low, 0) // max(int(match[3] or 1), 1) + 1
    return total


def members_of(text: str, end: int) -> range:
    """The numbers below `end` that `3`, `0-7` or `0-28/4` stands for; none for anything else."""
    match = _RANGE.fullmatch(text.strip())
    if match is None or (match[3] and not match[2]):
        return range(0)
    first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
    return range(first, last + 1, step) if last < end and step else range(0)


def gpu_list(text: str) -> tuple[int, ...]:
    """Indices from `0-3,6`, in order and once each. Raises NodeSetError."""
    numbers: set[int] = set()
    for part in text.split(","):
        members = members_of(part, MAX_GPUS)
        if not members or "/" in part:
            raise NodeSetError(f"{short(text)!r} is no list of GPUs: write 0-3,6")
        numbers.update(members)
    return tuple(sorted(numbers))


def short(text: str) -> str:
    """A piece for an error message: no line end, no control character, no more than 60 characters."""
    cleaned = "".join(c if c.isprintable() else "?" for c in text[:61])
    return cleaned if len(text) <= 60 else cleaned[:60] + "..."
