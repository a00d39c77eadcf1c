"""Ranks that share a GPU, GPUs whose memory is taken, and nodes with GPUs that nobody uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import fsum

from topodiag.checks.interface import JobCheck, hosts_in, hosts_with, hosts_word, quoted, rank_word, ranks_in
from topodiag.checks.shared.comparisons import majority
from topodiag.checks.shared.job.text import ask_for, of_earlier_launch, outlived
from topodiag.model.devices import Gpu
from topodiag.model.finding import Coverage, Finding, Outcome
from topodiag.model.job import Event, Job
from topodiag.model.node import Node
from topodiag.words.units import grouped, plural, spell_bytes

LEAST_SHARE, LEAST_GIB = 0.1, 2.0
"""What others must have of a GPU at the start: the process's own context, and a desktop, have less."""

MOST_APART = 0.1
"""GiB by which the memory that a process has, and that another one says it has, may differ: they look one after the
other."""
TAKEN_MIB = 4096
"""Memory in use from which a GPU is taken by a program that computes."""
EMPTY = 0.05
"""Share of the taken memory below which a peer holds none."""
MOST_TAKEN = 0.5
"""Share of the GPUs above which those with memory in use are no exception: it is the job's own."""


def taken_before(details: Mapping[str, str]) -> float:
    """GiB of a GPU that an engine finds taken at its own start; 0 where that is little or the line is none of these."""
    capacity = float(details.get("had_at_start", 0.0))
    taken = capacity - float(details.get("free_at_start", 0.0))
    return taken if taken >= max(LEAST_GIB, LEAST_SHARE * capacity) else 0.0


def by_taken(check: JobCheck, job: Job) -> Iterator[Finding]:
    """The finding on one GPU, or a few, that are taken while the others of the machine are empty."""
    errors = [event for event in job.events if "no gpu memory" in event.details]
    for error, (host, node) in product(errors, job.machines.items()):
        if taken := _taken(node, error):
            yield _beside_empty(check, host, node, taken, error)
            return


def _beside_empty(check: JobCheck, host: str, node: Node, taken: Sequence[Gpu], error: Event) -> Finding:
    labels = [gpu.label for gpu in taken]
    others = plural(sum(gpu.memory_used_mib.known for gpu in node.gpus) - len(taken), "empty GPU")
    size = spell_bytes(sum(gpu.memory_used_mib.get(0) for gpu in taken) << 20)
    return check.finding(
        check.where([host] if host else [], gpus=labels),
        "gpu taken before",
        f"{', '.join(labels[:4])} of {hosts_word([host]) if host else 'the node'}"
        f" {'holds' if len(labels) == 1 else 'hold'} {size} beside {others}, and a program found no memory",
        observed=f"{size} in use on {', '.join(labels[:4])}; {quoted(error.text)}",
        evidence=[*(gpu.memory_used_mib for gpu in taken), error],
    )


def _taken(node: Node, error: Event) -> list[Gpu]:
    """The few GPUs of a machine that hold memory beside empty ones, where a program that found none may stand there."""
    gpus = [gpu for gpu in node.gpus if gpu.memory_used_mib.known]
    most = max((gpu.memory_used_mib.get(0) for gpu in gpus), default=0)
    taken = [gpu for gpu in gpus if gpu.memory_used_mib.get(0) > EMPTY * most]
    are_few = most >= TAKEN_MIB and len(taken) <= MOST_TAKEN * len(gpus)
    named = error.details.get("full_gpu")
    there = named is None or int(named) in {gpu.index for gpu in taken}
    return taken if are_few and there and not _has_it_itself(error.details, most) else []


def _has_it_itself(details: Mapping[str, str], most_mib: int) -> bool:
    """Whether the program says that half of what is taken, or an amount that is not said in GiB, is its own."""
    gib = details.get("own_gib")
    return "own memory" in details and (gib is None or float(gib) * 1024 > most_mib / 2)


BUSY = "busy"
"""The fault by which CUDA refuses a GPU that another process holds (evidence/signatures/catalogue/process.toml)."""

HELD = "held"
"""The fault by which torch, out of a GPU's memory, names the other processes that have some of it (same file)."""
_IN_GIB = {"bytes": 2.0**-30, "KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0}
MOST_OWN = 0.5
"""Share of a GPU's memory that others must have where they are not named: libraries of the process itself take some
that torch does not count."""
NOBODY = -1
"""For the number of a process that is not told."""
LARGE = 0.1
"""Share of a GPU's memory above which other processes are no mere CUDA contexts of a node's other ranks."""


SameGpu = Sequence[tuple[tuple[str, str], Sequence[int]]]
"""Host and bus id of GPUs that several ranks have, with these ranks."""


class SharedGpu(JobCheck, id="JOB004"):
    """JOB004: two ranks on one GPU; a GPU nobody used

    What it finds
        NCCL's own `Duplicate GPU detected`, as information ranks of one communicator with the same host and bus id, and
        nodes that run fewer ranks than the others. CUDA's word that another process holds the GPU, and torch's, out of
        memory, that other processes have a tenth or more of it, or by its numbers half of it or more. In a capture,
        one GPU of a job's that another program has open as well. An engine's word that memory of a GPU is taken before
        it has any, and a GPU that holds memory beside empty ones while the job finds none.
        As information, GPUs that hold half of their memory or more at no load, and no process is shown that has it.

    Why it matters
        Before 2.30 NCCL refuses a communicator with two ranks on one GPU; where it is allowed, they share one GPU's
        compute and links. The GPU that was meant for the second rank stands idle.

    Evidence it reads
        Init lines (host, bus id, CUDA and NVML index) and NCCL's warning. Rows of ranks that name one GPU twice, and
        of nvidia-smi with several processes of one program and size on a GPU. Device lists of nccl-tests in which
        several processes of a host call themselves the same rank.

    When it stays silent
        Equal bus ids on hosts of equal names that NCCL counts as several nodes. Nodes with ranks on all their GPUs.
        GPUs that no rank's node shows, as NCCL prints only those in use. What the job's work outlived, or another end
        of the same processes far below: another launch met it. Out of memory, where torch does not tell its own
        process from others (in containers it does not know its own number), or others have little, or the memory is the
        process's own. At the start less than a tenth, as a desktop takes. Programs that watch GPUs, processes of the
        job itself, and programs that run on most GPUs of the job. Memory of idle GPUs where a process is shown, a
        screen hangs on the GPU, or less than half is in use: an engine that waits holds its memory, so that it is never
        a warning by this alone.

    How to confirm
        topodiag logs LOGS --ranks                     each rank with its host and GPU
        nvidia-smi --query-compute-apps=pid,gpu_bus_id --format=csv     on the node: the processes on each GPU

    How to fix
        Set the device from the local rank before init (`torch.cuda.set_device(LOCAL_RANK)`), or give each task its
        own CUDA_VISIBLE_DEVICES.

    References
        NCCL src/init.cc (Duplicate GPU detected) v2.5 to v2.29; NCCL_MULTI_RANK_GPU_ENABLE in v2.30.
    """

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        finding = self._worst(judged)
        return self.any_of(judged, [finding]) if finding is not None else self._without(judged)

    def _worst(self, job: Job) -> Finding | None:
        """What shows that ranks share GPUs, or have none for themselves, the most telling alone."""
        warnings, shared = [event for event in job.events if event.kind == "duplicate gpu"], _same_gpu(job)
        if warnings or shared:
            return self._shared(job, warnings, shared)
        stopped = [
            event
            for event in job.events
            if "fault" in event.details and not outlived(job, [event.origin]) and not of_earlier_launch(job, event)
        ]
        if busy := [event for event in stopped if event.details["fault"] == BUSY]:
            return self._exclusive_mode(job, busy)
        held = [event for event in stopped if event.details["fault"] == HELD]
        if full := [event for event in held if others_hold(event.details)]:
            return self._full(job, full)
        short, usual = _short_nodes(job)
        return self._idle(job, short, usual) if short else None

    def _without(self, judged: Job) -> Outcome:
        """Where NCCL and CUDA show nothing shared: a GPU that is taken beside empty ones, else whether any was seen."""
        with_gpu = sum(bool(rank.bus_id) for rank in judged.ranks)
        coverage = Coverage(with_gpu, max(judged.world_size, len(judged.ranks)), "ranks with a GPU")
        unseen = "" if with_gpu else f"no bus id: {ask_for(judged)}"
        return self.any_of(judged, by_taken(self, judged), coverage, unknown=unseen)

    def _shared(self, job: Job, events: Sequence[Event], shared: SameGpu) -> Finding:
        """By NCCL's own warning, else by equal hosts and bus ids: who warns of none of these lets ranks share a GPU."""
        ranks, bus_ids = _sharing(events, shared)
        hosts = hosts_in(events) or list(dict.fromkeys(host for (host, _), _ in shared))
        gpus = "one GPU" if len(bus_ids) < 2 else plural(len(bus_ids), "GPU")
        words = f"{rank_word(ranks)} share {gpus}" if len(ranks) > 1 else "two ranks share one GPU"
        return self.finding(
            self.where(hosts, ranks=ranks, gpus=bus_ids),
            "gpu refused" if events else "shared gpu",
            words + (f" on {hosts_word(hosts)}" if hosts else "") + (f" ({', '.join(bus_ids[:3])})" if bus_ids else ""),
            evidence=events or [job.by_rank[rank] for rank in ranks[:4]],
        )

    def _exclusive_mode(self, job: Job, events: Sequence[Event]) -> Finding:
        """By CUDA's error 46: the GPU is in exclusive mode, and a process that is there already has it; or it takes
        nobody, as it waits for a reset."""
        ranks = ranks_in(events)
        return self.of_events(
            events,
            "gpu held by another",
            f"{_who(ranks)} was given a GPU that another process holds, or that waits for a reset",
            self.where(hosts_with(job, ranks), ranks=ranks),
        )

    def _full(self, job: Job, events: Sequence[Event]) -> Finding:
        """By torch's error: no room on the GPU, and other processes have a large part of it."""
        ranks = ranks_in(events)
        held = others_hold(events[0].details)
        named = held[0][0] != NOBODY
        who = f"process {held[0][0]}" if len(held) == 1 else plural(len(held), "other process", "other processes")
        who = who if named else "something else than this process"
        of_job = any(_holds_beside(events[0], other) and _holds_beside(other, events[0]) for other in events[1:])
        who = "another rank of this job" if of_job else who
        verb = "holds" if len(held) == 1 else "hold"
        size = spell_bytes(round(fsum(gib for _, gib in held) * (1 << 30)))
        killed = {word for end in job.events if end.details.get("how") == "killed" for word in end.text.split()}
        alive = [str(pid) for pid, _ in held if named and str(pid) not in killed]
        return self.of_events(
            events,
            "full gpu",
            f"{who} {verb} {size} of the GPU on which {_who(ranks)} ran out of memory",
            self.where(hosts_with(job, ranks), ranks=ranks),
            fix=self.steps(
                *([] if of_job or (named and not alive) else ["end those processes" if named else "whose memory"]),
                "a worker of this job",
                pids=",".join(alive[:8]),
            ),
        )

    def _idle(self, job: Job, short: Mapping[str, int], usual: int) -> Finding:
        return self.finding(
            self.where(list(short)),
            self.advice("idle gpu", usual=plural(usual, "rank"), idle=sum(usual - ranks for ranks in short.values())),
            f"{hosts_word(list(short))} {'runs' if len(short) == 1 else 'run'} fewer ranks than the other nodes",
            observed=", ".join(f"{host}: {ranks}" for host, ranks in list(short.items())[:6]),
            evidence=[rank.origin for rank in job.ranks if rank.host in short][:2],
        )


def _sharing(events: Sequence[Event], shared: SameGpu) -> tuple[list[int], list[str]]:
    """The ranks that share GPUs, and the bus ids of these."""
    ranks = {rank for _, group in shared for rank in group} | {event.rank for event in events if event.rank >= 0}
    if shared:
        return sorted(ranks), sorted({bus_id for (_, bus_id), _ in shared})
    # NCCL names ranks of the communicator, the first one of a job is the world.
    named = [word for event in events for word in event.details.get("ranks", "").split(",")]
    ranks |= {int(word) for word in named if word.isdecimal() and len(word) < 10}
    return sorted(ranks), sorted({event.details["bus_id"] for event in events if "bus_id" in event.details})


def others_hold(details: Mapping[str, str]) -> tuple[tuple[int, float], ...]:
    """Process number and GiB of the other processes on a GPU of which torch says that it is full; none where they have
    less than LARGE of it together, or its capacity is not said."""
    unnamed = _unnamed_hold(details) or taken_before(details)
    if unnamed:
        return ((NOBODY, unnamed),)
    held = tuple(_processes(details.get("processes", "")))
    if "memory_gib" not in details or fsum(gib for _, gib in held) < LARGE * float(details["memory_gib"]):
        return ()
    return held


def _processes(text: str) -> Iterator[tuple[int, float]]:
    """`Process 71 has 8.59 GiB memory in use.`, of each process."""
    for sentence in text.split("Process ")[1:]:
        pid, _, size, unit, *_ = (*sentence.split(maxsplit=4), "", "", "", "")
        if pid.isdecimal() and unit == "GiB":
            yield int(pid), float(size)


def _unnamed_hold(details: Mapping[str, str]) -> float:
    """GiB of a full GPU that are neither free nor its process's own, 0 where that is no large part of it."""
    if "free" not in details:
        return 0.0
    # What torch has reserved holds the allocated; what it called cached is beside it.
    own = [details["reserved"]] if "reserved" in details else [details["allocated"], details["cached"]]
    others = float(details["memory_gib"]) - _gib(details["free"]) - fsum(map(_gib, own))
    return others if others >= MOST_OWN * float(details["memory_gib"]) else 0.0


def _gib(text: str) -> float:
    number, _, unit = text.partition(" ")
    return float(number) * _IN_GIB.get(unit, 0.0)


def _who(ranks: Sequence[int]) -> str:
    return rank_word(ranks) if ranks else "a rank"


def _same_gpu(job: Job) -> SameGpu:
    """Ranks with the same host and bus id; none where several machines or containers have one name."""
    world = job.world
    if world is not None and world.nodes > len(world.hosts):
        return ()
    groups = grouped(((rank.host, rank.bus_id), rank.rank) for rank in job.ranks if rank.host and rank.bus_id)
    return [(place, ranks) for place, ranks in groups.items() if len(ranks) > 1]


def _short_nodes(job: Job) -> tuple[dict[str, int], int]:
    """Nodes with fewer ranks than most others have, and how many those have."""
    count = Counter(rank.host for rank in job.ranks)
    usual = majority(count.values())
    if len(job.ranks) < job.world_size or usual is None or len(count) < 3:
        return {}, 0
    return {host: ranks for host, ranks in count.items() if ranks < usual}, usual


def _holds_beside(one: Event, other: Event) -> bool:
    """Whether a process out of memory has what another one, out of memory of a GPU of the same number, says that a
    process of another number has beside it."""
    named, beside = other.details, others_hold(other.details)
    if one.origin is None or other.origin is None or one.origin.source == other.origin.source:
        return False
    own = float(one.details.get("own_gib", "nan"))
    is_one_gpu = "full_gpu" in named and named["full_gpu"] == one.details.get("full_gpu")
    return is_one_gpu and others_hold(one.details) != beside and any(abs(own - gib) < MOST_APART for _, gib in beside)
