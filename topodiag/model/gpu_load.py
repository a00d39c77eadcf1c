"""What the load of a GPU says: it computes, it runs nothing, or it waits in a kernel.

A kernel of NCCL that waits for a peer polls: the GPU is fully busy, moves next to no memory and takes little power.
"""

from __future__ import annotations

from topodiag.model.devices import Gpu
from topodiag.model.node import Node

FULL = 95
"""Percent from which a GPU is taken for fully busy: nvidia-smi samples, and a moment may fall between two kernels."""
NO_TRAFFIC = 3
"""Percent of time with memory traffic up to which there is none to speak of: polling reads a few lines."""
LITTLE_POWER = 0.35
"""Share of the power limit below which a fully busy GPU computes nothing. Polling takes 0.15 to 0.3 (120 W of the
700 of an H100), decoding of a language model 0.4 and more, training 0.7 to 1."""
IDLE = 5
"""Percent up to which a GPU runs nothing to speak of: a monitor may start a small kernel."""


def waits(gpu: Gpu) -> bool:
    """Whether a GPU spins in a kernel: full load without memory traffic, and without the power that computing takes."""
    busy, traffic, share = gpu.utilization.get(0), gpu.memory_utilization, _share(gpu)
    if busy < FULL or not (traffic.known or share is not None):
        return False
    return traffic.get(0) <= NO_TRAFFIC and (share or 0.0) < LITTLE_POWER


def some_wait(nodes: tuple[Node, ...]) -> bool:
    """Whether any GPU of these captures spins in a kernel."""
    return any(waits(gpu) for node in nodes for gpu in node.gpus)


def runs_nothing(gpu: Gpu) -> bool:
    """Whether the load is known and next to none."""
    return gpu.utilization.get(100) <= IDLE


def computes(gpu: Gpu) -> bool:
    """Whether a GPU works on memory, which one that waits does not."""
    return gpu.utilization.get(0) > IDLE and gpu.memory_utilization.get(0) > NO_TRAFFIC


def _share(gpu: Gpu) -> float | None:
    power, limit = gpu.power_w.value, gpu.power_limit_w.value
    return power / limit if power is not None and limit else None
