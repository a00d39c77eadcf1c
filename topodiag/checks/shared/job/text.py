"""What checks of jobs ask of a job alike: ranks, progress, clocks, the launcher, what to log. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from statistics import median, median_low

import numpy as np

from topodiag.lazy import dataclass, regex
from topodiag.model.debug_settings import HANG, next_time
from topodiag.model.events import LEAST_PROGRESS, MOST_BUFFERED, Progress
from topodiag.model.job import Communicator, Event, Job
from topodiag.model.job_rings import domains as domains  # noqa: PLC0414 - checks find all words on a job here
from topodiag.model.nccl_versions import Feature, text_has
from topodiag.model.provenance import Origin
from topodiag.words.units import grouped, spell_s

MET = "met"
"""Kind of the lines that ranks print at torch's store (framework.toml of the catalogue)."""

NO_ERRORS = frozenset({"unwind", "ended", "stalled", "device", "note", "launched", "met", "tried"})
"""Kinds of events that are no errors of communication: what unwinds, ends or waits after one, or without any."""


_OF_INIT = ("graph/", "nvmlwrap")
"""Parts of NCCL's files that only its init runs: they read NVML and the topology."""


def survived(job: Job, event: Event) -> bool:
    """Whether NCCL warned while it read the topology, and all ranks completed the init that reads it."""
    return job.world is not None and job.world.init_complete and any(part in event.place for part in _OF_INIT)


def place_of(event: Event) -> tuple[str | None, int]:
    """The file and the line of an event, None where the line is not known."""
    at = event.origin
    return (at.source, at.line) if at is not None and at.line is not None else (None, 0)


def world_of(communicator: Communicator, member: int) -> int:
    """The world rank of a member of a communicator, -1 unknown."""
    return int(communicator.ranks[member]) if 0 <= member < len(communicator.ranks) else -1


def logged(job: Job, comm_id: int) -> Communicator | None:
    """The communicator of this id, which RAS, Inspector and traces call its hash."""
    return next((one for one in job.communicators if one.comm_id and one.comm_id == comm_id), None)


def came_up(job: Job) -> set[int]:
    """World ranks that were seen to start and to complete init."""
    world = job.world
    if world is None or not world.started.size or not world.completed.size:
        return set()
    return {int(rank) for rank in world.ranks[world.started & world.completed] if rank >= 0}


def ask_for(job: Job, *, hang: bool = False) -> str:
    """How to log what is missing: one list answers all checks, so that no two findings of a report ask for different
    ones. `hang`: also who entered which operation."""
    return next_time(hang=hang or wants_operations(job))


def wants_operations(job: Job) -> bool:
    """Whether it matters who entered which operation: something went wrong, and the operations are not in the log."""
    return bool(job.events) and HANG not in job.subsystems and not job.flight


def unconnected(job: Job, what: str) -> str:
    """Why no connection of a kind is in the log: since LAZY_CONNECTIONS NCCL connects when an operation
    first needs it."""
    lazy = [version for version in job.nccl_versions if text_has(version, Feature.LAZY_CONNECTIONS)]
    if job.subsystems >= {"INIT", "NET"} and job.nccl_versions and len(lazy) == len(job.nccl_versions):
        return f"no operation used {what}: NCCL connects when one first does, and a log that goes on shows it"
    return f"{what} was not seen; {ask_for(job)}"


def failed(job: Job) -> bool:
    """Whether anything says that the job went wrong, not only that it was watched: codes that unwind, a watchdog, a
    transport that gave up, an application that prints NCCL's error."""
    signs = {"ib completion", "peer closed", "cuda", "memory", "bootstrap", "version", "duplicate gpu", "watchdog",
             "mismatch", "timeout", "connect", "unwind"}  # fmt: skip
    return any(
        (e.level == "APP" and e.kind not in ("ended", "note", "launched", "met", "tried"))
        or (e.level in ("UNWIND", "WARN") and e.kind in signs)
        for e in job.events
    )


_LEFT_BEHIND = frozenset({"peer closed", "watchdog", "timeout", "stalled"})
"""What ranks say that lost another one, or wait for it."""


def met(job: Job) -> bool:
    """Whether the logs show that ranks came together: an init that completed, or connections. An excerpt that ends
    before that shows neither that a network works nor that nothing went wrong on it."""
    return any(comm.completed.any() or comm.transports for comm in job.communicators)


def others_fell_first(job: Job) -> bool:
    """Whether ranks report that another one is gone, or wait for it, while logs of ranks are missing: why that one
    ended stands in its own."""
    world = job.world
    whole = world is not None and not world.inferred and len(world.known) == world.nranks
    return not whole and any(event.secondary or event.kind in _LEFT_BEHIND for event in job.events)


def went_on(job: Job, since: Origin | None) -> Progress | None:
    """Progress whose last line stands below `since`. In another log it counts too: where in time it stands is not
    known, so ask this only of what lets no progress be."""
    return next((progress for progress in _enough(job) if _is_below(progress.last, since) is not False), None)


def began_after(job: Job, end: Origin | None) -> Progress | None:
    """Progress of the same log whose first line stands below `end`: what came before it ended no job. Of a process
    without ranks beside it, progress far below: it was started again."""
    for progress in _enough(job):
        if _is_below(progress.first, end):
            return progress
        if _is_below(progress.last, end, MOST_BUFFERED) and not job.ranks and all(e.rank < 0 for e in job.events):
            return progress
    return None


def outlived(job: Job, lines: Iterable[Origin | None]) -> bool:
    """Whether the work of the job begins below all of these lines, or is done there."""
    return all(began_after(job, line) is not None or any(_is_below(done, line) for done in job.done) for line in lines)


def of_earlier_launch(job: Job, event: Event) -> bool:
    """Whether the text of an event, one of several that each hold one process, ends with another exception far below:
    a process ends once, so that the program was started again."""
    lasts = [last for last in job.events if last.details.get("last") and last.details.get("how") == "exception"]
    if event.label or len({place_of(last)[0] for last in lasts if not last.label}) < 2:
        return False
    return any(last.origin is not None and _is_below(last.origin, event.origin, MOST_BUFFERED) for last in lasts)


def _enough(job: Job) -> list[Progress]:
    starts = [(one.steps[0].origin, one.steps[-1].origin, len(one.steps)) for one in job.steps if one.steps]
    steps = [Progress("progress.step", number, first, last) for first, last, number in starts if first and last]
    return [progress for progress in (*job.progress, *steps) if progress.number >= LEAST_PROGRESS]


def _is_below(line: Origin, mark: Origin | None, lines: int = 0) -> bool | None:
    """Whether one line stands more than so many lines below another one; None where both are not of one file."""
    if mark is None or mark.line is None or line.source != mark.source:
        return None
    return (line.line or 0) > mark.line + lines


BARRIER_S = 2.0
"""Seconds by which Init COMPLETE lines of one communicator differ on hosts whose clocks agree."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """By host that a common communicator compares, the seconds that its clock is ahead; 0 where it agrees."""

    ahead_s: Mapping[str, float] = field(default_factory=dict)

    def at(self, event: Event) -> float:
        """The time of an event by the common clock, as far as that is known; 0 for one without a time."""
        return 0.0 if event.ts is None else event.ts - self.ahead_s.get(event.host, 0.0)

    def compares(self, *hosts: str) -> bool:
        return all(host in self.ahead_s for host in hosts)

    def words(self, *hosts: str) -> str:
        """`; the clock of n1 is 62 s ahead by the init of the job`; "" where all of them agree."""
        pairs = [(host, self.ahead_s[host]) for host in hosts if self.ahead_s.get(host)]
        texts = [f"the clock of {host} is {spell_s(abs(s))} {'ahead' if s > 0 else 'behind'}" for host, s in pairs]
        return f"; {', '.join(texts)} by the end of init" if texts else ""


def clocks_of(job: Job) -> Clocks:
    """The clocks of the hosts by the largest communicator whose members printed the time of their Init COMPLETE."""
    for communicator in sorted(job.communicators, key=lambda communicator: -communicator.nranks):
        times = _times(job, communicator)
        if len(times) > 1:
            middle = median_low(times.values())
            ahead_s = {host: ts - middle for host, ts in times.items()}
            return Clocks({host: ahead if abs(ahead) > BARRIER_S else 0.0 for host, ahead in ahead_s.items()})
    return Clocks()


def _times(job: Job, communicator: Communicator) -> dict[str, float]:
    """By host, the median time of its members' Init COMPLETE."""
    if len(communicator.completed_ts) != len(communicator.ranks):
        return {}
    known = np.flatnonzero(np.isfinite(communicator.completed_ts)).tolist()
    ranks = ((job.by_rank.get(int(communicator.ranks[at])), float(communicator.completed_ts[at])) for at in known)
    by_host = grouped((rank.host, ts) for rank, ts in ranks if rank is not None and rank.host)
    return {host: median(times) for host, times in by_host.items()}


_TASKS = regex(r"(\d{1,7})(?:-(\d{1,7}))?")
_MOST_TASKS = 1 << 17
_ASKED = frozenset({"stopped", "cancelled"})
"""Ends that the launcher itself brought about."""


def launched_on(job: Job, rank: int) -> str:
    """The host on which Slurm says that a rank's task ended, "" where it does not say.

    A task is a rank where a host has several; with one a host the tasks are launchers of their own (`srun torchrun`),
    and only the host of the one task that failed by itself is told.
    """
    ends = [event.details for event in job.events if event.details.get("host") and event.details.get("tasks")]
    numbers = grouped((end["host"], task) for end in ends for task in _expanded(end["tasks"]))
    if any(len(set(tasks)) > 1 for tasks in numbers.values()):
        return next((host for host, tasks in numbers.items() if rank in tasks), "")
    failed = {end["host"] for end in ends if end.get("how") not in _ASKED}
    return failed.pop() if len(failed) == 1 else ""


def _expanded(text: str) -> set[int]:
    """`8-11,13` as numbers; at most so many as a job has."""
    ends = ((int(match[1]), int(match[2] or match[1])) for match in _TASKS.finditer(text))
    return {task for first, last in ends for task in range(first, min(last, first + _MOST_TASKS) + 1)}


def group_words(job: Job, group: str) -> str:
    """What torch's flight recorder says of a process group, or its name."""
    return next((record.descriptions[group] for record in job.flight if record.descriptions.get(group)), group)
