"""A service of the NVLink fabric whose own program refuses how it was called: it prints its usage and does not start.

    Unknown option: /usr/share/nvidia/nvswitch/fabricmanager.cfg
    NVIDIA Fabric Manager Start Script
    Usage: /usr/bin/nvidia-fabricmanager-start.sh [script options] --args ..

A container's entry point goes on after that, and no later line says that the service is not there. The usage alone is
what somebody asked for with `--help`.

SOURCE: nvidia-fabricmanager-start.sh of the packages of R570 and later; getopt(3) of glibc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from topodiag.evidence.host.contradictions import Contradiction

MAX_LINE = 1000
APART = 12
"""Lines between the refusal and the usage: a few sentences of warning stand there."""
_REFUSED = re.compile(
    r"^\W{0,8}(?:\S{1,80}: )?(?:[Uu]nknown|[Uu]nrecogni[sz]ed|[Ii]nvalid|[Ii]llegal) (?:command[- ]line )?"
    r"(?:option|argument)s?\b"
)
_USAGE = re.compile(
    r"\bUsage: \S{0,120}(?:nv-?fabricmanager|nvidia-fabricmanager|nv-fabricmanager|nvidia-imex)", re.IGNORECASE
)


def refused_starts(lines: Sequence[str]) -> Iterator[Contradiction]:
    """Of lines numbered from 1: the line that refuses an option of such a service."""
    at = 0
    for number, whole in enumerate(lines, 1):
        line = whole[:MAX_LINE]
        if "ption" in line or "rgument" in line:
            at = number if _REFUSED.search(line) is not None else at
        if "sage: " in line and at and number - at <= APART and _USAGE.search(line) is not None:
            refused = " ".join(lines[at - 1].split())[:160]
            yield Contradiction(at, "fabric", f"{refused}: the program prints its usage and does not start")
            at = 0


__all__ = ["refused_starts"]
