"""Limits, devices, drivers and storage of a host whose faults a job's own output names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from topodiag.checks.shared.devices import has_no_adapter
from topodiag.checks.shared.job.faults import FaultInLog, FaultLines
from topodiag.lazy import regex
from topodiag.model.finding import Outcome
from topodiag.model.job import Event, Job

BUS_IN_NCCL, BUS_NO_PAGE = "bus error in nccl", "bus error"
"""What no line names alone: a signal, and the stack below it."""


class LimitInLog(FaultInLog):
    """HST001 by a job's output: a limit of the host or the container is reached."""

    id = "HST001"

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

    def observe(self, judged: Job, peers: Sequence[Job]) -> FaultLines | Outcome:
        observed = super().observe(judged, peers)
        machines = judged.machines.values()
        unseen = isinstance(observed, FaultLines) and observed.fault == "no rdma"
        return self.clean(judged) if unseen and machines and all(map(has_no_adapter, machines)) else observed


class DriverMismatchInLog(FaultInLog):
    """HST004 by a job's output: the driver's libraries and its kernel module are of different versions, or the
    driver is older than what a program was built for."""

    id = "HST004"


class StorageInLog(FaultInLog):
    """HST006 by a job's output: a file system is full, over its quota, read-only, or its server is gone."""

    id = "HST006"

    def observe(self, judged: Job, peers: Sequence[Job]) -> FaultLines | Outcome:
        observed = super().observe(judged, peers)
        shared = any(event.details.get("fault") == "shm" for event in judged.events)
        if shared and isinstance(observed, FaultLines) and observed.fault == "disk full":
            return self.not_applicable(judged, "shared memory is what is full: HST001 says so")
        return observed


# Bus errors of a job's processes that are those of shared memory without room.


_BUS = regex(r"[Bb]us error|\bSIGBUS\b|\bsignal 7\b", re.IGNORECASE)
_OTHER_BUS = regex(r"alignment|object-specific|BUS_(?:ADRALN|OBJERR|MCEERR)|[Hh]ardware", re.IGNORECASE)
"""Bus errors for which the kernel has other reasons: an odd address, and memory that failed."""
_NO_PAGE = regex(r"nonexistent physical address|\bBUS_ADRERR\b", re.IGNORECASE)
_FRAME = regex(r"\s{0,8}@ {1,16}0x[0-9a-f]{6,16} .{0,40}?\bnccl[A-Z]")
"""A frame as glog prints it, of a function whose name stands in NCCL's own errors, too."""
MOST_BETWEEN = 30
"""Lines between a signal and a frame of the stack that its handler prints below."""


def in_nccl(job: Job) -> tuple[Event, ...]:
    """The bus errors below which a stack names functions of NCCL."""
    frames = [event for event in job.events if event.details.get("symbol") or _FRAME.match(event.text)]
    return tuple(event for event in _bus_errors(job) if any(_below(event, frame) for frame in frames))


def of_no_page(job: Job) -> tuple[Event, ...]:
    """The bus errors of which the handler says that no page stands behind the address."""
    return tuple(event for event in _bus_errors(job) if _NO_PAGE.search(event.text) is not None)


def _bus_errors(job: Job) -> list[Event]:
    return [
        event
        for event in job.events
        if event.details.get("how") == "crash"
        and _BUS.search(event.text) is not None
        and _OTHER_BUS.search(event.text) is None
    ]


def _below(event: Event, frame: Event) -> bool:
    at, of = event.origin, frame.origin
    if at is None or of is None or at.line is None or of.line is None or at.source != of.source:
        return False
    return 0 < of.line - at.line <= MOST_BETWEEN
