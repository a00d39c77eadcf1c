"""What the sources of a case say against each other of one machine, and captures that show another time than the job's.

A contradiction is no error of a source: a machine with eight NICs up and a job on it that sees none is the diagnosis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from topodiag.model.clock_text import booted, captured, is_wall, stamp
from topodiag.model.job_wires import hosts_on_sockets, nics_up
from topodiag.model.node import Node
from topodiag.model.result import Case, Conflict, Identity
from topodiag.words.units import few, grouped, plural

if TYPE_CHECKING:
    from topodiag.model.job import Job

SLACK_S = 16 * 3600.0
"""Seconds by which a time without a zone can be off: zones reach from -12 to +14 hours, and clocks differ."""
_MOST = 64
"""Contradictions kept."""


def with_ages(case: Case, identity: Identity) -> Identity:
    """The hosts, each with what makes its capture one of another time than the job's."""
    spans = _spans(case, identity)
    ages = {identity.name(node.host): age for node in case.nodes if (age := _age(node, spans, identity))}
    if not ages:
        return identity
    hosts = tuple(replace(host, stale=ages.get(host.name, "")) for host in identity.hosts)
    conflicts = [Conflict(name, why) for name, why in sorted(ages.items())]
    return replace(identity, hosts=hosts, conflicts=(*identity.conflicts, *conflicts))


def contradictions(case: Case) -> tuple[Conflict, ...]:
    """What sources say against each other of the machines of a case whose jobs know their captures."""
    conflicts = [conflict for job in case.jobs for conflict in (*_networks(job, case), *_devices(job, case))]
    return tuple(conflicts[:_MOST])


# --- captures of another time ---------------------------------------------------------------------------------------


def _spans(case: Case, identity: Identity) -> Mapping[str, tuple[float, float]]:
    """By host, the first and the last time that its jobs show, seconds of the epoch."""
    spans: dict[str, tuple[float, float]] = {}
    for job in case.jobs:
        times = [time for event in job.events for time in (event.ts, event.last_ts)]
        times += [time for communicator in job.communicators for time in communicator.completed_ts.tolist()]
        known = [time for time in times if is_wall(time)]
        if not known:
            continue
        start, end = min(known), max(known)
        for host in job.hosts:
            name = identity.name(host)
            first, last = spans.get(name, (start, end))
            spans[name] = (min(first, start), max(last, end))
    return spans


LASTING = "its parts, slots and what they can do are used as they stand"
"""What no boot and no hour changes."""


def _age(node: Node, spans: Mapping[str, tuple[float, float]], identity: Identity) -> str:
    """Why a capture does not show the machine as its jobs met it, "" where nothing says so. Only what no zone explains
    counts: a machine that booted after the job, a capture from before it."""
    span, taken, start = spans.get(identity.name(node.host)), captured(node), booted(node)
    if span is None or taken is None:
        return ""
    if start is not None and start - SLACK_S > span[1]:
        when = f"booted {stamp(start)}, after the last line of the job ({stamp(span[1])})"
        return f"{when}: states and counters are of another boot, {LASTING}"
    if taken + SLACK_S < span[0]:
        return f"captured {stamp(taken)}, before the job ({stamp(span[0])}): states may have changed since, {LASTING}"
    return ""


# --- a machine and the jobs on it -----------------------------------------------------------------------------------


def _networks(job: Job, case: Case) -> Iterator[Conflict]:
    """NICs that are up on the machine, and sockets in the job."""
    up = nics_up(job, hosts_on_sockets(job))
    first = {process.host: process.origin for process in reversed(job.processes)} if up else {}
    for host, ports in up.items():
        name = case.identity.name(host)
        text = f"its capture shows {plural(len(ports), 'RDMA NIC')} up, and the job on it uses sockets"
        text += ": what lies between is the container, or a setting"
        lines = [ports[0].state.origin, first.get(host)]
        yield Conflict(name, text, tuple(line for line in lines if line is not None), "NET001")


def _devices(job: Job, case: Case) -> Iterator[Conflict]:
    """GPUs that the job used and the capture of its machine does not have."""
    by_host = grouped((rank.host, (rank.bus_id, rank)) for rank in job.ranks if rank.bus_id)
    for host, machine in job.machines.items():
        there = {gpu.bus_id for gpu in machine.gpus if gpu.bus_id}
        used = dict(by_host.get(host, ()))
        texts = sorted(set(used) - there) if there else []
        if not texts:
            continue
        name, lines = case.identity.name(host), [used[bus].origin for bus in texts]
        if len(texts) == len(used):
            text = f"the job used GPUs at {few(texts)}, and its capture has none of them: is it of this machine?"
        else:
            text = f"the job used the GPU at {few(texts)}, and its capture does not have it"
        yield Conflict(name, text, tuple(line for line in lines if line is not None)[:4])
