"""What an excerpt of a job's log leaves open: a fault that it does not show may stand in the rest."""

from __future__ import annotations

from topodiag.model.job import Job

_LEFT_BEHIND = frozenset({"peer closed", "watchdog", "timeout", "stalled"})
"""What ranks say that lost another one, or wait for it."""


def met(job: Job) -> bool:
    """Whether the logs show that ranks came together: an init that completed, or connections. An excerpt that ends
    before that shows neither that a network works nor that nothing went wrong on it."""
    return any(
        bool(communicator.completed.any()) or bool(communicator.transports) for communicator in job.communicators
    )


def others_fell_first(job: Job) -> bool:
    """Whether ranks report that another one is gone, or wait for it, while logs of ranks are missing: why that one
    ended stands in its own."""
    world = job.world
    whole = world is not None and not world.inferred and len(world.known) == world.nranks
    return not whole and any(event.secondary or event.kind in _LEFT_BEHIND for event in job.events)
