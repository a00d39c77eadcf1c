"""Warnings and return codes that jobs live with, each with the reason why it tells of no fault.

What is listed here is said beside the verdict and never changes it. A line belongs here only where NCCL's source shows
that the job loses nothing by what the line says; a warning after which NCCL goes on with less is not harmless.
"""

from __future__ import annotations

import re

from topodiag.model.job import Event, Job

REASONS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"Failed to find nccl(?:Net|CollNet|Tuner|Profiler)\w{0,20}_v\d+ symbol|dlsym failed on nccl"),
        "NCCL asks a plugin for each version of its interface, the newest first: an older one that is found will do",
    ),
    (
        re.compile(r"Failed to open libibverbs"),
        "the RDMA library is not installed here: NCCL takes its plugin or sockets, and NET001 says where that costs",
    ),
    (
        re.compile(r"Failed to open \S{0,80}gdrapi|libgdrapi"),
        "GDRCopy is not installed: it is an option that only shortens small messages",
    ),
    (
        re.compile(
            r"ibv_query_port_speed|ibv_is_fork_initialized|dlv?sym failed on \S{0,20}(?:ibv_(?:query|set)_ece|mlx5dv_)"
        ),
        "an optional call of libibverbs that this version of the library has not",
    ),
    (
        re.compile(r"No NVML device handle"),
        "NCCL reads NVLink by NVML: TOP004 and NVL004 say where a GPU is without it",
    ),
    (
        re.compile(r"Continue without profiler|PROFILER/Plugin"),
        "no profiler plugin was loaded, which no job needs",
    ),
    (
        re.compile(r"NCCL progress[ -]counter"),
        "NCCL's progress counters only watch: the job runs without them, and RAS says less of a hang",
    ),
    (
        re.compile(r"Cannot get incoming CPU|Maximum retry reached for (?:accept|connect) \d"),
        "FastSocket asks the kernel for something optional and goes on without it",
    ),
    (
        re.compile(r"port active|GID table change|client reregistration|event ?: SM change|Device link speed change"),
        "the fabric's manager or a port came back: connections that exist live through it",
    ),
)
"""SOURCE: NCCL src/plugin/*.cc, src/misc/{ibvsymbols,ibvwrap,gdrwrap,nvmlwrap}.cc, src/graph/topo.cc; FastSocket."""

CLOSED = "return codes of a communicator that was torn down"
GOING_DOWN = "torch and its launcher print it while a job goes down, well or badly: it names no cause"
NO_DRIVER = (
    "libibverbs asks for the driver of each kind of adapter that is set up on the system, and this kind's is not"
    " installed: it costs nothing where the node has no such adapter"
)
NO_DEVICE = "the code by which NCCL learns that it finds none of these devices"

_OPTIONAL = re.compile(
    r"(?:ibvwrap|ibvsymbols|gdrwrap|nvmlwrap|mlx5dv\w*|net_ib\w*|plugin/\w+|net|init_nvtx)\.cc:\d+ -> "
)
"""Files whose calls fail where a library is absent, and whose callers go on (src/plugin/net.cc, ncclNetInit)."""


def why_harmless(event: Event, job: Job) -> str:
    """The reason, "" where the line may tell of a fault."""
    if event.level == "UNWIND":
        return _why_code(event, job)
    if event.kind == "note":
        return NO_DRIVER if "couldn't load driver" in event.text else GOING_DOWN
    if event.level == "APP":
        return ""
    return next((reason for pattern, reason in REASONS if pattern.search(event.text)), "")


def _why_code(event: Event, job: Job) -> str:
    """A code is a trouble of its own where the communicator did not come up, or was not given back."""
    world = job.world
    if world is None or not world.init_complete:
        return ""
    if world.destroyed:
        return CLOSED
    return NO_DEVICE if _OPTIONAL.search(f"{event.place} {event.text}") else ""
