"""RDMA devices for which an image has no user-space driver, where nothing in the text uses RDMA after that.

    libibverbs: Warning: no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs0
    .. was unable to find any relevant network interfaces:
    Module: OpenFabrics (openib)

libibverbs warns so of each device without its library, cards that nobody means to use among them: it counts beside a
program that then finds no RDMA device. Its warnings of drivers that cannot be loaded name no device, and say nothing.

SOURCE: rdma-core libibverbs/init.c (match_drivers); Open MPI help-mpi-btl-openib.txt, help-mpi-btl-base.txt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from topodiag.evidence.sentences import Together

MAX_LINE = 1000
_MISSING = re.compile(r"libibverbs: Warning: no userspace device-specific driver found for \S{0,80}?(uverbs\d{1,4})\b")
_FINDS_NONE = re.compile(
    r"\bunable to find any relevant network interfaces\b|\bNo IB devices found\b"
    r"|^\s{0,8}0 HCAs? found\b|\bUnable to find the Infiniband/RoCE device\b|\bNumber of IB devices found: 0\b"
    r"|\bno (?:usable )?(?:RDMA|IB|verbs) devices? (?:was |were )?(?:found|available)\b",
    re.IGNORECASE,
)
RDMA_USED = re.compile(
    r"\bNET/IB ?: Using \[|\bUsing network IB\b|\btransport=(?:RDMA|rdma)\b|\bstate:\s{1,20}PORT_ACTIVE\b"
    r"|\bvia NET/IB",
    re.IGNORECASE,
)


def no_provider(lines: Sequence[str]) -> Iterator[Together]:
    """Of lines numbered from 1: the first device that nothing here can drive."""
    missing = [
        (number, found[1])
        for number, line in enumerate(lines, 1)
        if "libibverbs: Warning" in line and (found := _MISSING.search(line[:MAX_LINE])) is not None
    ]
    if not missing or any(RDMA_USED.search(line[:MAX_LINE]) is not None for line in lines):
        return
    if any(_FINDS_NONE.search(line[:MAX_LINE]) is not None for line in lines):
        devices = ", ".join(dict.fromkeys(name for _, name in missing[:8]))
        words = f"libibverbs has no user-space driver for {devices}, and a program finds no RDMA device"
        yield Together("provider", missing[0][0], words)


__all__ = ["RDMA_USED", "no_provider"]
