"""Which GPUs xGMI joins, in RCCL's eyes (ncclTopoGetLinkType, src/graph/search.cc of RCCL 2.21.5)."""

from __future__ import annotations

from topodiag.model.nccl_versions import path_types
from topodiag.nccl.graph.graph import System

MOST_BETWEEN = 4
"""GPUs that RCCL looks for between two (MAX_XGMI_INTER_GPUS)."""


def neighbours(system: System) -> dict[int, set[int]]:
    """By index of a GPU, those that a direct link of xGMI is the way to."""
    nvl = path_types(system.minor).nvl
    return {
        gpu.index: {
            at
            for at, path in enumerate(gpu.paths["GPU"])
            if path.count == 1 and path.links and path.links[0].type == nvl
        }
        for gpu in system.gpus
    }


def all_by_xgmi(system: System, between: int = MOST_BETWEEN) -> bool:
    """Whether every two GPUs are joined by xGMI, over at most so many GPUs between them."""
    near = neighbours(system)
    return all(_reached(near, start, between) >= set(near) - {start} for start in near)


def _reached(near: dict[int, set[int]], start: int, between: int) -> set[int]:
    seen, edge = {start}, {start}
    for _ in range(between + 1):
        edge = {peer for gpu in edge for peer in near[gpu]} - seen
        seen |= edge
    return seen - {start}
