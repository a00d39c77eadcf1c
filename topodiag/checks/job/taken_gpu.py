"""JOB004 by the memory of GPUs that is taken before the job has any: what an engine says at its start, and one GPU of
a machine that holds memory beside empty ones while the job finds none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.words import hosts_word, quoted
from topodiag.lazy import dataclass, regex
from topodiag.model.devices import Gpu
from topodiag.model.finding import Finding
from topodiag.model.job import Event, Job
from topodiag.words.fold import plural
from topodiag.words.units import spell_bytes

_FREE = regex(r"Free memory on device (?:\S{1,12} )?\((\d{1,5}(?:\.\d{1,4})?)/(\d{1,5}(?:\.\d{1,4})?) GiB\) on startup")
"""vLLM, v1/worker/gpu_worker.py (0.9 and later): taken before the model is loaded."""
_UNBALANCED = regex(
    r"memory capacity is unbalanced\..{0,120}?pre_model_load_memory=(\d{1,5}(?:\.\d{1,9})?).{0,60}?"
    r"local_gpu_memory=(\d{1,5}(?:\.\d{1,9})?)"
)
"""SGLang, model_executor/model_runner.py: the least that is free on any rank, and what is free on this one."""
LEAST_SHARE, LEAST_GIB = 0.1, 2.0
"""What others must have of a GPU at the start: the process's own context, and a desktop, have less."""

_NO_MEMORY = regex(r"CUDA (?:error: )?out of memory|\bcudaErrorMemoryAllocation\b|\bCUDA_ERROR_OUT_OF_MEMORY\b", re.I)
_WHERE = regex(r"\bGPU (\d{1,3})(?: has a total|;)")
_ITS_OWN = regex(
    r"\bthis process has (\d{1,5}(?:\.\d{1,4})?) GiB|\b(\d{1,5}(?:\.\d{1,4})?) GiB already allocated|already allocated"
    r"|this process has"
)
TAKEN_MIB = 4096
"""Memory in use from which a GPU is taken by a program that computes."""
EMPTY = 0.05
"""Share of the taken memory below which a peer holds none."""
MOST_TAKEN = 0.5
"""Share of the GPUs above which those with memory in use are no exception: it is the job's own."""


@dataclass(frozen=True, slots=True)
class OccupiedGpus:
    """GPUs of a machine that hold memory beside empty ones, and the error of a program that found none."""

    host: str
    gpus: tuple[Gpu, ...]
    total: int
    error: Event


def taken_before(text: str) -> float:
    """GiB of a GPU that an engine finds taken at its own start; 0 where that is little or the line is none of these."""
    free = _FREE.search(text)
    if free is not None:
        taken, capacity = float(free[2]) - float(free[1]), float(free[2])
    elif (match := _UNBALANCED.search(text)) is not None:
        taken, capacity = float(match[2]) - float(match[1]), float(match[2])
    else:
        return 0.0
    return taken if taken >= max(LEAST_GIB, LEAST_SHARE * capacity) else 0.0


def by_taken(check: JobCheck[Any], job: Job) -> Iterator[Finding]:
    """The finding on one GPU, or a few, that are taken while the others of the machine are empty."""
    taken = _taken(job)
    if taken is None:
        return
    labels = [gpu.label for gpu in taken.gpus]
    others = plural(taken.total - len(labels), "empty GPU")
    mib = sum(gpu.memory_used_mib.get(0) for gpu in taken.gpus)
    size = spell_bytes(mib << 20)
    yield check.finding(
        check.where([taken.host] if taken.host else [], gpus=labels),
        "gpu taken before",
        f"{', '.join(labels[:4])} of {hosts_word([taken.host]) if taken.host else 'the node'}"
        f" {'holds' if len(labels) == 1 else 'hold'} {size} beside {others}, and a program found no memory",
        observed=f"{size} in use on {', '.join(labels[:4])}; {quoted(taken.error.text)}",
        evidence=[*(gpu.memory_used_mib.origin for gpu in taken.gpus), taken.error.origin],
    )


def _taken(job: Job) -> OccupiedGpus | None:
    errors = [event for event in job.events if _NO_MEMORY.search(event.text) is not None]
    for error in errors:
        for host, node in job.machines.items():
            gpus = [gpu for gpu in node.gpus if gpu.memory_used_mib.known]
            most = max((gpu.memory_used_mib.get(0) for gpu in gpus), default=0)
            taken = tuple(gpu for gpu in gpus if gpu.memory_used_mib.get(0) > EMPTY * most)
            if most < TAKEN_MIB or not 0 < len(taken) <= MOST_TAKEN * len(gpus):
                continue
            named = _WHERE.search(error.text)
            if named is not None and int(named[1]) not in {gpu.index for gpu in taken}:
                continue
            if not _has_it_itself(error.text, most):
                return OccupiedGpus(host, taken, len(gpus), error)
    return None


def _has_it_itself(text: str, most_mib: int) -> bool:
    """Whether the program says that half of what is taken, or an amount that is not said in GiB, is its own."""
    own = _ITS_OWN.search(text)
    if own is None:
        return False
    gib = own[1] or own[2]
    return gib is None or float(gib) * 1024 > most_mib / 2
