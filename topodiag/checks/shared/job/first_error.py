"""The first error of a job: which of its errors stand for themselves, and which of these came first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from topodiag.checks.shared.devices import addresses_of_node
from topodiag.checks.shared.job.text import NO_ERRORS, Clocks, clocks_of, failed, place_of, survived
from topodiag.model.finding import Confidence
from topodiag.model.job import Event, Job
from topodiag.words.own_data import own_data

CLOSE_S = 1.0
"""Seconds between events of two hosts below which their order may be that of their clocks."""

CAUSES: dict[str, int] = own_data("checks/shared/job/first_error")["causes"]
"""How early in a chain of faults each kind stands: a lower one causes a higher one, hardly ever the reverse."""

OWN = frozenset({"version", "cuda", "memory", "port", "plugin"})
"""Kinds of what a process meets by itself, without another rank."""

WARNINGS = frozenset({"topology", "plugin", "other", "ib async", "port"})
"""Kinds that jobs live with: an error only where the job shows that it failed."""

NO_CAUSE = frozenset({"other", "watchdog", "peer closed", "timeout"})
"""Kinds of lines that an application prints in the end of which none names what came first."""

_ABOVE_CRASH = 10
"""Lines above its crash within which the error of a process says why it crashes."""


def first_error(job: Job) -> Event | None:
    """The event that JOB005 takes for the first error, None where it finds only what follows from others."""
    errors = errors_of(job)
    primary = primary_errors(job, errors) or repeated_errors(job, [e for e in errors if e.secondary])
    return choose(primary, clocks_of(job))[0] if primary else None


def errors_of(job: Job) -> list[Event]:
    return [
        event
        for event in job.events
        if event.level != "UNWIND"
        and event.kind not in NO_ERRORS
        and not survived(job, event)
        and not (event.kind == "mismatch" and event.details.keys() & {"one", "told"})  # whole verdicts: JOB006
        and not (event.level == "APP" and ("goes on" in event.details or refused_over_iwarp(job, event)))
    ]


def primary_errors(job: Job, errors: Sequence[Event]) -> list[Event]:
    """The errors that stand for themselves; warnings only where the job shows that it failed."""
    broken = failed(job)
    primary = [e for e in errors if not e.secondary and (broken or e.kind not in WARNINGS)]
    return _that_ended([event for event in primary if "goes on" not in event.details], job)


def repeated_errors(job: Job, secondary: Sequence[Event]) -> list[Event]:
    """NCCL's own errors that only the application repeats, and those that a rank reports right above its crash."""
    crashes = [event for event in job.events if event.details.get("how") == "crash" and event.rank >= 0]
    above = {(crash.rank, place_of(crash)[1] - lines) for crash in crashes for lines in range(1, _ABOVE_CRASH)}
    repeated = [event for event in secondary if event.level == "APP" and event.kind not in NO_CAUSE]
    return repeated or [event for event in secondary if (event.rank, place_of(event)[1]) in above]


def _that_ended(primary: Sequence[Event], job: Job) -> list[Event]:
    """Without warnings that a process survived, where others ended: what a plugin or the topology's reader warns of in
    init is hours older than the error, and mostly has nothing to do with it."""
    soft = {"topology", "plugin", "other"}
    ended = {(event.host, event.pid) for event in primary if event.kind not in soft}
    if not ended:
        return list(primary)
    unwound = {(event.host, event.pid) for event in job.events if event.level == "UNWIND"} - ended
    return [event for event in primary if event.kind not in soft or (event.host, event.pid) in unwound]


def _first_of_each(events: Sequence[Event]) -> list[Event]:
    """The events without those that a process printed after an error of its own, which they cannot have caused."""
    first: dict[tuple[str, int, str], int] = {}
    for event in events:
        line = _line(event)
        if line is not None and event.kind not in WARNINGS and event.level != "APP":
            first[_writer(event)] = min(line, first.get(_writer(event), line))
    return [event for event in events if (line := _line(event)) is None or line <= first.get(_writer(event), line)]


def _writer(event: Event) -> tuple[str, int, str]:
    return event.host, event.pid, event.origin.source if event.origin else ""


def _line(event: Event) -> int | None:
    return event.origin.line if event.origin is not None and event.pid >= 0 else None


def choose(primary: Sequence[Event], clocks: Clocks) -> tuple[Event, Confidence, str]:
    """The first of the errors that stand for themselves, how sure that is, and what it rests on.

    By time where all of them have one, else by what causes what. The watchdog, which fires minutes after the fault it
    reports, and lost peers yield to any other kind.
    """
    own = [event for event in primary if CAUSES.get(event.kind, 3) < CAUSES["timeout"]] or list(primary)
    own = _first_of_each(own)
    if all(event.ts is not None for event in own):
        return _first_by_time(own, clocks)
    ordered = sorted(own, key=lambda e: (_cause_rank(e), e.ts is None, clocks.at(e), _work(e)))
    first = ordered[0]
    same = [e for e in ordered if _cause_rank(e) == _cause_rank(first)]
    if len({process_of(e) for e in same}) > 1:
        named = Counter(e.details.get("peer", "") for e in same if e.details.get("peer"))
        most = f", most name {named.most_common(1)[0][0]}" if named else ""
        doubt = f"; one of {len(same)} errors of this kind without a time{most}: which came first is not known"
        return first, Confidence.LOW, doubt
    return first, Confidence.MEDIUM if len(own) > 1 else Confidence.HIGH, ""


def _first_by_time(own: Sequence[Event], clocks: Clocks) -> tuple[Event, Confidence, str]:
    """The first of errors that all have a time. The clocks of two hosts are compared by the end of a common init; where
    they cannot be, or within CLOSE_S, the order is said to rest on them."""
    ordered = sorted(own, key=lambda e: (clocks.at(e), _cause_rank(e), e.host, e.rank))
    first = ordered[0]
    rival = next((e for e in ordered[1:] if e.host != first.host), None)
    if rival is None:
        return first, Confidence.HIGH, ""
    compared = clocks.words(first.host, rival.host)
    if clocks.at(rival) - clocks.at(first) >= CLOSE_S:
        if clocks.compares(first.host, rival.host):
            return first, Confidence.HIGH, compared
        return first, Confidence.MEDIUM, f"; no common init compares the clocks of {first.host} and {rival.host}"
    doubt = f"; {rival.host} reports {rival.kind} within a second: the order rests on the hosts' clocks"
    tied = [e for e in ordered if clocks.at(e) - clocks.at(first) < CLOSE_S] or [first]  # a time that is no number
    return min(tied, key=_cause_rank), Confidence.MEDIUM, doubt + compared  # the first of them: min is stable


def _cause_rank(event: Event) -> int:
    """What causes what: the lower, the nearer to the cause."""
    return CAUSES.get(event.kind, 3)


def _work(event: Event) -> int:
    """The sequence number of the work that a watchdog gave up on: of several, the lowest stopped first."""
    seq = event.details.get("seq", "")
    return int(seq) if seq.isdecimal() and event.kind == "watchdog" else 1 << 62


def process_of(event: Event) -> tuple[str, int]:
    return (event.host, event.rank if event.rank >= 0 else event.pid)


def peer_of(job: Job, event: Event) -> str:
    """The peer that an event names, with its host where the address is one that a process used."""
    address = (event.details.get("peer") or event.details.get("address", "")).split("<")[0]
    if not address:
        return ""
    met = f":{address}<"
    hosts = {process.host for process in job.processes if address in process.addresses or met in process.bootstrap}
    # A host that no line of the log is from is known by its capture.
    hosts = hosts or {host for host, node in job.machines.items() if address in addresses_of_node(node)}
    return f"{hosts.pop()} ({address})" if len(hosts) == 1 else address


def refused_over_iwarp(job: Job, event: Event) -> bool:
    """Whether a queue pair was refused in a text whose tests ran over iWARP: without the connection manager (`-R`) it
    always is, and says nothing of the network."""
    if event.origin is None or "refused" not in event.details:
        return False
    return any(
        note.details.get("transport") == "iwarp" and note.origin is not None
        and note.origin.source == event.origin.source
        for note in job.events
    )  # fmt: skip
