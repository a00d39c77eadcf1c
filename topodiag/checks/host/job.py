"""The hosts of a job, by its log: faults, settings, and NICs on another socket."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from topodiag.checks.interface import JobCheck, hosts_in, hosts_word
from topodiag.checks.shared.devices import has_no_adapter
from topodiag.checks.shared.job import logs
from topodiag.checks.shared.job.faults import FaultInLog
from topodiag.checks.shared.job.first_error import first_error
from topodiag.checks.shared.job.nic_uses import NicUse, nic_uses, where_used
from topodiag.checks.shared.job.text import ask_for, came_up, failed
from topodiag.model.cpulist import parse_cpulist
from topodiag.model.finding import Coverage, Finding, Outcome
from topodiag.model.job import Event, Job
from topodiag.model.nccl_versions import Feature, text_has
from topodiag.model.provenance import Origin
from topodiag.words.units import fold_runs, grouped

BUS_IN_NCCL, BUS_NO_PAGE = "bus error in nccl", "bus error"
"""What no line names alone: a signal, and the stack below it."""


class LimitInLog(FaultInLog, id="HST001"):
    """HST001 by a job's output: a limit of the host or the container is reached."""

    def named(self, job: Job) -> tuple[str, Sequence[Event]]:
        shown = (super().named(job), (BUS_IN_NCCL, in_nccl(job)), (BUS_NO_PAGE, of_no_page(job)))
        return next((named for named in shown if named[1]), shown[0])


class DevicesUnseenInLog(FaultInLog, id="HST002"):
    """HST002 by a job's output: a program finds or may open no RDMA device, libfabric has no provider, or a process
    cannot open a peer's GPU memory. It is a remark where the work of what looks like one node begins below."""

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        machines, (fault, _) = judged.machines.values(), self.named(judged)
        if fault == "no rdma" and machines and all(map(has_no_adapter, machines)):
            return self.clean(judged)
        return super().observe(judged, peers)

    def works_without(self, job: Job) -> bool:
        return len({event.host for event in job.events if event.host}) == 1 and not logs.multi_node(job)


class DriverMismatchInLog(FaultInLog, id="HST004"):
    """HST004 by a job's output: the driver's libraries and its kernel module are of different versions, or the
    driver is older than what a program was built for. It is a remark where the work begins below, on the CPUs."""

    def works_without(self, job: Job) -> bool:
        return True


class StorageInLog(FaultInLog, id="HST006"):
    """HST006 by a job's output: a file system is full, over its quota, read-only, or its server is gone. It is a remark
    where the work begins below: scripts try what an image refuses."""

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        shared = any(event.details.get("fault") == "shm" for event in judged.events)
        if shared and self.named(judged)[0] == "disk full":
            return self.not_applicable(judged, "shared memory is what is full: HST001 says so")
        return super().observe(judged, peers)

    def works_without(self, job: Job) -> bool:
        return True


# Bus errors of a job's processes that are those of shared memory without room.


MOST_BETWEEN = 30
"""Lines between a signal and a frame of the stack that its handler prints below."""


def in_nccl(job: Job) -> tuple[Event, ...]:
    """The bus errors below which a stack names functions of NCCL."""
    frames = [event for event in job.events if event.details.keys() & {"symbol", "frame of nccl"}]
    return tuple(event for event in _bus_errors(job) if any(_below(event, frame) for frame in frames))


def of_no_page(job: Job) -> tuple[Event, ...]:
    """The bus errors of which the handler says that no page stands behind the address."""
    return tuple(event for event in _bus_errors(job) if "no page" in event.details)


def _bus_errors(job: Job) -> list[Event]:
    return [
        event
        for event in job.events
        if event.details.get("how") == "crash"
        and "bus error" in event.details
        and "other bus error" not in event.details
    ]


def _below(event: Event, frame: Event) -> bool:
    at, of = event.origin, frame.origin
    if at is None or of is None or at.line is None or of.line is None or at.source != of.source:
        return False
    return 0 < of.line - at.line <= MOST_BETWEEN


BALANCED = "NUMA auto balancing enabled"
"""RCCL src/init.cc, ROCm 5.4 and later: it reads /proc/sys/kernel/numa_balancing at init."""


class HostSettingWarned(JobCheck, id="HST003"):
    """HST003 by a job's log: RCCL warns of automatic NUMA balancing on its node, or NCCL's shared memory is removed
    under a job that fails of it."""

    def observe(self, judged: Job, peers: Sequence[Job]) -> Outcome:
        events = removed(judged) or [event for event in judged.events if BALANCED in event.text]
        if not events:
            return self.not_applicable(judged, "no line speaks of NUMA balancing: `topodiag scan` of the node does")
        hosts = hosts_in(events)
        advice, message = "job settings", f"automatic NUMA balancing is on{f' on {hosts_word(hosts)}' if hosts else ''}"
        if BALANCED not in events[0].text:
            advice = "shared memory removed"
            message = f"{hosts_word(hosts) or 'a node'}: a file of NCCL's shared memory was removed while the job began"
        return self.any_of(judged, [self.of_events(events, advice, message, self.where(hosts))])


def removed(job: Job) -> list[Event]:
    """Lines of a failed job whose first error is a file of shared memory that is gone. A job that goes down for another
    reason may clear up twice."""
    events = [event for event in job.events if event.details.get("fault") == "removed"]
    first = first_error(job) if events and failed(job) else None
    return events if first is not None and first.details.get("fault") == "removed" else []


Cores = tuple[str, frozenset[int], frozenset[int], Origin | None]
"""The number of a GPU, the cores near it and those of its process, and the line."""

UNBOUND = 2
"""Processes of a node without such a line from which on it is no line that was lost."""


class NicOnOtherSocket(JobCheck, id="NUM001", unless=logs.one_node):
    """NUM001 by a job's log: GPU and the NIC it uses hang below different CPUs of the system print."""

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        judged = 0
        across: dict[str, dict[str, NicUse]] = defaultdict(dict)
        for use in nic_uses(job, send_recv=True):
            system = use.system
            mine, its = logs.cpu_of(system, use.gpu), logs.cpu_of(system, use.net)
            if not mine or not its:
                continue
            judged += use.entries
            own = any(logs.cpu_of(system, other) == mine for other in system.of_kind("NET"))
            virtual = not use.net.guid.strip("0x")  # sockets: NCCL hangs them below the first CPU
            if mine != its and not own and not virtual:
                across[use.host].setdefault(use.label, use)
        if not judged:
            return self.unknown(job, f"no line places the GPUs and NICs that a connection joins; {ask_for(job)}")
        if not across:
            return self.clean(job, "", Coverage(judged, judged, "connections"))
        return self.with_findings(job, logs.fold([self._report(job, list(uses.values())) for uses in across.values()]))

    def _report(self, job: Job, uses: Sequence[NicUse]) -> Finding:
        conns, first, where = job.connections, uses[0], where_used(uses)
        return self.finding(
            where,
            "job numa",
            f"{first.host}: {fold_runs(where.gpus)} send through a NIC of the other socket: theirs has none",
            observed=f"{'+'.join(first.ports) or conns.label(first.entry)} below another CPU than the GPU",
            evidence=[conns.origin(use.entry) for use in uses],
        )


class AwayFromGpuInLog(JobCheck, id="NUM002"):
    """NUM002 by a job's log: the cores of a process have none in common with those near its GPU."""

    def observe(self, job: Job, peers: Sequence[Job]) -> Outcome:
        cores: dict[int, Cores] = {}
        for line in logs.named_by(job, "near", "affinity"):
            number, named = line.process, line.details
            if number >= 0 and number not in cores:
                near, own = parse_cpulist(named["near"].strip()), parse_cpulist(named.get("own", "").strip())
                if near and own:
                    cores[number] = (named["gpu"], frozenset(near), frozenset(own), line.origin)
        bound, unbound = _by_silence(job)
        if not cores and not bound:
            return self.unknown(job, f"no line compares a process's cores with its GPU's; {ask_for(job)}")
        judged = len(cores.keys() | bound.keys()) + sum(len(numbers) for numbers in unbound.values())
        coverage = Coverage(judged, len(job.processes), "processes")
        at_home = {number for number, (_, near, own, _) in cores.items() if near & own}
        away = grouped((job.processes[number].host, number) for number in cores if number not in at_home)
        findings = [self._report(job, host, numbers, cores) for host, numbers in away.items()]
        findings += [self._unbound(job, host, numbers, bound) for host, numbers in unbound.items()]
        return self.any_of(job, logs.fold(findings), coverage)

    def _report(self, job: Job, host: str, numbers: list[int], cores: Mapping[int, Cores]) -> Finding:
        on_host = [cores[number] for number in cores if job.processes[number].host == host]
        pinned = len({own for _, _, own, _ in on_host}) > 1
        first = cores[numbers[0]]
        labels = list(dict.fromkeys(f"GPU{cores[number][0]}" for number in numbers))
        return self.finding(
            self.where((host,), ranks=logs.world_ranks(job, numbers), gpus=labels),
            "process bound away" if pinned else "process away",
            f"{host}: the processes of {fold_runs(labels)} may run only on cores away from their GPUs"
            + ("" if pinned else ": all processes of the node share one set of cores"),
            sure=pinned,
            observed=f"{len(first[2])} cores, none of the {len(first[1])} near the GPU",
            evidence=[cores[number][3] for number in numbers],
            coverage=Coverage(len(numbers), len(on_host), "processes of these nodes"),
        )

    def _unbound(self, job: Job, host: str, numbers: list[int], bound: Mapping[int, Origin | None]) -> Finding:
        ranks = logs.world_ranks(job, numbers)
        labels = list(dict.fromkeys(label for rank in ranks if (label := logs.gpu_word(job, rank))))
        return self.finding(
            self.where((host,), ranks=ranks, gpus=labels),
            "process not bound",
            f"{host}: the processes of {fold_runs(labels) if labels else 'some GPUs'} may run only on cores away from"
            " their GPUs: NCCL bound those of the other GPUs, and not these",
            observed=f"no `Setting affinity` from {len(numbers)} processes that completed init",
            evidence=[where for number, where in bound.items() if job.processes[number].host == host],
            coverage=Coverage(len(numbers), sum(process.host == host for process in job.processes), "processes"),
        )


def _by_silence(job: Job) -> tuple[dict[int, Origin | None], dict[str, list[int]]]:
    """In logs of NCCL to 2.27: the processes that were bound to cores near their GPU, with the line; and by host those
    that completed init and were not, while others of the host were."""
    bound = {line.process: line.origin for line in logs.named_by(job, "bound", "affinity") if line.process >= 0}
    if not bound or not _names_unbound(job):
        return bound, {}
    ranks = Counter(rank.process for rank in job.ranks)
    done = came_up(job)
    silent = grouped(
        (rank.host, rank.process)
        for rank in job.ranks
        if rank.rank in done and ranks[rank.process] == 1 and rank.process >= 0 and rank.process not in bound
    )
    hosts = {job.processes[number].host for number in bound}
    return bound, {host: numbers for host, numbers in silent.items() if host in hosts and len(numbers) >= UNBOUND}


def _names_unbound(job: Job) -> bool:
    """Whether these versions of NCCL print a line of each process that they bind, and of no other."""
    versions = job.nccl_versions
    return bool(versions) and not any(text_has(version, Feature.AFFINITY_OF_PROCESSES) for version in versions)
