"""A ring that does not close because nodes were given different RDMA devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from topodiag.checks.job.evidence import prints_settings
from topodiag.lazy import regex
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Job

DEVICES = "NCCL_IB_HCA"
_OPEN = regex(r"\bring \d{1,6} does not (?:loop back to start|contain rank)")
"""src/graph/rings.cc, all versions: what the ranks exchanged of their graphs makes no ring."""


def ring_is_open(job: Job) -> bool:
    """Whether NCCL says that the ranks' graphs make no ring."""
    return any(_OPEN.search(event.text) for event in job.events)


def lists_all(job: Job, having: set[int]) -> list[int]:
    """Processes that listed their RDMA devices without NCCL_IB_HCA: ncclIbInitDevices prints the variable before the
    list. Processes that print no setting of the environment may not log settings: they are left out."""
    return [
        at for at, process in enumerate(job.processes) if at not in having and process.hcas and prints_settings(process)
    ]


def accused(job: Job, report: Finding, groups: Mapping[str, Sequence[int]]) -> Finding:
    """The finding that NCCL_IB_HCA differs, as an error where it gives nodes different numbers of devices: each node
    then searches its graphs for other NICs than its peers."""
    counts = {len(job.processes[at].hcas) for numbers in groups.values() for at in numbers} - {0}
    if len(counts) < 2:
        return report
    return replace(
        report,
        severity=Severity.ERROR,
        cost=Cost(text="nodes with different NICs search different graphs: the ring does not close, and init fails"),
        confidence=Confidence.MEDIUM,
    )
