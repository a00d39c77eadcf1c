"""A process that ended by itself, told apart from those that ended because it did."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.hang.lost_rank import gone, lost_rank_findings
from topodiag.checks.shared.job.text import Clocks, ask_for, began_after, clocks_of, launched_on
from topodiag.checks.shared.phrases import advice_by_words
from topodiag.checks.words import hosts_with, hosts_word, quoted, rank_word, ranks_in
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.model.job import Event, Job
from topodiag.words.fold import plural
from topodiag.words.own_data import own_data

ENDED = "ended"
"""Kind of the events of launchers, schedulers and interpreters (evidence/nccl_log/grammar/ends.py)."""


def _endings() -> dict[str, Any]:
    """endings.toml: what is said of an end, by `how` of its event."""
    return own_data("checks/job/end/endings")


COMES_FROM_OUTSIDE = frozenset(
    {"node failure", "preempted", "evicted", "announced", "memory", "port taken", "loader", "no program", "hung up"}
)
"""Endings that no error of the job brings about."""

NO_FAULT = frozenset({"preempted", "limit", "stopped"})
"""Endings that somebody else brings about: a job that ran until then is not broken."""

SEVERITIES = {**dict.fromkeys(NO_FAULT, Severity.WARNING), "cancelled": Severity.INFO}
"""Of endings that are no errors. Who cancels a job mostly knows."""

_BY_HAND = ("cancelled", "stopped", "hung up")
"""Endings that somebody asked for, or whose session went away."""

VAGUE = frozenset({"killed", "exit", "died", "cancelled", "stopped"})
"""Endings that another line of the text explains better, wherever it stands."""

HANGS = frozenset({"watchdog", "timeout", "stalled"})
ERRORS = frozenset({"ib completion", "cuda", "memory", "version", "duplicate gpu", "mismatch", "bootstrap", "connect"})
"""Kinds of errors after which a process ends: then its end is their consequence."""

FATAL = frozenset({"rccl setting"})
"""Faults that the library names when it ends the process itself."""

OF_PROGRAM = frozenset({"exception", "crash", "worker", "fatal", "usage"})
"""Endings whose line says why."""

_UNSAID = (None, "context", "aborted")
"""Of these, that a process was told to stop is the cause: any other end may be why it was."""
MOST_BELOW = 120
"""Lines below the head of torch's first failure that are of it: its record, and the traceback of its process."""


@dataclass(frozen=True, slots=True)
class Died:
    """The process that ended first: how, its rank and host where they are known, and the later ends. `alike` are all
    ranks that raised the same exception, `times` how often it stands in the text."""

    event: Event
    how: str
    rank: int
    host: str
    later: int
    alike: tuple[int, ...] = ()
    times: int = 1

    @property
    def stands_for_job(self) -> bool:
        """Whether a scheduler ended the whole job or step, not one of its processes."""
        return self.how in NO_FAULT | {"no room", "node failure", "evicted", "announced", *_BY_HAND}


class ProcessDied(JobCheck):
    """JOB009: a process died of its own before any communication error

    What it finds
        The process that ended first, and why: an exception that nobody caught, too much host memory, a signal, a
        preemption, an eviction, a time limit. A rank that is gone without a word, whose connections all others saw
        close. Then all closed connections and timeouts of other ranks follow from
        it. Or the job never started: no node has what it asks for, its port is taken, a library lacks a symbol that it
        needs, the launcher or the kubelet cannot start it.

    Why it matters
        511 ranks report a timeout or a closed connection, and one line says why: the rank that died. Whoever looks
        at the network loses hours.

    Evidence it reads
        Output of torchrun, Slurm, Kubernetes, Ray, mpirun, the dynamic loader, and Python tracebacks with the rank in
        front, or an exception or a traceback with which a text ends; the fatal error that a simulation code, a GPU
        runtime or the runtime of a language prints before it ends its process. Reports of closed connections
        (`Connection closed by remote peer`, ncclRemoteError) of all ranks but one. States of jobs and pods in tables of
        schedulers and operators; ranks that lack the last line of all others when a limit, or somebody, ended the job.
        That somebody cancelled or interrupted it (Ctrl-C) is a remark.

    When it stays silent
        The process ended because of an error of communication that stands before it, or by SIGABRT, which launchers and
        watchdogs send to those that are left, or by a crash right below an exception or Ctrl-C: the interpreter takes
        down what still runs. An exception that names another failure (NCCL, the store, a peer, a GPU's
        hardware) and with which no text ends. An exception without a rank in front, in a job that shows no other sign
        of failing, where the program goes on below it, or where a logger, a thread, a test or an
        interpreter's prompt printed it: it was caught. An end above the first line of steps, throughput or requests of
        the same log: the job began its work after it. No place for a job whose ranks are in the log: it found one
        later. A time limit after a hang. Closed connections after a watchdog's timeout, after any error that stands for
        itself, or where more than a quarter of the ranks report nothing. Nothing of a launcher in the text: unknown.
        Ranks that waited for others or lost them, and no error that explains it: unknown.

    How to confirm
        sacct -j JOB --format=JobID,State,ExitCode,MaxRSS,NodeList      state and exit code of each step
        kubectl describe pod POD                       last state: OOMKilled, Evicted, exit code
        dmesg -T | grep -i 'killed process'            on the node that is named

    How to fix
        What the first end names: memory, program, limit. The network of the other ranks needs no repair.

    References
        Slurm src/slurmd/slurmstepd/mgr.c; torch/distributed/elastic/multiprocessing/api.py; Python signal exit codes.
    """

    id = "JOB009"

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        events = [event for event in judged.events if event.kind == ENDED]
        own = _of_summary(_by_themselves(judged, events), events)
        if not own:
            lost = gone(judged)
            if lost is not None and not lost.left:
                return self.any_of(judged, [lost_rank_findings(self, judged, lost)], lost.coverage)
            if not events:
                return self.unknown(judged, f"no line of a launcher: give its output, too; {ask_for(judged)}")
            if not _is_explained(judged, events):
                return self.unknown(judged, f"processes ended or waited, and not which one began it; {ask_for(judged)}")
            return self.clean(judged, "what ended, ended because of something else")
        of_one_file = len({event.origin.source for event in own if event.origin is not None}) <= 1
        first = _quoted(min(own, key=lambda event: _order(event, of_one_file)), own)
        rank, host = _place(judged, first, events)
        for other in own:  # of the lines about one end, the first says that it came and another one where
            if rank < 0 and not host and other.details["how"] == first.details["how"]:
                rank, host = _place(judged, other, events)
        same = [event for event in own if first.details["how"] == "exception" and _raised(event) == _raised(first)]
        alike = tuple(ranks_in(same)) if rank >= 0 else ()
        times = sum(event.count for event in same)
        host = host or launched_on(judged, rank)
        died = Died(first, first.details["how"], rank, host, len(events) - 1, alike, times)
        return self.with_findings(judged, [self._died(judged, died)])

    def _died(self, judged: Job, observed: Died) -> Finding:
        ending, event = _endings()[observed.how], observed.event
        ranks = observed.alike or ((observed.rank,) if observed.rank >= 0 else ())
        who = rank_word(ranks) if ranks else "the job" if observed.stands_for_job else "a process"
        hosts = hosts_with(judged, ranks) if len(ranks) > 1 else [observed.host] if observed.host else []
        where = f" on {hosts_word(hosts)}" if hosts else ""
        what = event.details.get("what", "")
        code = event.details.get("code", "")
        named = f" ({what})" if what else f" (exit code {code})" if code else ""
        confidence = Confidence[ending.get("confidence", "high").upper()]
        if observed.how == "exception" and not event.details.get("uncaught"):
            confidence = Confidence.MEDIUM
        return self.finding(
            self.where(hosts, ranks=ranks[:4096]),
            "died",
            f"{who}{where} {ending['says']}{named}{_behind(event)}",
            severity=SEVERITIES.get(observed.how, Severity.ERROR),
            observed=quoted(event.text, 300),
            fix=(_fix(judged, observed, ending["fix"]),),
            cost=Cost(
                text="the job ends"
                + (f"; {plural(observed.later, 'later end')} follow from it" if observed.later > 1 else "")
            ),
            evidence=[event.origin],
            confidence=confidence,
        )


def _of_summary(own: list[Event], events: Sequence[Event]) -> list[Event]:
    """The ends without the exceptions that torch's summary of failures does not quote, where it quotes some: others are
    of another program."""
    named: dict[str, list[int]] = {}
    for event in events:
        source, line = _file_of(event)
        if source is not None and "named_rank" in event.details and event.details["how"] == "context":
            insort(named.setdefault(source, []), line)
    raised = {_raised(event) for event in own if event.details["how"] == "exception" and _is_below_one(event, named)}
    return [event for event in own if event.details["how"] != "exception" or not raised or _raised(event) in raised]


def _behind(event: Event) -> str:
    """Who had printed a line less than the others when the job was ended from outside; "" where nobody had."""
    ranks = [int(rank) for rank in event.details.get("behind", "").split(",") if rank]
    return (
        f": {rank_word(ranks)} had not printed '{event.details['line behind']}', which all others had" if ranks else ""
    )


def _quoted(first: Event, own: Sequence[Event]) -> Event:
    """The exception that the message of another one quotes below it, after a colon, or that torch caught in a worker:
    the root of the two."""
    source, at = _file_of(first)
    if source is None or first.details["how"] != "exception" or not _quotes(first):
        return first
    below = [(line, other) for other in own for of, line in (_file_of(other),) if of == source]
    return next((other for line, other in sorted(below, key=itemgetter(0)) if at < line <= at + MOST_BELOW), first)


def _quotes(event: Event) -> bool:
    """Whether another exception stands in the message. SOURCE: torch torch/_utils.py (ExceptionWrapper.reraise)."""
    return event.text.rstrip().endswith(":") or event.details.get("message", "").startswith("Caught ")


def _raised(event: Event) -> tuple[str | None, ...]:
    """Which exception an end names, with its message."""
    return tuple(event.details.get(name) for name in ("how", "what", "message"))


def _fix(job: Job, died: Died, fix: str) -> str:
    """What to do about an end: by the words of the exception, else what its traceback names, where no rank stands
    beside the process."""
    if "behind" in died.event.details:
        return "see where these ranks wait, before the end: `py-spy dump --pid PID` of their processes"
    if died.how not in ("exception", "fatal"):
        return fix
    if by_words := advice_by_words(died.event.text):
        return by_words
    frame = "" if job.ranks else died.event.details.get("frame", "")
    if frame:
        return f"{fix}: {frame} raised it"
    if len(died.alike) > 1:
        return f"{fix}: {rank_word(died.alike)} raised it, so no single rank or node is the cause"
    if died.times > 1:
        return f"{fix}: it was raised {died.times} times"
    return f"{fix}; the other ranks only report that this rank ended" if died.rank >= 0 else fix


def _by_themselves(job: Job, events: Sequence[Event]) -> list[Event]:
    """The ends that nothing else in the text brought about."""
    around = _EndContext(job, events)
    started = bool(job.ranks)  # then it found its place in the end
    return [
        event
        for event in events
        if event.details.get("how") in _endings()
        and not around.explains(event)
        and not (started and event.details["how"] == "no room")
        and ("again" in event.details or began_after(job, event.origin) is None)
    ]


class _EndContext:
    """What stands around the ends of a job, gathered once: a log may tell of a hundred thousand ends."""

    def __init__(self, job: Job, events: Sequence[Event]) -> None:
        others = [event for event in job.events if event.kind != ENDED]
        self._hows = {event.details.get("how") for event in events}
        launched = any(e.details.get("what") == "CalledProcessError" and e.details.get("last") for e in events)
        self._goes_wrong = launched or any(event.kind != "note" for event in others)
        self._goes_wrong |= not self._hows <= {"exception", "cancelled", *NO_FAULT}
        self._others_explain = any(
            event.kind in HANGS | ERRORS or event.kind == "peer closed" or event.details.get("fault") in FATAL
            for event in others
        )
        self._faulty = any("fault" in event.details for event in others)
        self._breaking = _First([event for event in others if _breaks(event)], clocks_of(job))
        self._heads: dict[str, list[int]] = {}
        """By file the lines of torch's launcher about the process that failed first, in their order."""
        self._raised: dict[str, list[int]] = {}
        """By file the lines of exceptions, Ctrl-C among them, in their order."""
        for event in events:
            source, line = _file_of(event)
            if source is not None and event.details.get("how") in ("exception", "cancelled"):
                insort(self._raised.setdefault(source, []), line)
            if source is not None and event.details.get("root"):
                insort(self._heads.setdefault(source, []), line)

    def explains(self, event: Event) -> bool:
        """Whether an end is the consequence of something else in the text."""
        how = event.details["how"]
        if how == "stopped" and (self._faulty or self._hows - {*_UNSAID, how}):
            return True
        if how in COMES_FROM_OUTSIDE:
            return False
        if how in OF_PROGRAM and _is_below_one(event, self._heads):
            return False
        if how == "crash" and _is_below_one(event, self._raised):
            return True  # the interpreter takes down what still runs
        if how == "limit" or how in OF_PROGRAM:
            return self._breaking.is_before(event) or (_may_be_caught(event) and not self._goes_wrong)
        # A code or a signal that nothing else explains: with an error of NCCL's or a hang beside it, that explains it.
        return self._others_explain


def _is_below_one(event: Event, lines: Mapping[str, Sequence[int]]) -> bool:
    """Whether a line stands right below one of these of its file, of which it is then a part or a consequence."""
    source, line = _file_of(event)
    of_file = lines.get(source or "", ())
    above = bisect_left(of_file, line)
    return above > 0 and line - of_file[above - 1] <= MOST_BELOW


class _First:
    """The first of some events: by the line of one file, by the common clock between files of dated lines."""

    def __init__(self, events: Sequence[Event], clocks: Clocks) -> None:
        self._clocks = clocks
        self._lines: dict[str, int] = {}
        times: dict[str | None, float] = {}
        for event in events:
            source, line = _file_of(event)
            if source is not None:
                self._lines[source] = min(line, self._lines.get(source, line))
            if event.ts is not None:
                at = clocks.at(event)
                times[source] = min(at, times.get(source, at))
        self._times = sorted(((at, source) for source, at in times.items()), key=lambda pair: pair[0])[:2]
        """The first two are enough: one of them is of another file."""

    def is_before(self, event: Event) -> bool:
        """Whether one of them stands before this event."""
        source, line = _file_of(event)
        if source is not None and self._lines.get(source, line) < line:
            return True
        return event.ts is not None and any(
            at < self._clocks.at(event) for at, of in self._times if of is None or of != source
        )


def _file_of(event: Event) -> tuple[str | None, int]:
    """The file and the line of an event, None where the line is not known."""
    at = event.origin
    return (at.source, at.line) if at is not None and at.line is not None else (None, 0)


def _is_explained(job: Job, events: Sequence[Event]) -> bool:
    """Whether an error that is nobody else's end stands behind what ended. Ranks that waited, or lost a peer, only
    show that another one was not there: it may have died by itself."""
    if all(event.details.get("how") == "context" for event in events):
        return False
    return any(
        (other.kind in ERRORS or "fault" in other.details) and not other.secondary and "peer gone" not in other.details
        for other in job.events
        if other.kind != ENDED
    )


def _breaks(other: Event) -> bool:
    """Whether a hang or an error ends the process that prints it."""
    if other.kind not in HANGS and (other.kind not in ERRORS or "goes on" in other.details):
        return False
    return "peer gone" not in other.details


def _may_be_caught(event: Event) -> bool:
    """Whether an exception is neither torch's word of what nobody caught, nor what the text ends with."""
    how = event.details["how"]
    return how == "exception" and not (event.details.get("uncaught") or event.details.get("last"))


def _order(event: Event, of_one_file: bool) -> tuple[object, ...]:
    """By line where one file holds all, else by what brings about what."""
    line = event.origin.line if event.origin is not None and event.origin.line is not None else 0
    stage = _endings()[event.details["how"]]["stage"]
    # A code in a launcher's summary says less than the line above that says why.
    vague = event.details["how"] in VAGUE
    return (vague, line, stage) if of_one_file else (vague, stage, line)


def _failed_node(event: Event, events: Sequence[Event]) -> str:
    """The node that failed, by any line that names it: the line of a step is of the host that tells it."""
    failures = [other for other in events if other.details.get("how") == event.details.get("how") == "node failure"]
    return next((host for failure in failures if (host := failure.details.get("host"))), "")


def _place(job: Job, event: Event, events: Sequence[Event]) -> tuple[int, str]:
    """Rank and host of an end: those that its line names, or the lines of torch's summary above it. The line of a
    launcher is of the process that it names, not of the one that printed last."""
    label = event.label
    rank = int(label) if label.isdecimal() and len(label) < 10 else int(event.details.get("named_rank", "-1"))
    host = event.details.get("host", "") or _failed_node(event, events)
    at = event.origin
    if at is None or at.line is None:
        return rank, host
    for other in events:
        near = other.origin
        if other.details.get("how") != "context" or near is None or near.line is None or near.source != at.source:
            continue
        if 0 < at.line - near.line <= 3 or (event.details.get("local_rank") and near.line > at.line):
            host = host or other.details.get("host", "")
            rank = rank if rank >= 0 else int(other.details.get("named_rank", "-1"))
    known = job.by_rank.get(rank)
    return rank, host or (known.host if known is not None else "")
