"""Ranks that did not come up, and GPUs that two ranks share or nobody uses."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Never

import numpy as np

from topodiag.checks.interface import JobCheck, OneStep
from topodiag.checks.job.text import ask_for, failed
from topodiag.checks.shared.devices import majority
from topodiag.checks.shared.words import hosts_word, quoted, rank_word, spell_ranks
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.job import Communicator, Event, Job, Process
from topodiag.model.nccl_features import Feature
from topodiag.model.nccl_versions import text_has
from topodiag.model.provenance import Origin
from topodiag.words.fold import plural

OF_INIT = frozenset({"bootstrap", "version", "duplicate gpu"})
"""Kinds of errors that only init has."""

FATAL = frozenset({"cuda", "memory", "connect", "timeout"})
"""Kinds of errors that end an init too; after others, as a library that is not there, NCCL goes on."""

INIT_FILES = re.compile(r"\b(?:init|bootstrap)\.cc:\d")
"""Files of NCCL in which an init unwinds, and little else does."""


class InitNotFinished(OneStep[Job], JobCheck[Never]):
    """JOB001: ranks that never finished init, or are missing from the evidence

    What it finds
        Members of a communicator that started its init and never completed it, world ranks that left no line while
        others wait for them, and processes that failed before they had a rank.

    Why it matters
        Init is collective: all ranks wait for the last one, for as long as the launcher lets them. The rank to look
        at is the one that is missing or stopped first, not those that wait.

    Evidence it reads
        `Init START` and `Init COMPLETE` lines, `Init timings`, what else a rank printed, and errors of processes
        without a rank.

    When it stays silent
        Init lines are not in the log (NCCL_DEBUG below INFO, INIT not among the subsystems): unknown. A rank whose
        COMPLETE line is lost but that ran operations or printed its timings, or whose host's other ranks completed
        without an error anywhere (info: init ends with a barrier on each host). All ranks seen are complete and
        some left no line: then init was complete and the logs are not, told at level info. So is an init that is
        open in a log of half of the ranks or fewer and without an error: the log may have been cut. A process without
        a rank whose log is of warnings alone, unless its error is one that only init has.

    How to confirm
        topodiag logs LOGS --comms                     the communicators and the ranks that are missing
        py-spy dump --pid PID                          a waiting rank stands in ncclCommInitRank

    How to fix
        Look at the last line of the ranks named: bootstrap (interface, firewall), topology, or connections
        (network). Then at the launcher's log of ranks that are missing altogether.

    References
        NCCL src/init.cc (ncclCommInitRankFunc: Init START and COMPLETE, since v2.18; COMPLETE only before),
        src/bootstrap.cc.
    """

    id = "JOB001"
    title = "ranks that never finished init, or are missing from the evidence"

    def judge(self, job: Job, peers: Sequence[Job] = ()) -> Outcome:
        found = []
        stuck_world = False
        judged = 0
        for communicator in job.communicators:
            open_at = _unfinished(communicator)
            if open_at is None:
                continue
            judged += 1
            if open_at:
                stuck = self._stuck(job, communicator, open_at)
                stuck_world |= communicator.index == 0 and stuck.severity is not Severity.INFO
                found.append(stuck)
        found = _folded(found)
        lone = self._without_rank(job)
        if lone is not None:
            found.append(lone)
        missing = self._missing(job, stuck_world) if job.world_size > 0 and job.ranks else None
        if missing is not None and not (stuck_world and found and missing.severity is Severity.INFO):
            found.append(missing)
        coverage = Coverage(len(job.ranks), max(job.world_size, len(job.ranks)), "ranks")
        if found:
            return self.found(job, found, coverage)
        if not judged:
            return self.unknown(job, f"no Init START or COMPLETE in the log: {ask_for(job)} from the start of the job")
        return self.clean(job, coverage=coverage)

    def _stuck(self, job: Job, communicator: Communicator, open_at: Sequence[int]) -> Finding:
        done = int(communicator.completed.sum())
        ranks = sorted(int(communicator.ranks[at]) for at in open_at if communicator.ranks[at] >= 0)
        by_rank = job.by_rank
        hosts = list(dict.fromkeys(by_rank[rank].host for rank in ranks if rank in by_rank))
        absent = [at for at in range(communicator.nranks) if communicator.ranks[at] < 0]
        all_waiting = done == 0
        nearly = done and done + len(open_at) == communicator.nranks and len(open_at) * 10 <= done
        # A piece of a log ends in the middle of an init that went well: a hang needs most ranks, or an error, to show.
        cut = done == 0 and len(absent) >= communicator.nranks - len(absent) and not failed(job)
        # Init ends with a barrier of the host's ranks (src/init.cc, initTransportsRank): one COMPLETE speaks for all.
        finished = {
            by_rank[rank].host for rank in communicator.ranks[communicator.completed].tolist() if rank in by_rank
        }
        torn = bool(hosts) and finished.issuperset(hosts) and not failed(job)
        message = f"{len(open_at)} of {plural(communicator.nranks, 'rank')} of {communicator.label}"
        message += (
            " left no Init COMPLETE, though others of their host did: torn lines" if torn else " never finished init"
        )
        if absent:
            message += f"; {plural(len(absent), 'other')} left no line"
        if cut:
            message += ", or the log was cut"
        places = [f"{rank_word(ranks)} on {hosts_word(hosts)}"] if ranks else []
        return self.finding(
            Severity.INFO if cut or torn else Severity.WARNING if nearly else Severity.ERROR,
            message,
            observed="; ".join([*places, f"stopped after: {_phase(job, communicator, hosts)}"]),
            expected=f"Init COMPLETE from all {communicator.nranks} ranks",
            fix=(
                f"look first at {_absent(len(absent)) if absent else _look_at(job, ranks)}",
                "bootstrap: one interface that all nodes share (NCCL_SOCKET_IFNAME), no firewall between its ports",
                "the log may end before init did: compare with the time of its last line",
            ),
            nodes=hosts,
            ranks=ranks,
            cost=Cost(text="all ranks of the communicator wait" if all_waiting else "the first collective waits"),
            evidence=[by_rank[rank].origin for rank in ranks if rank in by_rank] or [communicator.origin],
            coverage=Coverage(communicator.nranks - len(absent), communicator.nranks, "members seen"),
            confidence=Confidence.LOW if cut or torn else Confidence.MEDIUM if nearly else Confidence.HIGH,
        )

    def _without_rank(self, job: Job) -> Finding | None:
        """Processes that never said a rank and failed."""
        lone = [job.processes[at] for at in job.unplaced if 0 <= at < len(job.processes)]
        own: dict[tuple[str, int], Origin] = {}
        gave_up = {
            (event.host, event.pid)
            for event in job.events
            if event.level == "UNWIND" and INIT_FILES.search(f"{event.place} {event.text}")
        }
        # A log of warnings alone names no ranks, however long the job ran.
        informed = {(process.host, process.pid) for process in lone if _informed(process)}
        for event in job.events:
            who = (event.host, event.pid)
            ended = event.kind in OF_INIT or who in gave_up or (event.kind in FATAL and who in informed)
            if event.level == "WARN" and not event.secondary and ended:
                own.setdefault(who, event.origin or Origin("", None, event.text))
        failed = [(process, own[process.host, process.pid]) for process in lone if (process.host, process.pid) in own]
        if not failed:
            return None
        hosts = list(dict.fromkeys(process.host for process, _ in failed))
        origins = [origin for _, origin in failed]
        count = len(failed)
        return self.finding(
            Severity.ERROR,
            f"{count} {'process' if count == 1 else 'processes'} on {hosts_word(hosts)} failed in init, and no line"
            f" names {'its rank' if count == 1 else 'their ranks'}",
            observed=quoted(origins[0].text) or "a warning of NCCL",
            expected="Init START and Init COMPLETE from each process",
            fix=("mend what the first error says (JOB005), then start the whole job again",),
            nodes=hosts,
            cost=Cost(text="the job cannot start"),
            evidence=origins,
        )

    def _missing(self, job: Job, stuck: bool) -> Finding | None:
        seen = {rank.rank for rank in job.ranks}
        missing = [rank for rank in range(min(job.world_size, 1 << 20)) if rank not in seen]
        if not missing:
            return None
        message = f"{plural(len(missing), 'rank')} of {job.world_size} left no line in the logs"
        return self.finding(
            Severity.ERROR if stuck else Severity.INFO,
            message + (", and the others never finished init" if stuck else ": the evidence is incomplete"),
            observed=f"no line of {rank_word(missing)}",
            expected=f"lines of all {job.world_size} ranks",
            fix=("look at the launcher's log for these ranks: not started, or died before NCCL",)
            if stuck
            else ("give topodiag the logs of all ranks, and set NCCL_DEBUG=INFO on all of them",),
            ranks=missing[:4096],
            cost=Cost(text="all others wait for them" if stuck else "nothing can be said of them"),
            evidence=[job.world.origin if job.world else None],
            coverage=Coverage(len(seen), job.world_size, "ranks"),
            confidence=Confidence.MEDIUM if stuck else Confidence.HIGH,
        )


def _informed(process: Process) -> bool:
    """Whether the process printed what comes at level INFO before an init, so that its rank is not just not logged.

    From 2.18 on Init START comes before any connection: a log without it is a piece of one.
    """
    if text_has(process.versions.get("nccl", ""), Feature.INIT_START):
        return False
    return bool(process.bootstrap or process.network or process.hcas or process.versions or process.settings)


def _named(event: Event) -> list[int]:
    """Ranks that NCCL's own warning names."""
    return [int(word) for word in event.details.get("ranks", "").split(",") if word.isdecimal() and len(word) < 10]


def _unfinished(communicator: Communicator) -> list[int] | None:
    """Members that started and show no sign of having completed; None where the log shows no init at all."""
    size = communicator.nranks
    started, completed = communicator.started, communicator.completed
    if len(started) != size or len(completed) != size or not (started.any() or completed.any()):
        return None
    if communicator.destroyed >= size:
        return []
    timed = np.isfinite(communicator.init_s) if len(communicator.init_s) == size else np.zeros(size, bool)
    open_at = np.flatnonzero(started & ~completed & ~timed)
    return [int(at) for at in open_at if int(at) not in communicator.operations]


def _folded(found: list[Finding]) -> list[Finding]:
    """The first few of many communicators that did not come up: the rest follows from the same ranks."""
    return sorted(found, key=lambda finding: -len(finding.where.ranks))[:3]


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


def _absent(count: int) -> str:
    return "the rank that left no line" if count == 1 else f"the {count} ranks that left no line"


def _look_at(job: Job, ranks: Sequence[int]) -> str:
    own = sorted({event.rank for event in job.events if event.rank in set(ranks) and not event.secondary})
    return f"{rank_word(own)}, which printed an error" if own else "the ranks named"


class SharedGpu(OneStep[Job], JobCheck[Never]):
    """JOB004: two ranks on one GPU; a GPU nobody used

    What it finds
        NCCL's own `Duplicate GPU detected`, ranks of one communicator with the same host and bus id, and nodes
        that run fewer ranks than the others.

    Why it matters
        Before 2.30 NCCL refuses a communicator with two ranks on one GPU; where it is allowed, they share one GPU's
        compute and links. The GPU that was meant for the second rank stands idle.

    Evidence it reads
        Init lines (host, bus id, CUDA and NVML index) and NCCL's warning.

    When it stays silent
        Equal bus ids on hosts of equal names that NCCL counts as several nodes. Nodes with ranks on all their GPUs.
        GPUs that no rank's node shows, as NCCL prints only those in use.

    How to confirm
        topodiag logs LOGS --ranks                     each rank with its host and GPU
        nvidia-smi --query-compute-apps=pid,gpu_bus_id --format=csv     on the node: the processes on each GPU

    How to fix
        Set the device from the local rank before init (`torch.cuda.set_device(LOCAL_RANK)`), or give each task its
        own CUDA_VISIBLE_DEVICES.

    References
        NCCL src/init.cc (Duplicate GPU detected) v2.5 to v2.29; NCCL_MULTI_RANK_GPU_ENABLE in v2.30.
    """

    id = "JOB004"
    title = "two ranks on one GPU; a GPU nobody used"

    def judge(self, job: Job, peers: Sequence[Job] = ()) -> Outcome:
        told = [event for event in job.events if event.kind == "duplicate gpu"]
        shared = self._same_gpu(job)
        found = []
        if told:
            ranks = sorted({rank for _, group in shared for rank in group} | {e.rank for e in told if e.rank >= 0})
            bus_ids = sorted({bus_id for (_, bus_id), _ in shared})
            if not shared:  # NCCL names ranks of the communicator, the first one of a job is the world
                ranks = sorted({*ranks, *(rank for event in told for rank in _named(event))})
                bus_ids = sorted({event.details["bus_id"] for event in told if "bus_id" in event.details})
            hosts = list(dict.fromkeys(event.host for event in told if event.host))
            words = f"{rank_word(ranks)} share {'one GPU' if len(bus_ids) < 2 else plural(len(bus_ids), 'GPU')}"
            words = words if len(ranks) > 1 else "two ranks share one GPU"
            found.append(
                self.finding(
                    Severity.ERROR,
                    words
                    + (f" on {hosts_word(hosts)}" if hosts else "")
                    + (f" ({', '.join(bus_ids[:3])})" if bus_ids else ""),
                    observed=quoted(told[0].text) or "NCCL says so",
                    expected="one rank per GPU",
                    fix=("set the CUDA device from the local rank before init, or CUDA_VISIBLE_DEVICES per task",),
                    nodes=hosts,
                    ranks=ranks,
                    gpus=bus_ids,
                    cost=Cost(text="NCCL refuses the communicator: the job cannot start"),
                    evidence=[event.origin for event in told],
                )
            )
        elif shared:
            ranks = sorted({rank for _, group in shared for rank in group})
            world = job.world
            allowed = any(text_has(version, Feature.RANKS_SHARE_A_GPU) for version in job.nccl_versions)
            came_up = allowed or world is None or bool(world.completed.any())
            found.append(
                self.finding(
                    Severity.INFO if came_up else Severity.WARNING,
                    f"{rank_word(ranks)} share {plural(len(shared), 'GPU')}, and NCCL "
                    + ("allows it" if came_up else "before 2.30 refuses that"),
                    observed="; ".join(f"{host} {bus}: ranks {spell_ranks(g)}" for (host, bus), g in shared[:3]),
                    expected="one rank per GPU, unless they are MIG instances or NCCL_MULTI_RANK_GPU_ENABLE is meant",
                    fix=(
                        "check that the ranks are meant to share the GPU"
                        if came_up
                        else "one rank for each GPU: does the launcher run twice, or with twice the processes?",
                    ),
                    nodes=list(dict.fromkeys(host for (host, _), _ in shared)),
                    ranks=ranks,
                    gpus=[bus for (_, bus), _ in shared],
                    cost=Cost(text="the ranks share one GPU's compute and links"),
                    evidence=[job.by_rank[rank].origin for rank in ranks[:4]],
                    confidence=Confidence.MEDIUM,
                )
            )
        found += self._idle(job) if not found else []
        if found:
            return self.found(job, found)
        placed = sum(bool(rank.bus_id) for rank in job.ranks)
        coverage = Coverage(placed, max(job.world_size, len(job.ranks)), "ranks with a GPU")
        return self.clean(job, coverage=coverage) if placed else self.unknown(job, f"no bus id: {ask_for(job)}")

    def _same_gpu(self, job: Job) -> list[tuple[tuple[str, str], list[int]]]:
        groups: dict[tuple[str, str], list[int]] = defaultdict(list)
        for rank in job.ranks:
            if rank.host and rank.bus_id:
                groups[rank.host, rank.bus_id].append(rank.rank)
        shared = [(key, ranks) for key, ranks in groups.items() if len(ranks) > 1]
        world = job.world
        if world is not None and world.nodes > len(world.hosts):
            return []  # several machines or containers of one name
        return shared

    def _idle(self, job: Job) -> list[Finding]:
        """Nodes with fewer ranks than most others have."""
        count = Counter(rank.host for rank in job.ranks)
        usual = majority(count.values())
        if len(job.ranks) < job.world_size or usual is None or len(count) < 3:
            return []
        short = {host: ranks for host, ranks in count.items() if ranks < usual}
        if not short:
            return []
        return [
            self.finding(
                Severity.INFO,
                f"{hosts_word(list(short))} {'runs' if len(short) == 1 else 'run'} fewer ranks than the other nodes",
                observed=", ".join(f"{host}: {ranks}" for host, ranks in list(short.items())[:6]),
                expected=f"{plural(usual, 'rank')}, as on most nodes",
                fix=("check whether a GPU of the node is missing or was left out on purpose",),
                nodes=list(short),
                cost=Cost(text=f"{sum(usual - ranks for ranks in short.values())} GPUs may be idle"),
                evidence=[rank.origin for rank in job.ranks if rank.host in short][:2],
                confidence=Confidence.LOW,
            )
        ]
