"""Limits, devices, drivers and storage of a host whose faults a job's own output names."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.checks.job.bus_errors import in_nccl, of_no_page
from topodiag.checks.job.job_faults import FaultInLog, FaultLines
from topodiag.model.devices import Nic
from topodiag.model.finding import Outcome
from topodiag.model.job import Job
from topodiag.model.node import Node
from topodiag.model.topics import Topic

_PLAIN_DRIVERS = frozenset({"virtio-pci", "virtio_net", "ena", "e1000", "e1000e", "igb", "igc", "tg3", "vmxnet3", "gve",
                            "r8169", "hv_netvsc"})  # fmt: skip
"""Drivers of Ethernet that have no RDMA beside them (linux drivers/net)."""
BUS_IN_NCCL, BUS_NO_PAGE = "bus error in nccl", "bus error"
"""What no line names alone: a signal, and the stack below it."""


class LimitInLog(FaultInLog):
    """HST001 by a job's output: a limit of the host or the container is reached."""

    id = "HST001"
    title = "a limit of a job's node or container is reached"

    def observe(self, judged: Job, peers: Sequence[Job]) -> FaultLines | Outcome:
        observed = super().observe(judged, peers)
        if isinstance(observed, FaultLines):
            return observed
        for fault, events in ((BUS_IN_NCCL, in_nccl(judged)), (BUS_NO_PAGE, of_no_page(judged))):
            if events:
                return FaultLines(fault, events)
        return observed


class DevicesUnseenInLog(FaultInLog):
    """HST002 by a job's output: a program finds or may open no RDMA device, libfabric has no provider, or a process
    cannot open a peer's GPU memory."""

    id = "HST002"
    title = "a job's processes do not see the devices that they need"

    def observe(self, judged: Job, peers: Sequence[Job]) -> FaultLines | Outcome:
        observed = super().observe(judged, peers)
        machines = judged.machines.values()
        unseen = isinstance(observed, FaultLines) and observed.fault == "no rdma"
        return self.clean(judged) if unseen and machines and all(map(has_no_adapter, machines)) else observed


class DriverMismatchInLog(FaultInLog):
    """HST004 by a job's output: the driver's libraries and its kernel module are of different versions, or the
    driver is older than what a program was built for."""

    id = "HST004"
    title = "the NVIDIA driver does not go with the libraries of a program"


class StorageInLog(FaultInLog):
    """HST006 by a job's output: a file system is full, over its quota, read-only, or its server is gone."""

    id = "HST006"
    title = "the storage of a job refuses its writes or does not answer"

    def observe(self, judged: Job, peers: Sequence[Job]) -> FaultLines | Outcome:
        observed = super().observe(judged, peers)
        shared = any(event.details.get("fault") == "shm" for event in judged.events)
        if shared and isinstance(observed, FaultLines) and observed.fault == "disk full":
            return self.not_applicable(judged, "shared memory is what is full: HST001 says so")
        return observed


def has_no_adapter(node: Node) -> bool:
    """Whether all PCI functions of a node were seen, and none of its network cards can do RDMA: then no verbs program
    finds one there, and nothing is wrong with that."""
    return Topic.PCI in node.told and not any(nic.rdma_name or not _is_plain(nic) for nic in node.nics)


def _is_plain(nic: Nic) -> bool:
    return (nic.driver.get("") in _PLAIN_DRIVERS) or nic.part.get("").startswith("virtio")
