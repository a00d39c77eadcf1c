"""Lines that jobs and nodes live with, each with the reason why it tells of no fault: the one list of them.

A line of NCCL belongs here only where NCCL's source shows that the job loses nothing by what the line says; a warning
after which NCCL goes on with less is not harmless.
"""

from __future__ import annotations

import re

from topodiag.lazy import regex

OF_NCCL: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        regex(r"Failed to find nccl(?:Net|CollNet|Tuner|Profiler)\w{0,20}_v\d+ symbol|dlsym failed on nccl"),
        "NCCL asks a plugin for each version of its interface, the newest first: an older one that is found will do",
    ),
    (
        regex(r"Failed to open libibverbs"),
        "the RDMA library is not installed here: NCCL takes its plugin or sockets, and NET001 says where that costs",
    ),
    (
        regex(r"Failed to open \S{0,80}gdrapi|libgdrapi"),
        "GDRCopy is not installed: it is an option that only shortens small messages",
    ),
    (
        regex(
            r"ibv_query_port_speed|ibv_is_fork_initialized|dlv?sym failed on \S{0,20}(?:ibv_(?:query|set)_ece|mlx5dv_)"
        ),
        "an optional call of libibverbs that this version of the library has not",
    ),
    (
        regex(r"No NVML device handle"),
        "NCCL reads NVLink by NVML: TOP004 and NVL004 say where a GPU is without it",
    ),
    (
        regex(r"Continue without profiler|PROFILER/Plugin"),
        "no profiler plugin was loaded, which no job needs",
    ),
    (
        regex(r"NCCL progress[ -]counter"),
        "NCCL's progress counters only watch: the job runs without them, and RAS says less of a hang",
    ),
    (
        regex(r"Cannot get incoming CPU|Maximum retry reached for (?:accept|connect) \d"),
        "FastSocket asks the kernel for something optional and goes on without it",
    ),
    (
        regex(r"port active|GID table change|client reregistration|event ?: SM change|Device link speed change"),
        "the fabric's manager or a port came back: connections that exist live through it",
    ),
)
"""SOURCE: NCCL src/plugin/*.cc, src/misc/{ibvsymbols,ibvwrap,gdrwrap,nvmlwrap}.cc, src/graph/topo.cc; FastSocket."""
OF_THE_KERNEL: tuple[tuple[re.Pattern[str], str], ...] = (
    (regex(r"ACCESS_REG|mlx5_cmd_out_err"), "reading counters of a restricted function leaves this line"),
    (regex(r"invalid context|nv_get_p2p_free_callback"), "a program ended while it held memory for RDMA"),
    (regex(r"slot power capability was not advertised|Cable plugged"), "the slot does not say its power"),
    (regex(r"AER: .{0,20}Corrected error|severity=Corrected"), "corrected: the packet was sent again"),
    (regex(r"tainting kernel|module verification failed|module license"), "any module outside the kernel's tree"),
    (regex(r"nvidia-modeset|nvidia-drm|amdgpu_(?:dm|dc)|EDID|\bdc_\w", re.I), "display, which no job uses"),
)


def reason(text: str, lines: tuple[tuple[re.Pattern[str], str], ...]) -> str:
    """Why a line is harmless; "" where it is none of `lines`."""
    return next((why for pattern, why in lines if pattern.search(text)), "")


__all__ = ["OF_NCCL", "OF_THE_KERNEL", "reason"]
