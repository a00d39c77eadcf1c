"""Faults of a device, a limit or storage that a job's own output names: NCCL, CUDA, torch, UCX or a launcher says it.

What a check says of each fault stands in faults.toml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.bus_errors import in_nccl, of_no_page
from topodiag.checks.job.launcher import launched_on
from topodiag.checks.shared.data import data
from topodiag.checks.shared.words import hosts_word, quoted, rank_word, ranks_in
from topodiag.lazy import dataclass
from topodiag.model.devices import Nic
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.model.job import Event, Job
from topodiag.model.node import Node
from topodiag.model.topics import Topic
from topodiag.words.fold import plural

_PLAIN_DRIVERS = frozenset({"virtio-pci", "virtio_net", "ena", "e1000", "e1000e", "igb", "igc", "tg3", "vmxnet3", "gve",
                            "r8169", "hv_netvsc"})  # fmt: skip
"""Drivers of Ethernet that have no RDMA beside them (linux drivers/net)."""


def _faults() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """faults.toml: what is said, by check and name of the fault."""
    return data("job/faults")


@cache
def judged_elsewhere() -> frozenset[str]:
    """Faults of devices and limits that a check of their own judges: where they are all that went wrong, JOB005 has
    nothing to add. Storage ends ranks for reasons that it leaves open."""
    own = {fault for check_id, faults in _faults().items() if check_id != StorageInLog.id for fault in faults}
    return frozenset(own | {"fabric", "busy", "removed", "absent", "rank twice", "no such rank", "worlds"})


@dataclass(frozen=True, slots=True)
class Named:
    """The lines that name one fault, in the order of the log."""

    fault: str
    events: tuple[Event, ...]


class FaultInLog(JobCheck[Named]):
    """A fault by its name in a job's lines."""

    def observe(self, judged: Job, peers: Sequence[Job]) -> Named | Outcome:
        named = {event.details["fault"] for event in judged.events if "fault" in event.details}
        for fault in _faults()[self.id] if named else ():
            if fault in named:
                return Named(fault, tuple(event for event in judged.events if event.details.get("fault") == fault))
        return self.not_applicable(judged, "no line of the job names such a fault: `topodiag scan` of the node does")

    def tell(self, judged: Job, observed: Named) -> Iterator[Finding]:
        faults, events = _faults()[self.id], observed.events
        words = faults[observed.fault]
        words = {**faults.get(words.get("like", ""), {}), **words}
        ranks = ranks_in(events)
        hosts = _hosts(judged, events)
        at = hosts_word(hosts) or (rank_word(ranks) if ranks else "a node")
        yield self.finding(
            Severity[words.get("severity", "error").upper()],
            f"{at}: {words['message']}",
            observed=quoted(events[0].text, 200) + (f"; {plural(len(events), 'line')} of it" if events[1:] else ""),
            expected=words["expected"],
            fix=words["fix"],
            nodes=hosts,
            ranks=ranks,
            cost=Cost(text=words["cost"]),
            evidence=[event.origin for event in events],
            confidence=Confidence[words.get("confidence", "high").upper()],
        )


def _hosts(job: Job, events: Sequence[Event]) -> list[str]:
    """The hosts that the lines name, or where their rank runs."""
    named = (
        event.details.get("host") or event.host or (job.by_rank[event.rank].host if event.rank in job.by_rank else "")
        for event in events
    )
    hosts = list(dict.fromkeys(host for host in named if host))
    by_launcher = "" if hosts or len({event.rank for event in events}) > 1 else launched_on(job, events[0].rank)
    return hosts or ([by_launcher] if by_launcher else [])


class GpuLostInLog(FaultInLog):
    """GPU001 by a job's output: NVML no longer reaches a GPU."""

    id = "GPU001"
    title = "a GPU of a job's node is lost"


class GpuMemoryInLog(FaultInLog):
    """GPU002 by a job's output: CUDA met an uncorrectable memory error."""

    id = "GPU002"
    title = "a GPU of a job has an uncorrectable memory error"


class NvlinkErrorInLog(FaultInLog):
    """GPU003 by a job's output: CUDA met an uncorrectable NVLink error."""

    id = "GPU003"
    title = "a GPU of a job has an uncorrectable NVLink error"


class DriverMismatchInLog(FaultInLog):
    """HST004 by a job's output: the driver's libraries and its kernel module are of different versions, or the
    driver is older than what a program was built for."""

    id = "HST004"
    title = "the NVIDIA driver does not go with the libraries of a program"


class LimitInLog(FaultInLog):
    """HST001 by a job's output: a limit of the host or the container is reached."""

    id = "HST001"
    title = "a limit of a job's node or container is reached"

    def observe(self, judged: Job, peers: Sequence[Job]) -> Named | Outcome:
        named = super().observe(judged, peers)
        if isinstance(named, Named):
            return named
        # No line names these: a signal, and the stack below it.
        for fault, events in (("bus error in nccl", in_nccl(judged)), ("bus error", of_no_page(judged))):
            if events:
                return Named(fault, events)
        return named


class DevicesUnseenInLog(FaultInLog):
    """HST002 by a job's output: a program finds or may open no RDMA device, libfabric has no provider, or a process
    cannot open a peer's GPU memory."""

    id = "HST002"
    title = "a job's processes do not see the devices that they need"

    def observe(self, judged: Job, peers: Sequence[Job]) -> Named | Outcome:
        named = super().observe(judged, peers)
        machines = judged.machines.values()
        if isinstance(named, Named) and named.fault == "no rdma" and machines and all(map(_has_no_adapter, machines)):
            return self.clean(judged)
        return named


def _has_no_adapter(node: Node) -> bool:
    """Whether all PCI functions of a node were seen, and none of its network cards can do RDMA: then no verbs program
    finds one there, and nothing is wrong with that."""
    return Topic.PCI in node.told and not any(nic.rdma_name or not _is_plain(nic) for nic in node.nics)


def _is_plain(nic: Nic) -> bool:
    return (nic.driver.get("") in _PLAIN_DRIVERS) or nic.part.get("").startswith("virtio")


class StorageInLog(FaultInLog):
    """HST006 by a job's output: a file system is full, over its quota, read-only, or its server is gone."""

    id = "HST006"
    title = "the storage of a job refuses its writes or does not answer"

    def observe(self, judged: Job, peers: Sequence[Job]) -> Named | Outcome:
        named = super().observe(judged, peers)
        shared = any(event.details.get("fault") == "shm" for event in judged.events)
        if shared and isinstance(named, Named) and named.fault == "disk full":
            return self.not_applicable(judged, "shared memory is what is full: HST001 says so")
        return named
