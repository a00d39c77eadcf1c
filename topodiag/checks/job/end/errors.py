"""The first error of a job, told apart from what followed from it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from topodiag.checks.interface import JobCheck, hosts_in, quoted
from topodiag.checks.shared.job import first_error
from topodiag.checks.shared.job.faults import named_faults
from topodiag.checks.shared.job.text import ask_for, began_after, clocks_of, met
from topodiag.checks.shared.phrases import advice_by_words
from topodiag.model.clock_text import stamp
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
from topodiag.model.job import Event, Job
from topodiag.words.own_data import own_data
from topodiag.words.units import few, plural

_OF_OTHER_CHECKS = frozenset({"fabric", "busy", "removed", "absent", "rank twice", "no such rank", "worlds"})
"""Faults, beside those of job_faults.toml, that a check of their own finds."""
_STORAGE = "HST006"
"""What the storage refuses is the first error as well: that names the rank."""


class FirstError(JobCheck, id="JOB005"):
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
        clocks. No error, and no line that shows that ranks connected: unknown.

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

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        errors = first_error.errors_of(job)
        primary = [error for error in first_error.primary_errors(job, errors) if began_after(job, error.origin) is None]
        secondary = [event for event in errors if event.secondary]
        if not errors:
            if any(event.level == "UNWIND" for event in job.events):
                return self.unknown(job, "return codes unwind, and the warning before them is not in the log")
            if not job.processes:
                return self.unknown(job, f"nothing of NCCL's in the log: {ask_for(job)}")
            return self.clean(job) if met(job) else self.unknown(job, "no line shows that ranks connected")
        own = _told_elsewhere(errors)
        if own:
            return self.clean(job, f"all that went wrong is one fault, which has a check of its own: {own}")
        if first := primary or first_error.repeated_errors(job, secondary):
            return self.with_findings(job, [self._first(job, first, errors)])
        if secondary:
            return self.with_findings(job, [self._suspect(job, secondary)])
        return self.clean(job, f"{plural(len(errors), 'warning')}, and no sign that the job failed")

    def _first(self, job: Job, primary: Sequence[Event], errors: Sequence[Event]) -> Finding:
        first, confidence, doubt = _weighed(job, primary, *first_error.choose(primary, clocks_of(job)))
        goes_on = _goes_on(job, primary)
        later = [event for event in errors if event is not first]
        device, peer = first.details.get("hca", ""), first_error.peer_of(job, first)
        head = ", ".join(part for part in (_who(job, first), device) if part)
        what = f"{f'{head}: ' if head else ''}{quoted(first.text, 150)}{_cascade(first, later)}"
        what += "; init completed without it" if goes_on else ""
        host = _host(job, first)
        return self.finding(
            self.where(
                [host] if host else [], ranks=[first.rank] if first.rank >= 0 else [], nics=[device] if device else []
            ),
            "first error of a job that goes on" if goes_on else "first error",
            f"{'NVLink SHARP' if goes_on else 'first error'}: {what}",
            severity=Severity.WARNING if goes_on else Severity.ERROR,
            observed=f"{_when(first)}{first.kind} in {first.place or 'the log'}"
            + (f", peer {peer}" if peer else "")
            + doubt,
            fix=(advice(first),),
            evidence=[first, *later],
            confidence=min(confidence, Confidence.MEDIUM) if goes_on else confidence,
        )

    def _suspect(self, job: Job, secondary: Sequence[Event]) -> Finding:
        named = Counter(peer for event in secondary if (peer := first_error.peer_of(job, event)))
        peer, votes = named.most_common(1)[0] if named else ("", 0)
        hosts = hosts_in(secondary)
        host = peer.split(" ")[0] if peer and peer.split(" ")[0] in job.hosts else ""
        total = sum(event.count for event in secondary)
        if peer:
            verb = "names" if votes == 1 else "name"
            message = f"{peer} went away first: {votes} of {plural(len(secondary), 'report')} {verb} it"
        else:
            message = f"{plural(total, 'error')} that {'follows' if total == 1 else 'follow'} from one not in the log"
        return self.finding(
            self.where([host] if host else hosts),
            "suspect",
            message,
            fix=(
                f"look at the logs of {peer or 'the ranks that left no error'}: its own error is not in the evidence",
            ),
            evidence=secondary,
        )


def _told_elsewhere(errors: Sequence[Event]) -> str:
    """The fault that all errors name or only follow by their nature, where a check of its own tells it; "" else."""
    named = {event.details.get("fault", "") for event in errors}
    rest = [e for e in errors if "fault" not in e.details and not (e.level == "APP" and e.kind == "other")]
    fault = next(iter(named - {""}), "")
    is_of_device = any(name == fault and check != _STORAGE for check, name in named_faults())
    has_own_check = fault in _OF_OTHER_CHECKS or is_of_device
    return fault if len(named - {""}) == 1 and not rest and has_own_check else ""


def _cascade(first: Event, later: Sequence[Event]) -> str:
    """How many errors follow, on how many ranks."""
    count = sum(event.count for event in later) + first.count - 1
    if not count:
        return ""
    places = {first_error.process_of(event) for event in later if event.host or event.rank >= 0}
    verb = "follow" if count > 1 else "follows"
    return f"; {plural(count, 'later error')} on {plural(len(places) or 1, 'rank')} {verb}"


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


def _weighed(
    job: Job, primary: Sequence[Event], first: Event, confidence: Confidence, doubt: str
) -> tuple[Event, Confidence, str]:
    """The choice, surer where all ranks report the same of themselves: which came first does not matter then. Less sure
    where only the application says it, or where a warning was not followed by a return."""
    alike = {first_error.process_of(event) for event in primary if _letters(event) == _letters(first)}
    is_own = first.kind in first_error.OWN and "peer" not in first.details
    if confidence is Confidence.LOW and len(alike) >= len(job.ranks) > 1 and is_own:
        confidence, doubt = Confidence.MEDIUM, f"; all {len(alike)} ranks report it"
    if first.level == "APP" and first.kind not in first_error.NO_CAUSE:
        confidence = min(confidence, Confidence.MEDIUM)
        doubt += "; as the application repeats it"
    unwound = {(event.host, event.pid) for event in job.events if event.level == "UNWIND"}
    if first.kind in first_error.WARNINGS and (first.host, first.pid) not in unwound:
        confidence = min(confidence, Confidence.MEDIUM)
    return first, confidence, doubt


def _letters(event: Event) -> str:
    return "".join(filter(str.isalpha, event.text))


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
    return f"{stamp(event.ts)}, " if event.ts is not None and 0 <= event.ts < 4e9 else ""


# What to do about an error of NCCL, by its words and its place, else by its kind.


def advice(event: Event) -> str:
    """The first thing to do about this error."""
    if words := advice_by_words(event.text):
        return words
    by_kind: dict[str, str] = own_data("checks/shared/phrases")["by_kind"]
    # What a completion means is in its status; the cable is for those that got no answer.
    status = event.details.get("status", "")
    if event.kind == "ib completion" and status != "12" and status in own_data("checks/shared/phrases")["completion"]:
        return str(own_data("checks/shared/phrases")["completion"][status]["fix"])
    if event.kind == "cuda" and "shmutils" in event.place:
        return by_kind["shared memory"]
    # Multicast objects need the fabric's routes: creating or binding one fails first where they are missing.
    if event.kind == "cuda" and "nvls" in event.place:
        return advice_by_words("NVLink SHARP (NVLS)")
    return by_kind.get(event.kind, "fix what the message names; the later errors follow from it")
