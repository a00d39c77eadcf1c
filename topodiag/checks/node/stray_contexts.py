"""For JOB004: processes that hold a CUDA context on a GPU that is not their own.

Processes of one program work on a GPU each, and hold a context on one and the same other GPU: they asked CUDA for
something before they chose their own. One process on several GPUs works there; processes with a context on each other's
GPU opened their peers' memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from topodiag.lazy import dataclass
from topodiag.model.system import Process

LEAST_MIB = 1024
"""Memory of a process that computes; a bare CUDA context has half of it."""
CONTEXT_MIB = 100
"""The least that a CUDA context takes of a GPU of a data center."""


@dataclass(frozen=True, slots=True)
class StrayContexts:
    """Processes of one program with a context on `gpu` beside the GPU that each works on, of `of` processes."""

    gpu: int
    processes: tuple[Process, ...]
    of: int
    most_mib: int


def stray_contexts(processes: Iterable[Process]) -> StrayContexts | None:
    """Those of the first program that has them."""
    programs: dict[str, list[Process]] = defaultdict(list)
    for process in processes:
        if process.name.value and process.memory_mib:
            programs[process.name.value].append(process)
    return next((found for group in programs.values() if (found := _of_program(group)) is not None), None)


def _of_program(group: list[Process]) -> StrayContexts | None:
    strays: dict[int, list[Process]] = defaultdict(list)
    homes: Counter[int] = Counter()
    for process in group:
        (home, most), *small = sorted(process.memory_mib.items(), key=lambda item: -item[1])
        homes[home] += 1
        if len(small) > 1:
            return None
        if small and most >= LEAST_MIB and CONTEXT_MIB <= small[0][1] < min(LEAST_MIB, most / 2):
            strays[small[0][0]].append(process)
    if len(strays) != 1 or max(homes.values()) > 1:
        return None
    ((gpu, found),) = strays.items()
    if 2 * len(found) < len(group) or gpu not in homes:
        return None
    return StrayContexts(gpu, tuple(found), len(group), max(each.memory_mib[gpu] for each in found))


__all__ = ["StrayContexts", "stray_contexts"]
