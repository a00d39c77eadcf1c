"""Ranks that wait, jobs of which nothing else is known than that a watchdog ended their wait, and where the ranks of a
job are that left no line.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topodiag.model.job import Job

WAITS = frozenset({"watchdog", "timeout", "stalled"})
"""Kinds of events of ranks that waited until somebody lost patience."""
_BESIDE_A_HANG = frozenset({"watchdog", "note", "unwind", "launched", "met", "tried"})
"""Kinds of events that name no error."""
_BY_WATCHDOG = frozenset({"context", "aborted", "stopped"})
"""Ends of processes that a watchdog ends, by SIGABRT, and of those that their launcher stops then."""


def only_waited(job: Job) -> bool:
    """Whether all that a job tells is that ranks waited, and ended by their watchdog: an error code beside it is that
    of the launcher."""
    hows = {event.details.get("how") for event in job.events if event.kind == "ended"}
    ended = hows <= _BY_WATCHDOG or ("aborted" in hows and hows <= _BY_WATCHDOG | {"exit"})
    return ended and all(event.kind == "ended" or event.kind in _BESIDE_A_HANG for event in job.events)


def silent_host(job: Job) -> str:
    """The host of the ranks without a line, by the others: it has as many ranks less than the fullest one as are
    missing, and no other has room. "" where there is none such."""
    counts = Counter(rank.host for rank in job.ranks)
    most = max(counts.values(), default=0)
    room = {host: most - count for host, count in counts.items() if count < most}
    lost = job.world_size - len(job.ranks)
    return next(iter(room)) if len(room) == 1 and sum(room.values()) == lost else ""
