"""For JOB001 and JOB010: what processes of one job print of their start, and how it does not fit together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.words import quoted
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Event, Job

LAUNCHED = "launched"
"""Kind of such lines (evidence/nccl_log/grammar/launches.py)."""
_TOGETHER_S = 180
"""Seconds within which two processes start that are of one job, and not of two that follow each other."""


def of_unlike_worlds(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    """Nodes that start different numbers of processes where each counts a world of the nodes times its own number."""
    for told in _by_meeting(job, "node").values():
        counts = {event.details["node"]: event for event in told if "each" in event.details}
        numbers = {event.details["each"] for event in counts.values()}
        if len(counts) < 2 or len(numbers) < 2:
            continue
        nodes = int(told[0].details["nodes"])
        worlds = "; ".join(
            f"node {node} starts {event.details['each']} and counts {nodes * int(event.details['each'])} ranks"
            for node, event in sorted(counts.items())
        )
        yield check.finding(
            Severity.ERROR,
            f"nodes start different numbers of processes: {worlds}",
            observed=quoted(told[0].text, 200),
            expected="one number of processes on all nodes: the program multiplies its own with that of the nodes",
            fix=("the same --num-gpus on each node, or a launcher that counts ranks by node (torchrun)",),
            cost=Cost(share=1.0, text="the nodes wait for ranks that never start"),
            evidence=[event.origin for event in counts.values()],
            confidence=Confidence.MEDIUM,
        )


def of_one_rank_twice(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    """Two logs, begun at one time, whose processes take themselves for the same rank of one meeting."""
    for told in _by_meeting(job, "rank").values():
        ranks = {event.details["rank"] for event in told}
        first = {event.origin.source: event for event in told if event.origin is not None}
        clocks = [int(event.details["clock"]) for event in first.values() if "clock" in event.details]
        world = int(told[0].details["world"])
        if len(ranks) > 1 or not 1 < len(first) <= world or len(clocks) < len(first):
            continue
        if max(clocks) - min(clocks) > _TOGETHER_S:
            continue
        yield check.finding(
            Severity.WARNING,
            f"{len(first)} processes that begin together take themselves for rank {min(ranks)} of {world}",
            observed="; ".join(quoted(event.text, 160) for event in list(first.values())[:2]),
            expected="each rank once: the meeting waits for those that nobody is",
            fix=(
                "the node rank that the launcher hands out (`--node-rank`, NODE_RANK) has to reach each node's process",
                "if these are two starts on one node, one after the other, nothing is wrong with them",
            ),
            cost=Cost(share=1.0, text="the start waits for ranks that nobody is"),
            evidence=[event.origin for event in first.values()],
            confidence=Confidence.LOW,
        )


def _by_meeting(job: Job, key: str) -> dict[tuple[str, str], list[Event]]:
    """The starts that say what `key` names, by the address at which they meet and the size of what meets there."""
    made: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in job.events:
        if event.kind == LAUNCHED and key in event.details and "at" in event.details:
            size = event.details.get("nodes") or event.details["world"]
            made[event.details["at"], size].append(event)
    return made
