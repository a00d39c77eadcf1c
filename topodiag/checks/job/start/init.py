"""Ranks that did not come up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topodiag.checks.interface import JobCheck, hosts_with, hosts_word, rank_word
from topodiag.checks.job.hang.lost_rank import by_ras_in_init
from topodiag.checks.job.start.missing_ranks import absent_at_meeting, wrong_numbers
from topodiag.checks.shared.job.text import ask_for, failed, went_on
from topodiag.lazy import dataclass, regex
from topodiag.model.events import PROGRESS_WORDS, Progress
from topodiag.model.finding import Confidence, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Communicator, Job, Process
from topodiag.model.job_waits import silent_host
from topodiag.model.nccl_versions import Feature, text_has
from topodiag.model.provenance import Origin
from topodiag.words.units import plural

OF_INIT = frozenset({"bootstrap", "version", "duplicate gpu"})
"""Kinds of errors that only init has."""

FATAL = frozenset({"cuda", "memory", "connect", "timeout"})
"""Kinds of errors that end an init too; after others, as a library that is not there, NCCL goes on."""

INIT_FILES = regex(r"\b(?:init|bootstrap)\.cc:\d")
"""Files of NCCL in which an init unwinds, and little else does."""


@dataclass(frozen=True, slots=True)
class OpenInit:
    """An init that not all members finished: how many did, how many left no line (`who`, with the host that the
    others leave), and what that is worth. `cut`: the
    log is a piece that may end in an init that went well. `torn`: lines are lost, the init is done. `nearly`: few.
    `went_on`: what the job printed while it worked, after this init began."""

    done: int
    missing: int
    who: str
    cut: bool
    torn: bool
    nearly: bool
    went_on: Progress | None = None

    @property
    def certainty(self) -> tuple[Severity, Confidence]:
        if self.cut or self.torn or self.went_on is not None:
            return Severity.INFO, Confidence.LOW
        return (Severity.WARNING, Confidence.MEDIUM) if self.nearly else (Severity.ERROR, Confidence.HIGH)

    @property
    def words(self) -> str:
        if self.went_on is not None:
            number, what = self.went_on.number, PROGRESS_WORDS.get(self.went_on.kind, "lines of progress")
            return f" printed no Init COMPLETE, and the job went on: {number} {what}"
        words = " printed no Init COMPLETE"
        if self.torn:
            words = " printed no Init COMPLETE, but other ranks of their host did: lines are torn"
        if self.missing:
            words += f"; {self.who} printed no line at all"
        return words + (", or the log was cut" if self.cut else "")


class InitNotFinished(JobCheck, id="JOB001"):
    """JOB001: ranks that never finished init, or are missing from the evidence

    What it finds
        Members of a communicator that started its init and never completed it, world ranks that left no line while
        others wait for them, and processes that failed before they had a rank. Processes that did not come to where
        the job meets: a store, a coordinator, a barrier of the launch. Two processes that take themselves for the same
        rank, and one whose rank is not in the world.

    Why it matters
        Init is collective: all ranks wait for the last one, for as long as the launcher lets them. The rank to look
        at is the one that is missing or stopped first, not those that wait.

    Evidence it reads
        `Init START` and `Init COMPLETE` lines, `Init timings`, what else a rank printed, and errors of processes
        without a rank. Answers of NCCL's RAS that list no communicator. What torch's store and JAX's coordinator say
        of those that they waited for, and NCCL's root of ranks that came twice; the lines that torch's ranks print at
        the store's barrier, where a log ends with them: they name the ranks that came. Any tool's count of who came,
        where its line says that the wait is over.

    When it stays silent
        Init lines are not in the log (NCCL_DEBUG below INFO, INIT not among the subsystems): unknown. A rank whose
        COMPLETE line is lost but that ran operations or printed its timings, or whose host's other ranks completed
        without an error anywhere (info: init ends with a barrier on each host). All ranks seen are complete and some
        left no line: info, because init completed and only the logs are incomplete. An init that is open in a log of
        half of the ranks or fewer, without an error: info, because the log may have been cut. A process without a
        rank whose log is of warnings alone, unless its error is one that only init has. A barrier of the store that
        all came to, or behind which the log goes on; one at which each rank said once that it waits is info. A count
        that goes up while a start waits. Single ranks of different launches: in files of their own, with numbers of
        processes far from each other, each is info.

    How to confirm
        topodiag logs LOGS --comms                     the communicators and the ranks that are missing
        py-spy dump --pid PID                          a waiting rank stands in ncclCommInitRank

    How to fix
        If few ranks are named, read the last line of each: bootstrap (interface, firewall), topology, or connections
        (network). Where most are, try a port between their nodes. Then look at the launcher's log of ranks that are
        missing altogether.

    References
        NCCL src/init.cc (ncclCommInitRankFunc: Init START and COMPLETE, since v2.18; COMPLETE only before),
        src/bootstrap.cc.
    """

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        findings = []
        stuck_world = False
        judged = 0
        for communicator in job.communicators:
            open_at = communicator.unfinished
            if open_at is None:
                continue
            judged += 1
            if open_at:
                stuck = self._stuck(job, communicator, open_at)
                stuck_world |= communicator.index == 0 and stuck.severity is not Severity.INFO
                findings.append(stuck)
        # The first few of many communicators that did not come up: the rest follows from the same ranks.
        findings = sorted(findings, key=lambda finding: -len(finding.where.ranks))[:3]
        numbers = list(wrong_numbers(self, job))
        lone = self._without_rank(job) if not numbers else None  # what such a process says is told with its number
        if lone is not None:
            findings.append(lone)
        missing = self._missing(job, stuck_world) if job.world_size > 0 and job.ranks else None
        if missing is not None and not (stuck_world and findings and missing.severity is Severity.INFO):
            findings.append(missing)
        findings += [*judge_alone(self, job, peers), *absent_at_meeting(self, job)]
        findings += numbers
        if not findings and not judged:
            findings += [*by_ras_in_init(self, job)]
        coverage = Coverage(len(job.ranks), max(job.world_size, len(job.ranks)), "ranks")
        start = "" if judged else f"no Init START or COMPLETE in the log: {ask_for(job)} from the start of the job"
        return self.any_of(job, findings, coverage, unknown=start)

    def _stuck(self, job: Job, communicator: Communicator, open_at: Sequence[int]) -> Finding:
        by_rank = job.by_rank
        ranks = sorted(int(communicator.ranks[at]) for at in open_at if communicator.ranks[at] >= 0)
        hosts = hosts_with(job, ranks)
        init = _init_of(job, communicator, open_at, hosts)
        severity, confidence = init.certainty
        first = f"look first at {init.who}, which printed no line" if init.missing else _first(job, communicator, ranks)
        silent = _silent(job, communicator) if severity is not Severity.INFO else []
        places = [f"{rank_word(ranks)} on {hosts_word(hosts)}"] if ranks else []
        return self.finding(
            self.where([host] if silent and (host := silent_host(job)) else hosts, ranks=silent or ranks),
            self.advice("init not finished", nranks=communicator.nranks, first=first),
            f"{len(open_at)} of {plural(communicator.nranks, 'rank')} of {communicator.label}{init.words}",
            severity=severity,
            observed="; ".join([*places, f"stopped after: {_phase(job, communicator, hosts)}"]),
            cost="the first collective waits" if init.done else "all ranks of the communicator wait",
            evidence=[by_rank[rank].origin for rank in ranks if rank in by_rank] or [communicator.origin],
            coverage=Coverage(communicator.nranks - init.missing, communicator.nranks, "members seen"),
            confidence=confidence,
        )

    def _without_rank(self, job: Job) -> Finding | None:
        """Processes that never said a rank and failed."""
        lone = [job.processes[at] for at in job.unplaced if 0 <= at < len(job.processes)]
        own = _ends_of_init(job, lone)
        failed = [process for process in lone if (process.host, process.pid) in own]
        if not failed:
            return None
        hosts, count = list(dict.fromkeys(process.host for process in failed)), len(failed)
        return self.finding(
            self.where(hosts),
            "without rank",
            f"{count} {'process' if count == 1 else 'processes'} on {hosts_word(hosts)} failed in init, and no line"
            f" names {'its rank' if count == 1 else 'their ranks'}",
            evidence=[own[process.host, process.pid] for process in failed],
        )

    def _missing(self, job: Job, stuck: bool) -> Finding | None:
        seen = {rank.rank for rank in job.ranks}
        missing = [rank for rank in range(min(job.world_size, 1 << 20)) if rank not in seen]
        if not missing:
            return None
        message = f"{plural(len(missing), 'rank')} of {job.world_size} left no line in the logs"
        return self.finding(
            self.where(ranks=missing[:4096]),
            self.advice("ranks not in the logs" if stuck else "logs not given", world=job.world_size),
            message + (", and the others never finished init" if stuck else ": the evidence is incomplete"),
            observed=f"no line of {rank_word(missing)}",
            evidence=[job.world.origin if job.world else None],
            coverage=Coverage(len(seen), job.world_size, "ranks"),
        )


def _init_of(job: Job, communicator: Communicator, open_at: Sequence[int], hosts: Sequence[str]) -> OpenInit:
    """How an init stands whose members `open_at`, on these hosts, did not finish."""
    by_rank, nranks = job.by_rank, communicator.nranks
    done = int(communicator.completed.sum())
    missing = sum(bool(communicator.ranks[at] < 0) for at in range(nranks))
    nearly = bool(done) and done + len(open_at) == nranks and len(open_at) * 10 <= done
    # A piece of a log ends in the middle of an init that went well: a hang needs most ranks, or an error, to show.
    cut = not failed(job) and ((done == 0 and missing >= nranks - missing) or job.is_cut)
    # Init ends with a barrier of the host's ranks (src/init.cc, initTransportsRank): one COMPLETE speaks for all.
    finished = {by_rank[rank].host for rank in communicator.ranks[communicator.completed].tolist() if rank in by_rank}
    torn = bool(hosts) and finished.issuperset(hosts) and not failed(job)
    began = communicator.origin
    return OpenInit(done, missing, _who(job, communicator, missing), cut, torn, nearly, went_on(job, began))


def _ends_of_init(job: Job, lone: Sequence[Process]) -> dict[tuple[str, int], Origin]:
    """By host and pid, the first warning that ended an init, of processes that never said a rank among others."""
    gave_up = {
        (event.host, event.pid)
        for event in job.events
        if event.level == "UNWIND" and INIT_FILES.search(f"{event.place} {event.text}")
    }
    # A log of warnings alone names no ranks, however long the job ran.
    informed = {(process.host, process.pid) for process in lone if _informed(process)}
    own: dict[tuple[str, int], Origin] = {}
    for event in job.events:
        who = (event.host, event.pid)
        ended = event.kind in OF_INIT or who in gave_up or (event.kind in FATAL and who in informed)
        if event.level == "WARN" and not event.secondary and ended:
            own.setdefault(who, event.origin or Origin("", None, event.text))
    return own


def _informed(process: Process) -> bool:
    """Whether the process printed what comes at level INFO before an init, so that its rank is not just not logged.

    From 2.18 on Init START comes before any connection: a log without it is a piece of one.
    """
    if text_has(process.versions.get("nccl", ""), Feature.INIT_START):
        return False
    return bool(process.bootstrap or process.network or process.hcas or process.versions or process.settings)


def _phase(job: Job, communicator: Communicator, hosts: Sequence[str]) -> str:
    """The last phase of init that these hosts show."""
    here = set(hosts)
    if (job.connections.comm[:1000] == communicator.index).any():
        return "connections were being made"
    if communicator.rings or communicator.trees:
        return "the rings were built"
    if here & set(communicator.graphs):
        return "the graph search was done"
    if here & set(communicator.systems):
        return "the topology was found"
    processes = [process for process in job.processes if process.host in here]
    return "bootstrap was set up" if any(process.bootstrap for process in processes) else "Init START"


def _silent(job: Job, communicator: Communicator) -> list[int]:
    """The ranks of the world that left no line; of the members of another communicator the log names none."""
    whole = communicator is job.world and communicator.nranks == job.world_size
    return [at for at in range(communicator.nranks) if communicator.ranks[at] < 0] if whole else []


def _who(job: Job, communicator: Communicator, missing: int) -> str:
    silent = _silent(job, communicator)
    host = silent_host(job) if silent else ""
    on = f" (on {host}, inferred from the others)" if host else ""
    return f"{rank_word(silent)}{on}" if silent else plural(missing, "other rank")


def _first(job: Job, communicator: Communicator, ranks: Sequence[int]) -> str:
    """What to do first: where most ranks wait, none of them is more telling than another, and the way between them is
    tried."""
    own = sorted({event.rank for event in job.events if event.rank in set(ranks) and not event.secondary})
    if own or 2 * len(ranks) <= communicator.nranks:
        return f"look first at {rank_word(own or ranks)}" + (", which printed an error" if own else "")
    if len(job.hosts) > 1:
        one, other = job.hosts[0], job.hosts[-1]
        return f"try a port between two of the nodes: `nc -l 29999` on {one}, then `nc -vz {one} 29999` on {other}"
    return "`py-spy dump --pid PID` of each rank: the others wait for the one that is not in ncclCommInitRank"


# For JOB001: processes that each came up as the only rank of their job.


def judge_alone(check: JobCheck, job: Job, peers: Sequence[Job]) -> Iterator[Finding]:
    """The finding on a job of one rank: a note by itself, a warning where other processes are as alone."""
    if not is_alone(job):
        return
    others = [peer for peer in peers if is_alone(peer) and not _started_apart(job, peer)]
    hosts = sorted({host for one in (job, *others) for host in one.hosts})
    count = 1 + len(others)
    yield check.finding(
        check.where(hosts),
        "only rank of a job",
        f"{count} processes on {hosts_word(hosts) or 'a node'} came up as the only rank of a job each"
        if others
        else f"a communicator of one rank on {hosts_word(hosts) or 'a node'}: it talks to nobody",
        sure=bool(others),
        observed="Channel 00 : 0" if job.world is None or job.world.inferred else "nranks 1",
        evidence=[one.world for one in (job, *others) if one.world is not None],
    )


MOST_PIDS = 1 << 14
"""Numbers between processes of one launch: each of some hundred ranks starts many threads, which have numbers too."""


def _started_apart(job: Job, other: Job) -> bool:
    """Whether two processes of one host that print to different files are of different launches, by their numbers."""
    own, others = job.processes[:1], other.processes[:1]
    if not own or not others or own[0].host != others[0].host or not set(job.files).isdisjoint(other.files):
        return False
    return min(own[0].pid, others[0].pid) > 0 and abs(own[0].pid - others[0].pid) > MOST_PIDS


def is_alone(job: Job) -> bool:
    """Whether the largest communicator of a job has one rank, and came up or printed its order."""
    world = job.world
    if world is None or world.nranks != 1:
        return False
    return world.rings.get(0) == (0,) if world.inferred else world.init_complete
