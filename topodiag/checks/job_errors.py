"""The first error of a job, told apart from what followed from it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from topodiag.checks.common import plural
from topodiag.checks.interface import JobCheck
from topodiag.checks.job_error_advice import advice
from topodiag.checks.job_text import ask_for, failed, few, quoted
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.model.job import Event, Job

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

_NO_CAUSE = frozenset({"other", "watchdog", "peer closed", "timeout"})
"""Kinds of lines that an application prints in the end of which none names what came first."""

_ADDRESS = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f:]{4,39})<[0-9]{1,5}>")


class FirstError(JobCheck):
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
        Nothing but warnings, and no sign that the job failed. Order by times of two hosts less than a second
        apart is said to rest on their clocks.

    How to confirm
        `topodiag logs --errors` draws the timeline. `dmesg -T` and `ibstat` on the node named, at that time.

    How to fix
        What the error names: see NET008 for ports and completions, JOB001 for init, JOB006 for ranks behind.

    References
        NCCL src/transport/net_ib.cc (v2.4 to v2.28; net_ib/p2p.cc from v2.29 on), src/misc/socket.cc,
        src/include/checks.h; torch ProcessGroupNCCL.cpp.
    """

    id = "JOB005"
    title = "the first error in time and place, told apart from its cascade"

    def judge(self, job: Job) -> Outcome:
        errors = [event for event in job.events if event.level != "UNWIND" and event.kind != "unwind"]
        broken = failed(job)
        primary = [e for e in errors if not e.secondary and (broken or e.kind not in WARNINGS)]
        secondary = [event for event in errors if event.secondary]
        if not errors:
            if any(event.level == "UNWIND" for event in job.events):
                return self.unknown(job, "return codes unwind, and the warning before them is not in the log")
            if not job.processes:
                return self.unknown(job, f"nothing of NCCL's in the log: {ask_for(job)}")
            return self.clean(job)
        if primary:
            return self.found(job, [self._first(job, primary, errors)])
        repeated = [e for e in secondary if e.level == "APP" and e.kind not in _NO_CAUSE]
        if repeated:
            return self.found(job, [self._first(job, repeated, errors)])
        if secondary:
            return self.found(job, [self._suspect(job, secondary)])
        return self.clean(job, f"{plural(len(errors), 'warning')}, and no sign that the job failed")

    def _first(self, job: Job, primary: Sequence[Event], errors: Sequence[Event]) -> Finding:
        first, sure, doubt = choose(primary)
        if first.level == "APP" and first.kind not in _NO_CAUSE:
            sure = Confidence.LOW if sure is Confidence.LOW else Confidence.MEDIUM
            doubt += "; as the application repeats it"
        later = [event for event in errors if event is not first]
        count = sum(event.count for event in later) + first.count - 1
        places = {_place(event) for event in later if event.host or event.rank >= 0}
        tail = ""
        if count:
            tail = f"; {plural(count, 'later error')} on {plural(len(places) or 1, 'rank')} follow"
            tail += "" if count > 1 else "s"
        device = first.details.get("hca", "")
        peer = _peer(job, first)
        what = quoted(first.text, 150)
        head = ", ".join(part for part in (_who(job, first), device) if part)
        return self.finding(
            Severity.ERROR,
            f"first error: {f'{head}: ' if head else ''}{what}{tail}",
            observed=f"{_when(first)}{first.kind} in {first.place or 'the log'}"
            + (f", peer {peer}" if peer else "")
            + doubt,
            expected="no error",
            fix=(advice(first),),
            nodes=[host] if (host := _host(job, first)) else [],
            ranks=[first.rank] if first.rank >= 0 else [],
            nics=[device] if device else [],
            cost=Cost(text="the job ends, or hangs until a watchdog ends it"),
            evidence=[first.origin, *(event.origin for event in later)],
            confidence=sure,
        )

    def _suspect(self, job: Job, secondary: Sequence[Event]) -> Finding:
        named = Counter(peer for event in secondary if (peer := _peer(job, event)))
        peer, votes = named.most_common(1)[0] if named else ("", 0)
        hosts = list(dict.fromkeys(event.host for event in secondary if event.host))
        host = peer.split(" ")[0] if peer and peer.split(" ")[0] in job.hosts else ""
        total = sum(event.count for event in secondary)
        if peer:
            message = f"{peer} went away first: {votes} of {plural(len(secondary), 'report')} name it"
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


def choose(primary: Sequence[Event]) -> tuple[Event, Confidence, str]:
    """The first of the errors that stand for themselves, how sure that is, and what it rests on.

    By time where all of them have one, else by what causes what. The watchdog, which fires minutes after the fault it
    reports, and lost peers yield to any other kind.
    """
    own = [event for event in primary if CAUSES.get(event.kind, 3) < CAUSES["timeout"]] or list(primary)
    timed = [event for event in own if event.ts is not None]
    if len(timed) == len(own):
        ordered = sorted(own, key=lambda e: (e.ts or 0.0, CAUSES.get(e.kind, 3), e.host, e.rank))
        first = ordered[0]
        rival = next((e for e in ordered[1:] if e.host != first.host), None)
        if rival is not None and (rival.ts or 0.0) - (first.ts or 0.0) < CLOSE_S:
            doubt = f"; {rival.host} reports {rival.kind} within a second: the order rests on the hosts' clocks"
            tied = [e for e in ordered if (e.ts or 0.0) - (first.ts or 0.0) < CLOSE_S]
            best = min(tied, key=lambda e: CAUSES.get(e.kind, 3))  # the first of them: min is stable
            return best, Confidence.MEDIUM, doubt
        return first, Confidence.HIGH, ""
    ordered = sorted(own, key=lambda e: (CAUSES.get(e.kind, 3), e.ts is None, e.ts or 0.0, _work(e)))
    first = ordered[0]
    same = [e for e in ordered if CAUSES.get(e.kind, 3) == CAUSES.get(first.kind, 3)]
    if len({_place(e) for e in same}) > 1:
        named = Counter(e.details.get("peer", "") for e in same if e.details.get("peer"))
        most = f", most name {named.most_common(1)[0][0]}" if named else ""
        return first, Confidence.LOW, f"; one of {len(same)} of its kind without times{most}: the order is not known"
    return first, Confidence.MEDIUM if len(own) > 1 else Confidence.HIGH, ""


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


def _peer(job: Job, event: Event) -> str:
    """The peer that an event names, with its host where the address is one that a process used."""
    named = event.details.get("peer", "")
    if not named:
        match = _ADDRESS.search(event.text)
        named = match[1] if match else ""
    address = named.split("<")[0]
    if not address:
        return ""
    at = re.compile(rf":{re.escape(address)}<")
    hosts = {process.host for process in job.processes if at.search(process.bootstrap)}
    return f"{hosts.pop()} ({address})" if len(hosts) == 1 else address
