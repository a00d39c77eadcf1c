"""What others say of nodes, beside a job: a scheduler's word counts for the nodes on which the job runs alone, and a
sentence that anybody may have written counts where no job worked on below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from topodiag.model.events import NODE_DOWN, SCHEDULED, Event, Trust
from topodiag.model.node import Node
from topodiag.model.result import Case
from topodiag.words.node_sets import NodeSetError, expand
from topodiag.words.units import grouped, plural, short_hosts

_DOWN = frozenset({"DOWN", "NOT_RESPONDING"})
"""Flags of Slurm's state. `POWERED_DOWN` is a node that saves power; a star stands behind one that does not answer."""


_HELD = {
    "not responding": ("*", "NOT_RESPONDING"),
    "down": ("DOWN",),
    "failing": ("FAIL",),
    "drained or draining": ("DRAIN", "DRNG"),
}
"""States in which nodes take no job, in Slurm's long and short words (sinfo(1), NODE STATE CODES), the worst first."""
_ROOM = 40
"""Characters of the names of nodes in one state, of which only a few fit into a headline."""


def held_words(case: Case) -> str:
    """`4 nodes are not responding (a[1-4]), ..`: what a scheduler lists in states that take no job; "" without any."""
    listed = (event for node in case.nodes for event in node.reports if event.kind == SCHEDULED)
    # A node that saves power is POWERED_DOWN.
    states = ((str(event.fields["state"]).upper().replace("_DOWN", ""), event.host) for event in listed)
    held = grouped(
        (word, host)
        for state, nodes in states
        if (word := next((word for word, flags in _HELD.items() if any(map(state.__contains__, flags))), ""))
        for host in _hosts(nodes)
    )
    parts = ((word, tuple(dict.fromkeys(held[word]))) for word in _HELD if word in held)
    return ", ".join(f"{plural(len(hosts), 'node')} {word} ({short_hosts(hosts, _ROOM)})" for word, hosts in parts)


def of_the_jobs(case: Case, name: Callable[[str], str]) -> Case:
    """The case with the scheduler's word of the nodes of its jobs alone, and a report of those that it lists as down.
    `name` is a host's one name. Without a job, or where the scheduler lists none of its nodes, nothing changes. A node
    that died may stand in the log only as the peer that others lost."""
    peers = {event.details.get("peer", "").partition("<")[0] for job in case.jobs for event in job.events}
    hosts = {name(host) for host in (*peers, *(host for job in case.jobs for host in job.hosts)) if host}
    ended = any(event.details.get("how") == "node failure" for job in case.jobs for event in job.events)

    def theirs(event: Event) -> list[str]:
        return [host for host in _hosts(event.host) if name(host) in hosts]

    def foreign(event: Event) -> bool:
        return event.kind != SCHEDULED and event.trust is Trust.AGENT and bool(event.host) and not theirs(event)

    def kept(node: Node) -> Iterator[Event]:
        lines = {(event.origin.source, event.origin.line) for event in node.reports if foreign(event)}
        for event in node.reports:
            if event.kind == SCHEDULED or (event.origin.source, event.origin.line) not in lines:
                yield event
            if event.kind == SCHEDULED and not ended and _is_down(str(event.fields["state"])):
                yield from (replace(event, kind=NODE_DOWN, host=host) for host in theirs(event))

    listed = [event for node in case.nodes for event in node.reports if event.kind == SCHEDULED]
    if not any(map(theirs, listed)):
        return case
    return replace(case, nodes=tuple(replace(node, reports=tuple(kept(node))) for node in case.nodes))


def without_outlived(case: Case) -> Case:
    """The case without sentences about a node of the lowest trust, where a job began its work below them: an MPI that
    finds no active port takes another way, and says no more of it."""

    if not case.jobs:
        return case
    from topodiag.checks.shared.job.text import outlived  # noqa: PLC0415 - numpy, which only jobs need

    def stands(event: Event) -> bool:
        return event.trust is not Trust.PERSON or not any(outlived(job, [event.origin]) for job in case.jobs)

    nodes = (replace(node, reports=tuple(filter(stands, node.reports))) for node in case.nodes)
    return replace(case, nodes=tuple(nodes))


def _is_down(state: str) -> bool:
    return state.endswith("*") or not _DOWN.isdisjoint(state.upper().split("+"))


def _hosts(nodes: str) -> tuple[str, ...]:
    try:
        return expand(nodes) if nodes else ()
    except NodeSetError:
        return (nodes,)
