"""A process that ended by itself, told apart from those that ended because it did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from operator import itemgetter
from typing import Any

from topodiag.checks.interface import JobCheck, hosts_with, hosts_word, quoted, rank_word, ranks_in
from topodiag.checks.job.end import consequences
from topodiag.checks.job.hang.lost_rank import gone, lost_rank_findings
from topodiag.checks.shared.job.schedulers import in_words_of, scheduler_of
from topodiag.checks.shared.job.text import ask_for, began_after, launched_on, place_of
from topodiag.checks.shared.phrases import advice_by_words, meaning
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
from topodiag.model.job import Event, Job
from topodiag.words.own_data import own_data
from topodiag.words.units import few, grouped, plural


def _endings() -> dict[str, Any]:
    """endings.toml: what is said of an end, by `how` of its event."""
    return own_data("checks/job/end/endings")


SEVERITIES = {**dict.fromkeys(consequences.NO_FAULT, Severity.WARNING), "cancelled": Severity.INFO}
"""Of endings that are no errors. Who cancels a job mostly knows."""

_BY_HAND = ("cancelled", "stopped", "hung up")
"""Endings that somebody asked for, or whose session went away."""

_OF_JOB = consequences.NO_FAULT | {"no room", "node failure", "evicted", "announced", *_BY_HAND}
"""Endings of a whole job or step, by a scheduler, and not of one of its processes."""
_SEE_ABOVE = ("root cause above", "for the root cause", "error above", "stack trace above", "traceback above")
"""Words of an exception that follows from one which stands above it. SOURCE: vLLM vllm/v1/engine/utils.py."""

_REFERRED = ("died", "killed", "memory", "crash", "exception")
"""Ends to which another one may refer; the first says least."""

LAST_STAGE = 9
"""Behind the stages of endings.toml: that of an end of which another process's end is the cause."""

MOST_SAID = 90
"""Characters of an exception's message that the finding's own message quotes: a headline has room for so many."""

VAGUE = frozenset({"killed", "exit", "died", "cancelled", "stopped"})
"""Endings that another line of the text explains better, wherever it stands."""


class ProcessDied(JobCheck, id="JOB009"):
    """JOB009: a process died of its own before any communication error

    What it finds
        The process that ended first, and why: an exception that nobody caught, no memory left on a GPU or too much of
        the host's, a signal, a preemption, an eviction, a time limit. A rank that is gone without a word, whose
        connections all others saw close. Then all closed connections and timeouts of other ranks follow from it. Or the
        job never started: no node has what it asks for, its port is taken, a library lacks a symbol that it needs, the
        launcher or the kubelet cannot start it.

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
        The process ended because of an error of communication that stands before it, or by SIGABRT, which launchers
        and watchdogs send to those that are left, or by a crash right below an exception or Ctrl-C: the interpreter
        takes down what still runs. An exception that names another failure (NCCL, the store, a peer, a GPU's
        hardware) and with which no text ends. An exception without a rank in front, in a job that shows no other sign
        of failing, where the program goes on below it, or where a logger, a thread, a test or an interpreter's prompt
        printed it: it was caught. An error of the tracker of shared memory, or of what runs at a program's exit. What
        ends a service of the host, or a program of a desktop, by its line in the journal among those of others
        (`gdm[811]: ..`), unless its name is that of a launcher, a scheduler, a container's runtime, an interpreter or
        a tool for GPUs. A connection that is refused or reset, where a process ended by itself. An exception that
        refers to an error above it: the check names that error. An end above the first line of steps, throughput or
        requests of the same log: the job began its work after it. No place for a job whose ranks are in the log: it
        found one later. A time limit after a hang. Closed connections after a watchdog's timeout, after any error
        that stands for itself, or where more than a quarter of the ranks report nothing. Nothing of a launcher in the
        text: unknown. Ranks that waited for others or lost them, and no error that explains it: unknown.

    How to confirm
        sacct -j JOB --format=JobID,State,ExitCode,MaxRSS,NodeList      state and exit code of each step
        kubectl describe pod POD                       last state: OOMKilled, Evicted, exit code
        dmesg -T | grep -i 'killed process'            on the node that is named

    How to fix
        What the first end names: memory, program, limit. The network of the other ranks needs no repair.

    References
        Slurm src/slurmd/slurmstepd/mgr.c; torch/distributed/elastic/multiprocessing/api.py; Python signal exit codes.
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        events = [event for event in judged.events if event.kind == consequences.ENDED]
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
        times = _times(events)
        first = _quoted(_root(min(own, key=lambda event: _order(event, of_one_file, times)), events), own)
        return self.with_findings(judged, [self._died(judged, first, own, events)])

    def _died(self, judged: Job, event: Event, own: Sequence[Event], events: Sequence[Event]) -> Finding:
        """The end that came first, of those that nothing else brought about, and of all. Of ranks that raised the same
        exception, all."""
        how, later = event.details["how"], len(events) - 1
        ending = _endings()[how]
        alike = [event, *(other for other in own if other.details["how"] == how)]
        rank, host, reports = _first_place(judged, alike, events)
        same = [other for other in events if how == "exception" and _raised(other) == _raised(event)]
        ranks = (ranks_in(same) or [rank]) if rank >= 0 else []
        who = rank_word(ranks) if ranks else _ended(own, how)
        hosts = hosts_with(judged, ranks) if len(ranks) > 1 else [host] if host else []
        where = f" on {hosts_word(hosts)}" if hosts else ""
        cause = meaning("error", event.text) if how in ("exception", "fatal") else ""
        confidence = Confidence[ending.get("confidence", "high").upper()]
        is_sure = event.details.get("uncaught") or (cause and event.details.get("last"))
        if how == "exception" and not is_sure:
            confidence = Confidence.MEDIUM
        return self.finding(
            self.where(hosts, ranks=ranks[:4096]),
            "died",
            f"{who}{where} {cause or ending['says']}{_what(event)}{_behind(event)}",
            severity=SEVERITIES.get(how, Severity.ERROR),
            fix=(in_words_of(scheduler_of(judged), _fix(judged, event, [] if reports else ranks, ending["fix"])),),
            cost="the job ends" + (f"; {plural(later, 'later end')} follow from it" if later > 1 else ""),
            evidence=[event, *reports],
            confidence=confidence,
        )


def _ended(own: Sequence[Event], how: str) -> str:
    """What ended so, where no rank is known of it: the pods, or the jobs of a log of several, that the lines name, else
    the job or a process."""
    named = (event.details.get("unit", "") for event in own if event.details["how"] == how)
    if units := list(dict.fromkeys(filter(None, named))):
        is_pod = how == "no room" or any(event.place.startswith("pod ") for event in own)
        kind = plural(len(units), "pod" if is_pod else "job").partition(" ")[2]
        return f"{kind} {few(units)}"
    return "the job" if how in _OF_JOB else "a process"


def _what(event: Event) -> str:
    """What an end names, in brackets: an exception with its message, a signal, a library, a port, a code; "" where it
    names nothing."""
    named = event.details
    port, code = named.get("taken_port"), named.get("code")
    words = filter(None, (named.get("what"), quoted(named.get("message", ""), MOST_SAID)))
    what = f"port {port}" if port else ": ".join(words) or (f"exit code {code}" if code else "")
    return f" ({what})" if what else ""


def _of_summary(own: list[Event], events: Sequence[Event]) -> list[Event]:
    """The ends without the exceptions that torch's summary of failures does not quote, where it quotes some: others are
    of another program."""
    records = [event for event in events if "named_rank" in event.details and event.details["how"] == "context"]
    named = consequences.lines_of(records)
    exceptions = [event for event in own if event.details["how"] == "exception"]
    raised = {_raised(event) for event in exceptions if consequences.is_below_one(event, named)}
    return [event for event in own if event.details["how"] != "exception" or not raised or _raised(event) in raised]


def _behind(event: Event) -> str:
    """Who had printed a line less than the others when the job was ended from outside; "" where nobody had."""
    ranks = [int(rank) for rank in event.details.get("behind", "").split(",") if rank]
    line = event.details.get("line behind")
    return f": {rank_word(ranks)} had not printed '{line}', which all others had" if ranks else ""


def _root(first: Event, events: Sequence[Event]) -> Event:
    """The end right above an exception which says that its cause stands there, though a logger printed that one."""
    ends = [event for event in events if event.details.get("how") in _REFERRED]
    while any(map(first.details.get("message", "").__contains__, _SEE_ABOVE)):
        source, at = place_of(first)
        above = [(line, other) for other in ends for of, line in (place_of(other),) if of == source and line < at]
        if not above:
            break
        first = max(above, key=lambda pair: (pair[1].details["how"] != "died", pair[0]))[1]
    return first


def _quoted(first: Event, own: Sequence[Event]) -> Event:
    """The exception, or the library that could not be loaded, that the message of another one quotes below it, after a
    colon, or that torch caught in a worker: the root of the two."""
    source, at = place_of(first)
    if source is None or first.details["how"] != "exception" or not _quotes(first):
        return first
    raised = [other for other in own if other.details["how"] in ("exception", "loader")]
    below = [(line, other) for other in raised for of, line in (place_of(other),) if of == source]
    last = at + consequences.MOST_BELOW
    return next((other for line, other in sorted(below, key=itemgetter(0)) if at < line <= last), first)


def _quotes(event: Event) -> bool:
    """Whether another exception stands in the message. SOURCE: torch torch/_utils.py (ExceptionWrapper.reraise)."""
    return event.text.rstrip().endswith(":") or event.details.get("message", "").startswith("Caught ")


def _raised(event: Event) -> tuple[str, ...]:
    """Which exception an end names, with the letters of its message: ranks name themselves and their devices there."""
    return tuple("".join(filter(str.isalpha, event.details.get(name, ""))) for name in ("how", "what", "message"))


def _fix(job: Job, event: Event, ranks: Sequence[int], fix: str) -> str:
    """What to do about an end: by the words of the exception, else what its traceback names, where no rank stands
    beside the process."""
    if "behind" in event.details:
        return "see where these ranks wait, before the end: `py-spy dump --pid PID` of their processes"
    if event.details["how"] not in ("exception", "fatal"):
        return fix
    if by_words := advice_by_words(event.text):
        return by_words
    frame = "" if job.ranks else event.details.get("frame", "")
    if frame:
        return f"{fix}: {frame} raised it"
    if len(ranks) > 1:
        return f"{fix}: {rank_word(ranks)} raised it, so no single rank or node is the cause"
    return f"{fix}; the other ranks only report that this rank ended" if ranks else fix


def _by_themselves(job: Job, events: Sequence[Event]) -> list[Event]:
    """The ends that nothing else in the text brought about."""
    around = consequences.EndContext(job, events)
    started = bool(job.ranks)  # then it found its place in the end
    return [
        event
        for event in events
        if event.details.get("how") in _endings()
        and not around.explains(event)
        and not around.is_outlived(event)
        and not (started and event.details["how"] == "no room")
        and ("again" in event.details or began_after(job, event.origin) is None)
    ]


def _is_explained(job: Job, events: Sequence[Event]) -> bool:
    """Whether an error that is nobody else's end stands behind what ended. Ranks that waited, or lost a peer, only
    show that another one was not there: it may have died by itself."""
    if all(event.details.get("how") == "context" for event in events):
        return False
    return any(
        (other.kind in consequences.ERRORS or "fault" in other.details)
        and not other.secondary
        and "peer gone" not in other.details
        for other in job.events
        if other.kind != consequences.ENDED
    )


_Times = Mapping[str, list[tuple[int, float]]]
"""By file the lines of events with a time, in their order, each with that time."""


def _times(events: Sequence[Event]) -> _Times:
    dated = ((*place_of(event), event.ts) for event in events if event.ts is not None)
    times = grouped((source, (line, ts)) for source, line, ts in dated if source is not None)
    return {source: sorted(of_file) for source, of_file in times.items()}


def _order(event: Event, of_one_file: bool, times: _Times) -> tuple[object, ...]:
    """By line where one file holds all, else by what brings about what, then by time: an exception has that of the line
    above its traceback."""
    source, line = place_of(event)
    # Who finds another process away ended after that one.
    is_effect = "peer away" in event.details
    stage = LAST_STAGE if is_effect else _endings()[event.details["how"]]["stage"]
    # A code in a launcher's summary says less than the line above that says why.
    vague = is_effect or event.details["how"] in VAGUE
    above = [ts for at, ts in times.get(source or "", ()) if line - consequences.MOST_BELOW <= at <= line]
    return (vague, line, stage) if of_one_file else (vague, stage, above[-1] if above else inf, line)


def _failed_node(event: Event, events: Sequence[Event]) -> str:
    """The node that failed, by any line that names it: the line of a step is of the host that tells it."""
    failures = [other for other in events if other.details.get("how") == event.details.get("how") == "node failure"]
    return next((host for failure in failures if (host := failure.details.get("host"))), "")


def _named(event: Event, events: Sequence[Event]) -> int:
    """The rank that the line of an end names, -1 without. Below Slurm a task is a rank, unless torch's launcher is the
    task."""
    is_launcher = event.text.startswith("srun: ") and any("root" in other.details for other in events)
    label = "" if is_launcher else event.label
    return int(label) if label.isdecimal() and len(label) < 10 else int(event.details.get("named_rank", "-1"))


def _first_place(job: Job, alike: Sequence[Event], events: Sequence[Event]) -> tuple[int, str, list[Event]]:
    """Rank and host of an end, of the lines about it: the first says that it came and another one where. With them the
    lines of a launcher that name both, where its own do not."""
    places = (_place(job, event, events) for event in alike)
    rank, host = next(((rank, host) for rank, host in places if rank >= 0 or host), (-1, ""))
    reports = _reports(alike[0], events) if rank < 0 else []
    if reports:
        rank, host = _named(reports[0], events), reports[-1].details.get("host", host)
    return rank, host or launched_on(job, rank), reports


def _reports(event: Event, events: Sequence[Event]) -> list[Event]:
    """What launchers say of the process whose last words an event is, which name no rank: mpirun of the one that was
    aborted, as a fatal error of C++ is, torch of the first that failed."""
    if event.details["how"] == "fatal":
        aborted = [other for other in events if "named_rank" in other.details and " on signal 6 " in other.text]
        return aborted if len(aborted) == 1 else []
    return _first_failure(events) if event.details["how"] == "exception" else []


def _first_failure(events: Sequence[Event]) -> list[Event]:
    """The rank that torch's summary names as the first that failed, and its host where all have one; nothing where
    several exceptions stand in the log, of which each may be that rank's."""
    raised = {_raised(event) for event in events if event.details.get("how") == "exception"}
    summary = [event for event in events if event.details.get("how") == "context"]
    heads = (place_of(event) for event in summary if "root" in event.details)
    below = [(source, head + at) for source, head in heads for at in range(1, consequences.OF_SUMMARY + 1)]
    first = [event for event in summary if "named_rank" in event.details and place_of(event) in below]
    hosts = [event for event in summary if "host" in event.details]
    return first + (hosts if len(hosts) == 1 else []) if len(first) == len(raised) == 1 else []


def _place(job: Job, event: Event, events: Sequence[Event]) -> tuple[int, str]:
    """Rank and host of an end: those that its line names, or the lines of torch's summary above it. The line of a
    launcher is of the process that it names, not of the one that printed last."""
    rank = _named(event, events)
    host = event.details.get("host", "") or _failed_node(event, events)
    at = event.origin
    if at is None or at.line is None:
        return rank, host
    for other in events:
        near = other.origin
        is_told = "named_rank" in other.details or other.details.get("how") == "context"
        if not is_told or near is None or near.line is None or near.source != at.source:
            continue
        if 0 < at.line - near.line <= consequences.OF_SUMMARY or (
            event.details.get("local_rank") and near.line > at.line
        ):
            host = host or other.details.get("host", "")
            rank = rank if rank >= 0 else int(other.details.get("named_rank", "-1"))
    known = job.by_rank.get(rank)
    return rank, host or (known.host if known is not None else "")
