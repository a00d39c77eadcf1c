"""Ends of processes that follow from something else in the text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from topodiag.checks.job.start.missing_ranks import open_barrier
from topodiag.checks.shared.job.text import Clocks, clocks_of, place_of
from topodiag.model.job import Event, Job
from topodiag.model.job_waits import WAITS
from topodiag.words.units import grouped

ENDED = "ended"
"""Kind of the events of launchers, schedulers and interpreters (evidence/nccl_log/grammar/ends.py)."""

_FROM_OUTSIDE = frozenset(
    {"node failure", "preempted", "evicted", "announced", "memory", "port taken", "loader", "no program", "hung up"}
)
"""Endings that no error of the job brings about."""

NO_FAULT = frozenset({"preempted", "limit", "stopped"})
"""Endings that somebody else brings about: a job that ran until then is not broken."""

ERRORS = frozenset({"ib completion", "cuda", "memory", "version", "duplicate gpu", "mismatch", "bootstrap", "connect"})
"""Kinds of errors after which a process ends: then its end is their consequence."""

_FATAL = frozenset({"rccl setting"})
"""Faults that the library names when it ends the process itself."""

_OF_PROGRAM = frozenset({"exception", "crash", "shutdown", "worker", "fatal", "usage"})
"""Endings whose line says why."""

_UNSAID = (None, "context", "aborted")
"""Endings that give no reason why a process was told to stop."""

OF_SUMMARY = 6
"""Lines of a launcher's summary of one end, between a word of how, or of which process, and what else it names."""

_MOST_IDLE = 40
"""Lines between an exception and the signal by which the process that it left behind was ended: its stack, mostly."""

_OF_REPORT = ("Exited with exit code ", "Subject: Job ")
"""How lines of LSF's report begin."""

MOST_BELOW = 120
"""Lines below the head of torch's first failure that are of it: its record, and the traceback of its process."""


class EndContext:
    """What stands around the ends of a job, gathered once: a log may tell of a hundred thousand ends."""

    def __init__(self, job: Job, events: Sequence[Event]) -> None:
        others = [event for event in job.events if event.kind != ENDED]
        self._signals = _lines_how(events, "killed", "stopped")
        self._limits = _lines_how(events, "limit")
        self._hows = {event.details.get("how") for event in events if not self._says_less(event)}
        self._goes_wrong = any(event.kind != "note" for event in others) or any(map(_ends_a_launcher, events))
        self._goes_wrong |= job.is_past and self._hows == {"exception"}  # another start stands below: this one ended
        self._goes_wrong |= not self._hows <= {"exception", "cancelled", *NO_FAULT}
        self._others_explain = _explain_an_end(others)
        self._waits = bool(open_barrier(job, over=True)[0])
        self._faulty = any("fault" in event.details for event in others)
        self._breaking = _First([event for event in others if _breaks(event)], clocks_of(job))
        self._heads = lines_of([event for event in events if event.details.get("root")])
        """Where torch's launcher tells of the process that failed first."""
        self._notes = _last_notes(job)
        self._by_hand = lines_of([event for event in events if event.details.get("what") == "KeyboardInterrupt"])
        """Where somebody stopped a program at the terminal."""
        self._removed = _removed(events)
        self._raised = lines_of([event for event in events if event.details.get("how") in ("exception", "cancelled")])

    def _says_less(self, event: Event) -> bool:
        """Whether this is a launcher's word that a process ended with some code, which names its signal right below, or
        one of a scheduler's report that says that the job reached its limit."""
        source, line = place_of(event)
        if event.text.startswith(_OF_REPORT):
            return any(abs(line - limit) <= _MOST_IDLE for limit in self._limits.get(source or "", ()))
        # Hydra gives a signal as an exit code first.
        is_uncoded = "code" not in event.details or event.text.startswith("=   EXIT CODE: ")
        return event.details.get("how") == "exit" and is_uncoded and self._is_signal_below(event, OF_SUMMARY)

    def _is_signal_below(self, event: Event, most: int) -> bool:
        """Whether a signal stands at most so many lines below an event."""
        source, line = place_of(event)
        of_file = self._signals.get(source or "", ())
        below = bisect_left(of_file, line)
        return below < len(of_file) and of_file[below] - line <= most

    def _is_taken_down(self, event: Event) -> bool:
        """Whether the interpreter took down what still ran, or the kernel ended for memory the process that held most:
        of a training a worker of its data loader."""
        if event.details["how"] == "worker":
            return "memory" in self._hows
        return event.details["how"] in ("crash", "shutdown") and is_below_one(event, self._raised)

    def _is_removed(self, event: Event) -> bool:
        """Whether somebody took the job away: HTCondor evicts one that runs before it."""
        return event.details["how"] == "evicted" and event.details.get("what") in self._removed

    def is_outlived(self, event: Event) -> bool:
        """Whether as many ranks print something below an exception without a rank as raised it: each lived on. Nobody
        stops by hand what did not start: a program that is not there was started anew, under its right name."""
        source, line = place_of(event)
        if event.details["how"] == "no program":
            return line < max(self._by_hand.get(source or "", ()), default=0)
        if event.details["how"] != "exception" or event.count < 2 or event.label:
            return False
        last = self._notes.get(source or "", ())
        return len(last) - bisect_right(last, line) >= event.count

    def explains(self, event: Event) -> bool:
        """Whether an end is the consequence of something else in the text."""
        how = event.details["how"]
        if self._says_less(event):
            return True
        if how == "stopped" and (self._faulty or self._hows - {*_UNSAID, how}):
            return True
        if how in _FROM_OUTSIDE:
            return self._is_removed(event)
        if how in _OF_PROGRAM and is_below_one(event, self._heads):
            return False
        if self._is_taken_down(event):
            return True
        if how == "limit" and self._waits:
            return True
        if how == "killed" and ("named_rank" in event.details or is_below_one(event, self._heads)):
            return self._breaking.is_before(event)  # a peer that is gone kills nobody
        if how == "limit" or how in _OF_PROGRAM:
            # Who ends a program right below an exception ends one that did nothing any more.
            may_be_caught = _may_be_caught(event) and not self._is_signal_below(event, _MOST_IDLE)
            return self._breaking.is_before(event) or (may_be_caught and not self._goes_wrong)
        # A code or a signal that nothing else explains: with an error of NCCL's or a hang beside it, that explains it.
        return self._others_explain


def is_below_one(event: Event, lines: Mapping[str, Sequence[int]]) -> bool:
    """Whether a line stands right below one of these of its file, of which it is then a part or a consequence."""
    source, line = place_of(event)
    of_file = lines.get(source or "", ())
    above = bisect_left(of_file, line)
    return above > 0 and line - of_file[above - 1] <= MOST_BELOW


class _First:
    """The first of some events: by the line of one file, by the common clock between files of dated lines."""

    def __init__(self, events: Sequence[Event], clocks: Clocks) -> None:
        self._clocks = clocks
        self._lines = {source: lines[0] for source, lines in lines_of(events).items()}
        times = grouped((place_of(event)[0], clocks.at(event)) for event in events if event.ts is not None)
        self._times = sorted(((min(own), source) for source, own in times.items()), key=lambda pair: pair[0])[:2]
        """The first two are enough: one of them is of another file."""

    def is_before(self, event: Event) -> bool:
        """Whether one of them stands before this event."""
        source, line = place_of(event)
        if source is not None and self._lines.get(source, line) < line:
            return True
        earlier = (at < self._clocks.at(event) for at, of in self._times if of is None or of != source)
        return event.ts is not None and any(earlier)


def lines_of(events: Sequence[Event]) -> dict[str, list[int]]:
    """By file the lines of these events, in their order."""
    lines = grouped((source, line) for source, line in map(place_of, events) if source is not None)
    return {source: sorted(of_file) for source, of_file in lines.items()}


def _lines_how(events: Sequence[Event], *hows: str) -> dict[str, list[int]]:
    """The same of ends of these kinds."""
    return lines_of([event for event in events if event.details.get("how") in hows])


def _removed(events: Sequence[Event]) -> frozenset[str]:
    """The jobs that somebody took away, by their numbers."""
    by_hand = (event.details for event in events if event.details.get("how") == "cancelled")
    return frozenset(details["what"] for details in by_hand if "what" in details)


def _last_notes(job: Job) -> dict[str, list[int]]:
    """By file the lines of the last remark of each rank, in their order."""
    of_ranks = [event for event in job.events if event.kind == "note" and event.rank >= 0]
    last = {(event.rank, place_of(event)[0]): event for event in sorted(of_ranks, key=lambda event: place_of(event)[1])}
    return lines_of(list(last.values()))


def _explain_an_end(others: Sequence[Event]) -> bool:
    """Whether a process may have ended by one of these: a plug-in's error counts where NCCL returned from it."""
    unwound = {(event.host, event.pid) for event in others if event.level == "UNWIND"}
    return any(
        event.kind in WAITS | ERRORS | {"peer closed"}
        or event.details.get("fault") in _FATAL
        or (event.kind == "plugin" and (event.host, event.pid) in unwound)
        for event in others
    )


def _ends_a_launcher(event: Event) -> bool:
    """Whether a text ends with the exception of a Python launcher about the program that it started."""
    return event.details.get("what") == "CalledProcessError" and bool(event.details.get("last"))


def _breaks(other: Event) -> bool:
    """Whether a hang or an error ends the process that prints it."""
    if other.kind not in WAITS and (other.kind not in ERRORS or "goes on" in other.details):
        return False
    return "peer gone" not in other.details


def _may_be_caught(event: Event) -> bool:
    """Whether an exception is neither torch's word of what nobody caught, nor what the text ends with."""
    return event.details["how"] == "exception" and not (event.details.get("uncaught") or event.details.get("last"))
