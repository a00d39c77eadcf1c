"""Takes off what a parallel shell puts before each line: `gpu-001: ` of pdsh and clush, `0: ` of `srun -l`."""

from __future__ import annotations

from dataclasses import replace

from topodiag.evidence.interface import Blob
from topodiag.lazy import regex

_PREFIX = regex(r" {0,6}(?!\d{4}-\d\d-\d\d[T_]\d\d:\d\d|\d\d:\d\d:\d\d)([A-Za-z0-9][A-Za-z0-9._-]{0,62}): ?")
"""A clock before each line is no label: `2026-03-02T07:02:11` or `07:02:11`."""
MIN_LINES = 3
"""Lines that must agree: fewer prove nothing."""


def prefix_of(blob: Blob) -> str:
    """The prefix that all lines of a text share, "" where they share none.

    An empty line counts as agreeing, since pasting loses it. Two hosts in one text are no one node: "".
    """
    label = ""
    agreed = 0
    for line in blob.text.split("\n"):
        if not line.strip():
            continue
        match = _PREFIX.match(line)
        if match is None or (label and match[1] != label):
            return ""
        label = match[1]
        agreed += 1
    return label if agreed >= MIN_LINES else ""


def without_prefix(blob: Blob) -> Blob | None:
    """The text without the prefix that all its lines share, line for line; None where they share none."""
    if not prefix_of(blob):
        return None
    bare = "\n".join(_PREFIX.sub("", line, count=1) for line in blob.text.split("\n"))
    return replace(blob, data=bare.encode())
