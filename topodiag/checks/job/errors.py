"""The first error of a job, told apart from what followed from it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Never

from topodiag.checks.interface import JobCheck, OneStep
from topodiag.checks.job.clocks import Clocks, clocks_of
from topodiag.checks.job.device_faults import TOLD_BY
from topodiag.checks.job.error_advice import advice
from topodiag.checks.job.excerpts import met
from topodiag.checks.job.network_errors import refused_over_iwarp
from topodiag.checks.job.text import LIVED_WITH, NO_ERRORS, ask_for, failed
from topodiag.checks.shared.interfaces import addresses_of_node
from topodiag.checks.shared.words import hosts_word, quoted
from topodiag.lazy import regex
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.model.job import Event, Job
from topodiag.words.fold import few, plural

CLOSE_S = 1.0
"""Seconds between events of two hosts below which their order may be that of their clocks."""

CAUSES = {
    "duplicate gpu": 0, "version": 0, "cuda": 0, "memory": 0,
    "port": 1, "ib async": 1, "bootstrap": 1, "topology": 1, "plugin": 1,
    "ib completion": 2, "mismatch": 2,
    "connect": 3, "other": 3,
    "timeout": 4, "watchdog": 4,
    "peer closed": 5,
}  # fmt: skip
"""How early in a chain of faults each kind stands: a lower one causes a higher one, hardly ever the reverse."""

WARNINGS = frozenset({"topology", "plugin", "other", "ib async", "port"})
"""Kinds that jobs live with: an error only where the job shows that it failed."""

CODES = {"1": "CUDA error", "2": "system error", "3": "internal error", "4": "invalid argument", "5": "invalid usage",
         "6": "remote error", "8": "timeout"}  # fmt: skip
"""ncclResult_t (src/nccl.h.in), but for 7, which is no error: in progress."""

_CODE = regex(r"-> ([1-68])\b")

_NO_CAUSE = frozenset({"other", "watchdog", "peer closed", "timeout"})
"""Kinds of lines that an application prints in the end of which none names what came first."""

_ADDRESS = regex(r"([0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f:]{4,39})<[0-9]{1,5}>")


class FirstError(OneStep[Job], JobCheck[Never]):
    """JOB005: the first error in time and place, told apart from its cascade

    What it finds
        The error that the others follow from: rank, host, device, time and text. Where only consequences are in
        the log, the peer that most of them name.

    Why it matters
        One failing port leaves hundreds of `Connection closed by remote peer` on ranks that are innocent. Draining
        the first node that someone reads about costs a healthy node, and the fault stays.

    Evidence it reads
        Warnings, with their timestamps (2.26 and later print them), torch's watchdog lines, and return codes that
        unwind; which kinds of error cause which others, where times are missing.

    When it stays silent
        Only warnings, and no sign that the job failed. Warnings after which NCCL continues, for example a missing
        libibverbs. For times of two hosts less than a second apart, the finding says that their order depends on the
        clocks. No error, and no line that shows that ranks came together: unknown.

    How to confirm
        topodiag logs LOGS --errors                    the errors in order of time
        dmesg -T                                       on the node that is named, at that time
        ibstat                                         on the node that is named

    How to fix
        What the error names: see NET008 for ports and completions, JOB001 for init, JOB006 for ranks behind.

    References
        NCCL src/transport/net_ib.cc (v2.4 to v2.28; net_ib/p2p.cc from v2.29 on), src/misc/socket.cc,
        src/include/checks.h; torch ProcessGroupNCCL.cpp.
    """

    id = "JOB005"
    title = "the first error in time and place, told apart from its cascade"

    def judge(self, job: Job, peers: Sequence[Job] = ()) -> Outcome:
        errors = _errors(job)
        primary = _primary(job, errors)
        secondary = [event for event in errors if event.secondary]
        gave_up = [] if primary or secondary else _init_unwound(job)
        if gave_up:
            return self.found(job, [self._unwound(job, gave_up)])
        if not errors:
            if any(event.level == "UNWIND" for event in job.events):
                return self.unknown(job, "return codes unwind, and the warning before them is not in the log")
            if not job.processes:
                return self.unknown(job, f"nothing of NCCL's in the log: {ask_for(job)}")
            return self.clean(job) if met(job) else self.unknown(job, "no line shows that ranks came together")
        own = _told_elsewhere(errors)
        if own:
            return self.clean(job, f"all that went wrong is one fault, which has a check of its own: {own}")
        if primary:
            return self.found(job, [self._first(job, primary, errors)])
        repeated = _repeated(secondary)
        if repeated:
            return self.found(job, [self._first(job, repeated, errors)])
        if secondary:
            return self.found(job, [self._suspect(job, secondary)])
        return self.clean(job, f"{plural(len(errors), 'warning')}, and no sign that the job failed")

    def _first(self, job: Job, primary: Sequence[Event], errors: Sequence[Event]) -> Finding:
        first, sure, doubt = _weighed(job, *choose(primary, clocks_of(job)))
        goes_on = _goes_on(job, primary)
        later = [event for event in errors if event is not first]
        device, peer = first.details.get("hca", ""), peer_of(job, first)
        head = ", ".join(part for part in (_who(job, first), device) if part)
        what = f"{f'{head}: ' if head else ''}{quoted(first.text, 150)}{_cascade(first, later)}"
        what += "; init completed without it" if goes_on else ""
        host = _host(job, first)
        return self.finding(
            Severity.WARNING if goes_on else Severity.ERROR,
            f"{'NVLink SHARP' if goes_on else 'first error'}: {what}",
            observed=f"{_when(first)}{first.kind} in {first.place or 'the log'}"
            + (f", peer {peer}" if peer else "")
            + doubt,
            expected="no error",
            fix=(advice(first),),
            nodes=[host] if host else [],
            ranks=[first.rank] if first.rank >= 0 else [],
            nics=[device] if device else [],
            cost=Cost(
                text="buffers that could not be registered go without NVLink SHARP"
                if goes_on
                else "the job ends, or hangs until a watchdog ends it"
            ),
            evidence=[first.origin, *(event.origin for event in later)],
            confidence=min(sure, Confidence.MEDIUM) if goes_on else sure,
        )

    def _suspect(self, job: Job, secondary: Sequence[Event]) -> Finding:
        named = Counter(peer for event in secondary if (peer := peer_of(job, event)))
        peer, votes = named.most_common(1)[0] if named else ("", 0)
        hosts = list(dict.fromkeys(event.host for event in secondary if event.host))
        host = peer.split(" ")[0] if peer and peer.split(" ")[0] in job.hosts else ""
        total = sum(event.count for event in secondary)
        if peer:
            verb = "names" if votes == 1 else "name"
            message = f"{peer} went away first: {votes} of {plural(len(secondary), 'report')} {verb} it"
        else:
            message = f"{plural(total, 'error')} that {'follows' if total == 1 else 'follow'} from one not in the log"
        return self.finding(
            Severity.ERROR,
            message,
            observed=quoted(secondary[0].text) or secondary[0].kind,
            expected="no error",
            fix=(
                f"look at the logs of {peer or 'the ranks that left no error'}: its own error is not in the evidence",
            ),
            nodes=[host] if host else hosts,
            cost=Cost(text="the job ends, or hangs until a watchdog ends it"),
            evidence=[event.origin for event in secondary],
            confidence=Confidence.LOW,
        )

    def _unwound(self, job: Job, gave_up: Sequence[Event]) -> Finding:
        """Processes whose init returned an error, and nothing was said before."""
        first = gave_up[0]
        code = _CODE.search(first.text)
        processes = {_place(event) for event in gave_up}
        hosts = list(dict.fromkeys(event.host for event in gave_up if event.host))
        sockets = "socket.cc" in f"{first.place} {first.text}"
        return self.finding(
            Severity.ERROR,
            f"{len(processes)} {'process' if len(processes) == 1 else 'processes'} on {hosts_word(hosts) or 'a node'}"
            f" gave up in init: {CODES.get(code[1] if code else '', 'an error')} at"
            f" {first.place or first.text.split(' ')[0]}; no warning says why",
            observed=quoted(first.text),
            expected="init returns without an error",
            fix=(
                *(("a connection of the bootstrap that nobody answered ends so: a peer that died before, the interface"
                   " (NCCL_SOCKET_IFNAME), a firewall between the nodes",) if sockets else ()),
                "the logs of the other ranks: the one that failed first says why, the others only give up",
            ),
            nodes=hosts,
            ranks=sorted({event.rank for event in gave_up if event.rank >= 0}),
            cost=Cost(text="the communicator does not come up, and its other ranks wait or give up too"),
            evidence=[event.origin for event in gave_up],
            confidence=Confidence.LOW,
        )  # fmt: skip


def _told_elsewhere(errors: Sequence[Event]) -> str:
    """The fault that all errors name or only follow by their nature, where a check of its own tells it; "" else."""
    named = {event.details.get("fault", "") for event in errors}
    rest = [e for e in errors if "fault" not in e.details and not (e.level == "APP" and e.kind == "other")]
    fault = next(iter(named - {""}), "")
    return fault if len(named - {""}) == 1 and fault in TOLD_BY and not rest else ""


def _cascade(first: Event, later: Sequence[Event]) -> str:
    """How many errors follow, on how many ranks."""
    count = sum(event.count for event in later) + first.count - 1
    if not count:
        return ""
    places = {_place(event) for event in later if event.host or event.rank >= 0}
    verb = "follow" if count > 1 else "follows"
    return f"; {plural(count, 'later error')} on {plural(len(places) or 1, 'rank')} {verb}"


def first_error(job: Job) -> Event | None:
    """The event that JOB005 takes for the first error, None where it finds only what follows from others."""
    errors = _errors(job)
    primary = _primary(job, errors) or _repeated([event for event in errors if event.secondary])
    return choose(primary, clocks_of(job))[0] if primary else None


def _errors(job: Job) -> list[Event]:
    return [
        event
        for event in job.events
        if event.level != "UNWIND"
        and event.kind not in NO_ERRORS
        and not (event.kind == "mismatch" and event.details.keys() & {"one", "told"})  # whole verdicts: JOB006
        and not (event.level == "APP" and (LIVED_WITH.search(event.text) or refused_over_iwarp(job, event)))
    ]


def _primary(job: Job, errors: Sequence[Event]) -> list[Event]:
    """The errors that stand for themselves; warnings only where the job shows that it failed."""
    broken = failed(job)
    primary = [e for e in errors if not e.secondary and (broken or e.kind not in WARNINGS)]
    return _that_ended([event for event in primary if not LIVED_WITH.search(event.text)], job)


def _repeated(secondary: Sequence[Event]) -> list[Event]:
    """NCCL's own errors that only the application repeats."""
    return [event for event in secondary if event.level == "APP" and event.kind not in _NO_CAUSE]


def _that_ended(primary: Sequence[Event], job: Job) -> list[Event]:
    """Without warnings that a process survived, where others ended: what a plugin or the topology's reader warns of in
    init is hours older than the error, and mostly has nothing to do with it."""
    soft = {"topology", "plugin", "other"}
    ended = {(event.host, event.pid) for event in primary if event.kind not in soft}
    if not ended:
        return list(primary)
    unwound = {(event.host, event.pid) for event in job.events if event.level == "UNWIND"} - ended
    return [event for event in primary if event.kind not in soft or (event.host, event.pid) in unwound]


def _init_unwound(job: Job) -> list[Event]:
    """The codes that unwind of processes in which one of them came through init or bootstrap and through the group that
    every init ends in (src/group.cc), each process' first one first."""
    by_process: dict[tuple[str, int], list[Event]] = {}
    for event in job.events:
        if event.level == "UNWIND" and _CODE.search(event.text):
            by_process.setdefault((event.host, event.pid), []).append(event)
    made = []
    for events in by_process.values():
        said = " ".join(f"{event.place} {event.text}" for event in events)
        if re.search(r"\b(?:init|bootstrap)\.c[cu]:\d", said) and re.search(r"\bgroup\.c[cu]:\d", said):
            made += events
    return made


def _unwound_after(job: Job, first: Event) -> bool:
    return any(e.level == "UNWIND" and (e.host, e.pid) == (first.host, first.pid) for e in job.events)


def _goes_on(job: Job, primary: Sequence[Event]) -> bool:
    """Whether only NVLink SHARP failed, and the job goes without: init is complete, and nobody gave up."""
    world = job.world
    return (
        world is not None
        and world.init_complete
        and all(event.kind == "cuda" and "nvls" in event.place and event.level != "APP" for event in primary)
        and not any(event.level == "APP" for event in job.events)
        and not any(event.level == "UNWIND" and re.search(r"\b(?:init|group)\.c", event.text) for event in job.events)
    )


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
    if len({_place(e) for e in same}) > 1:
        named = Counter(e.details.get("peer", "") for e in same if e.details.get("peer"))
        most = f", most name {named.most_common(1)[0][0]}" if named else ""
        return (
            first,
            Confidence.LOW,
            f"; one of {len(same)} errors of this kind without a time{most}: which came first is not known",
        )
    return first, Confidence.MEDIUM if len(own) > 1 else Confidence.HIGH, ""


def _weighed(job: Job, first: Event, sure: Confidence, doubt: str) -> tuple[Event, Confidence, str]:
    """The choice, less sure where only the application says it, or where a warning was not followed by a return."""
    if first.level == "APP" and first.kind not in _NO_CAUSE:
        sure = min(sure, Confidence.MEDIUM)
        doubt += "; as the application repeats it"
    if first.kind in WARNINGS and not _unwound_after(job, first):
        sure = min(sure, Confidence.MEDIUM)
    return first, sure, doubt


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


def _place(event: Event) -> tuple[str, int]:
    return (event.host, event.rank if event.rank >= 0 else event.pid)


def _who(job: Job, event: Event) -> str:
    if event.rank >= 0:
        host = _host(job, event)
        return f"rank {event.rank} on {host}" if host else f"rank {event.rank}"
    if event.host:
        return f"{event.host} (pid {event.pid})" if event.pid >= 0 else event.host
    return few(list(job.hosts), 1)


def _host(job: Job, event: Event) -> str:
    """Where it was said, or where its rank runs: what an application prints has no host."""
    known = None if event.host or event.rank < 0 else job.by_rank.get(event.rank)
    return known.host if known is not None else event.host


def _when(event: Event) -> str:
    if event.ts is None or not 0 <= event.ts < 4e9:
        return ""
    return datetime.fromtimestamp(event.ts, UTC).strftime("%Y-%m-%d %H:%M:%S") + ", "


def peer_of(job: Job, event: Event) -> str:
    """The peer that an event names, with its host where the address is one that a process used."""
    named = event.details.get("peer", "")
    if not named:
        match = _ADDRESS.search(event.text)
        named = match[1] if match else ""
    address = named.split("<")[0]
    if not address:
        return ""
    at = regex(rf":{re.escape(address)}<")
    hosts = {each.host for each in job.processes if address in each.addresses or at.search(each.bootstrap)}
    # A host that no line of the log is from is known by its capture.
    hosts = hosts or {host for host, node in job.machines.items() if address in addresses_of_node(node)}
    return f"{hosts.pop()} ({address})" if len(hosts) == 1 else address
