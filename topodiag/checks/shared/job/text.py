"""What checks of jobs ask of a job alike: how to spell ranks, where members run, and what to log. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.lazy import regex
from topodiag.model.debug_settings import HANG, next_time
from topodiag.model.job import Communicator, Event, Job
from topodiag.model.job_domains import domains as domains  # noqa: PLC0414 - checks find all words on a job here
from topodiag.model.nccl_features import Feature
from topodiag.model.nccl_versions import text_has

NET = ("NET", "GRAPH")
"""Subsystems that tell of NICs, transports and NCCL's view of the node, for `ask_for`."""


NO_ERRORS = frozenset({"unwind", "ended", "stalled", "device", "note", "launched", "met", "tried"})
"""Kinds of events that are no errors of communication: what unwinds, ends or waits after one, or without any."""

LIVED_WITH = regex(
    r"Failed to open libibverbs|Failed to open \S*gdrapi|Failed to find CUDA library|No NVML device handle"
    r"|ibv_query_port_speed|falling back to simple order|is being ignored because|Continue without profiler"
    r"|SHARP (?:coll init|group create)|Cannot initialize CollNet|CollNet is not supported or|disabling CollNet"
    r"|GID table change|client reregistration|async (?:error )?event ?: SM change|port active"
    r'|Missing "(?:iommu=|amd_iommu=|HSA_)|NUMA auto balancing enabled'
    r"|Cannot get incoming CPU|Maximum retry reached for (?:accept|connect) \d"
)
"""Warnings after which NCCL (src/misc/*wrap.cc, src/graph/*.cc, src/init.cc, src/transport/*.cc), RCCL,
the SHARP plugin or FastSocket goes on: jobs that work print them too, so that none is what made another one fail."""


_OF_INIT = ("graph/", "nvmlwrap")
"""Parts of NCCL's files that only its init runs: they read NVML and the topology."""


def survived(job: Job, event: Event) -> bool:
    """Whether NCCL warned while it read the topology, and all ranks completed the init that reads it."""
    return job.world is not None and job.world.init_complete and any(part in event.place for part in _OF_INIT)


def hosts_of(job: Job) -> Mapping[int, str]:
    """Host by world rank, of the ranks that left a line."""
    return {rank.rank: rank.host for rank in job.ranks if rank.host}


def members(communicator: Communicator) -> list[int]:
    """World ranks of the known members, in the order of the communicator."""
    return [int(rank) for rank in communicator.ranks if rank >= 0]


def ask_for(job: Job, *names: str) -> str:
    """How to log what is missing. `names` are the subsystems that show it: one list answers all checks, so that no two
    findings of a report ask for different ones."""
    return next_time(hang="COLL" in names or wants_operations(job))


def wants_operations(job: Job) -> bool:
    """Whether it matters who entered which operation: something went wrong, and the operations are not in the log."""
    return bool(job.events) and HANG not in job.subsystems and not job.flight


def unconnected(job: Job, what: str) -> str:
    """Why no connection of a kind is in the log: since LAZY_CONNECTIONS NCCL connects when an operation
    first needs it."""
    lazy = [version for version in job.nccl_versions if text_has(version, Feature.LAZY_CONNECTIONS)]
    if job.subsystems >= {"INIT", "NET"} and job.nccl_versions and len(lazy) == len(job.nccl_versions):
        return f"no operation used {what}: NCCL connects when one first does, and a log that goes on shows it"
    return f"{what} was not seen; {ask_for(job, *NET)}"


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
