"""Bus errors of a job's processes that are those of shared memory without room.

    [8d6b:3039 :0:3095] Caught signal 7 (Bus error: nonexistent physical address)
     2 0x000000000007587d ncclGroupEnd()  ???:0

The kernel sends SIGBUS for a page of a mapped file for which there is no room or no file any more. NCCL maps nothing
but its segments in /dev/shm; another program may map data as well. SOURCE: sigaction(2), BUS_ADRERR; NCCL
src/misc/shmutils.cc.
"""

from __future__ import annotations

import re

from topodiag.lazy import regex
from topodiag.model.job import Event, Job

_BUS = regex(r"[Bb]us error|\bSIGBUS\b|\bsignal 7\b", re.IGNORECASE)
_OTHER_BUS = regex(r"alignment|object-specific|BUS_(?:ADRALN|OBJERR|MCEERR)|[Hh]ardware", re.IGNORECASE)
"""Bus errors for which the kernel has other reasons: an odd address, and memory that failed."""
_NO_PAGE = regex(r"nonexistent physical address|\bBUS_ADRERR\b", re.IGNORECASE)
_FRAME = regex(r"\s{0,8}@ {1,16}0x[0-9a-f]{6,16} .{0,40}?\bnccl[A-Z]")
"""A frame as glog prints it, of a function whose name stands in NCCL's own errors, too."""
MOST_BETWEEN = 30
"""Lines between a signal and a frame of the stack that its handler prints below."""


def in_nccl(job: Job) -> tuple[Event, ...]:
    """The bus errors below which a stack names functions of NCCL."""
    frames = [event for event in job.events if event.details.get("symbol") or _FRAME.match(event.text)]
    return tuple(event for event in _bus_errors(job) if any(_below(event, frame) for frame in frames))


def of_no_page(job: Job) -> tuple[Event, ...]:
    """The bus errors of which the handler says that no page stands behind the address."""
    return tuple(event for event in _bus_errors(job) if _NO_PAGE.search(event.text) is not None)


def _bus_errors(job: Job) -> list[Event]:
    return [
        event
        for event in job.events
        if event.details.get("how") == "crash"
        and _BUS.search(event.text) is not None
        and _OTHER_BUS.search(event.text) is None
    ]


def _below(event: Event, frame: Event) -> bool:
    at, of = event.origin, frame.origin
    if at is None or of is None or at.line is None or of.line is None or at.source != of.source:
        return False
    return 0 < of.line - at.line <= MOST_BETWEEN


__all__ = ["in_nccl", "of_no_page"]
