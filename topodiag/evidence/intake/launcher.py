"""Takes off what a parallel shell puts before each line: `gpu-001: ` of pdsh and clush, `0: ` of `srun -l`."""

from __future__ import annotations

import re
from dataclasses import replace

from topodiag.evidence.interface import Blob

_PREFIX = re.compile(r" {0,6}([A-Za-z0-9][A-Za-z0-9._-]{0,62}): ?")
MIN_LINES = 3
"""Lines that must agree: fewer prove nothing."""


def without_prefix(blob: Blob) -> Blob | None:
    """The text without the prefix that all its lines share, line for line; None where they share none.

    An empty line counts as agreeing, since pasting loses it. Two hosts in one text are no one node: None.
    """
    lines = blob.text.split("\n")
    labels = {match[1] if (match := _PREFIX.match(line)) else None for line in lines if line.strip()}
    if len(labels) != 1 or None in labels or sum(bool(line.strip()) for line in lines) < MIN_LINES:
        return None
    bare = "\n".join(_PREFIX.sub("", line, count=1) for line in lines)
    return replace(blob, data=bare.encode())
