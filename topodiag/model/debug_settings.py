"""What to set before the next run, so that its logs answer every check: one table, which `topodiag env` prints.

Names and first versions as in NCCL's src/debug.cc and src/include/nccl_common.h (every known version), and in
torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp for the flight recorder.
"""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.lazy import dataclass

SUBSYSTEMS: Mapping[str, str] = {
    "INIT": "communicators, their ranks and GPUs, init times",
    "BOOTSTRAP": "how the ranks found each other",
    "ENV": "the settings in force",
    "NET": "network devices, plugin, GPUDirect RDMA",
    "GRAPH": "NCCL's view of the node, rings, trees, channels",
    "TUNING": "the algorithm and protocol per size",
    "P2P": "which GPUs talk directly",
    "SHM": "which GPUs talk through host memory",
    "NVLS": "NVLink SHARP",
}
"""What is logged once per communicator: a few hundred lines per rank, and nothing while the job runs."""
QUICK = ("INIT", "ENV", "NET", "GRAPH")
HANG = "COLL"
"""One line per operation: for hangs, and too much for a long run."""
PEERS = "RAS"
"""Some ten lines per process, and those of the peers that it no longer reaches: who is stopped or gone (2.24)."""
LEVELS = ("quick", "recommended", "full")
FILE = "nccl.%h.%p.log"
"""NCCL replaces %h by the host and %p by the process."""


@dataclass(frozen=True, slots=True)
class DebugSetting:
    """One variable, its value, and in one or two lines what it is for and what to beware of."""

    name: str
    value: str
    why: tuple[str, ...]


def subsystems_for(level: str) -> str:
    names = list(QUICK if level == "quick" else SUBSYSTEMS)
    return ",".join([*names, PEERS, HANG] if level == "full" else names)


def next_time(*, hang: bool = False) -> str:
    """What to log next time, the same list wherever a report asks for it: every subsystem that is cheap, with the
    operations where it matters who entered which. NCCL passes over the names that a version does not know."""
    return f"set NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS={subsystems_for('full' if hang else 'recommended')} next time"


def debug_settings(level: str = "recommended", folder: str = "") -> tuple[DebugSetting, ...]:
    """The settings of one of LEVELS; files go to `folder`, which must exist on every node."""
    place = f"{folder.rstrip('/') or '/'}/".replace("//", "/") if folder else ""
    made = [
        DebugSetting("NCCL_DEBUG", "INFO", ("required: without it NCCL logs nothing",)),
        DebugSetting("NCCL_DEBUG_SUBSYS", subsystems_for(level), _subsystem_words(level)),
        DebugSetting("NCCL_DEBUG_FILE", place + FILE, (
            "one file per process (%h host, %p pid), so that lines do not mix; the folder must exist on every node,",
            "local or shared; a file of the same name is overwritten",
        )),
    ]  # fmt: skip
    if level == "quick":
        return tuple(made)
    made += [
        DebugSetting("NCCL_DEBUG_TIMESTAMP_LEVELS", "ALL", (
            "a time on every line (NCCL 2.26 and later; older ones ignore it): which error came first",
        )),
        DebugSetting("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000", (
            "PyTorch's flight recorder: the last 2000 collectives of each rank, in memory (newer versions also call it",
            "TORCH_FR_BUFFER_SIZE)",
        )),
        DebugSetting("TORCH_NCCL_DUMP_ON_TIMEOUT", "1", ("write them when a collective times out: who is behind",)),
        DebugSetting("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", (place or "./") + "nccl_trace_rank_", (
            "where to: the rank is appended; read it with topodiag logs --flight",
        )),
    ]  # fmt: skip
    made += [
        DebugSetting("NCCL_RAS_ENABLE", "1", (
            "NCCL answers who is behind while a job hangs (2.24 and later, its default; topodiag ras asks): one thread",
            "and a few sockets per process",
        )),
        DebugSetting("NCCL_RUN_RAS_DIAGNOSTICS", "1", (
            "NCCL compares drivers, GPUs, links and settings of its ranks (2.31 and later), on the output of rank 0:",
            "some 10 ms at each init",
        )),
    ]  # fmt: skip
    if level == "full":
        made += [
            DebugSetting("NCCL_RUN_DIAGNOSTICS", "1", (
                "a test transfer between each pair of GPUs of a node (2.31 and later): up to some 100 ms at each init",
            )),
            DebugSetting("NCCL_PROFILER_PLUGIN", "inspector", (
                "NCCL's Inspector times each collective of each rank (2.28 and later; without",
                "libnccl-profiler-inspector.so NCCL goes on): 300 to 500 bytes of disk per collective and rank",
            )),
            DebugSetting("NCCL_INSPECTOR_ENABLE", "1", ("the Inspector writes nothing without it",)),
            DebugSetting("NCCL_INSPECTOR_DUMP_DIR", place + "nccl-inspector", ("where to; topodiag logs reads it",)),
            DebugSetting("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "60000000", (
                "each minute; unset, 2.30 and later write at the end alone, the last 1024 calls of each communicator",
            )),
        ]  # fmt: skip
        made.append(
            DebugSetting("NCCL_TOPO_DUMP_FILE", place + "nccl-topology.xml", (
                "the topology that NCCL detected. Every communicator in which the process has rank 0 writes it again:",
                "the file left over is of the last one, maybe a small one, with its own rank numbers and GPUs.",
                "Never feed it back unread as NCCL_TOPO_FILE",
            ))
        )  # fmt: skip
    return tuple(made)


def _subsystem_words(level: str) -> tuple[str, ...]:
    if level == "quick":
        return ("communicators, settings, network and rings; about 100 lines per rank and communicator",)
    words = ("what is said once per communicator: transports, rings, tuning; nothing while the job runs",)
    if level == "full":
        return (
            *words,
            "RAS names the peers that a process no longer reaches (2.24 and later)",
            "COLL adds one line per operation: for hangs, on short runs; gigabytes on long ones",
        )
    return words
