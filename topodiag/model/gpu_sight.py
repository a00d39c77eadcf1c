"""Whether the GPUs of a node were seen: nothing is said to be well of a machine whose GPUs nobody read."""

from __future__ import annotations

from enum import Enum

from topodiag.lazy import dataclass
from topodiag.model.devices import Gpu
from topodiag.model.maker import dialect_of, makers_of
from topodiag.model.node import Node
from topodiag.model.provenance import Topic
from topodiag.words.units import plural

_REPORT = {"", "nvidia", "amdgpu"}
"""Drivers of GPUs whose tools report on them; "" for one that is not known."""


class Sight(Enum):
    """What is known of a node's GPUs."""

    SEEN = "seen"
    NONE = "none"
    """There is no NVIDIA GPU, and the evidence says so."""
    HIDDEN = "hidden"
    """There are GPUs on the bus, or a program lists them, and the driver did not speak of them."""
    UNREAD = "unread"
    """The evidence does not say: a command hung, or nothing about GPUs was given."""


@dataclass(frozen=True, slots=True)
class GpuSight:
    """The answer and the sentence that says how it is known."""

    sight: Sight
    why: str = ""


def gpu_sight(node: Node) -> GpuSight:
    """Whether the GPUs of a node were seen. Anything but `SEEN` must never read as healthy."""
    spoke = Topic.GPUS in node.topics or _told_by_file(node)
    if node.gpus and (spoke or any(_is_told_of(gpu) for gpu in node.gpus)):
        return GpuSight(Sight.SEEN)
    on_bus = sum(dev.is_accelerator for dev in node.pci.values())
    reason = _driver_silence(node)
    if on_bus or node.gpus:
        count = plural(on_bus or len(node.gpus), f"{dialect_of(node).maker.value} GPU")
        seen = "on the PCI bus" if on_bus else "that a test of copies measured" if node.copies else "named"
        why = f"{count} {seen}, but the driver did not report on them"
        return GpuSight(Sight.HIDDEN, f"{why}: {reason}" if reason else why)
    if node.pci:
        return GpuSight(Sight.NONE, f"{plural(len(node.pci), 'PCI function')} seen, none is one")
    if spoke:
        return GpuSight(Sight.NONE, "the driver is up and counts none")
    makers = " and ".join(sorted(maker.value for maker in makers_of(node)))
    named = f"lines speak of GPUs of {makers}, and no tool says how they are" if makers else ""
    return GpuSight(Sight.UNREAD, reason or named or "nothing about GPUs was in the evidence")


def _is_told_of(gpu: Gpu) -> bool:
    """Whether a tool of the driver tells how a GPU is, even one that does not name all GPUs."""
    return gpu.throttle.known or gpu.sm_clock_mhz.known or gpu.utilization.known or bool(gpu.counters)


def _told_by_file(node: Node) -> bool:
    """Whether a topology file was given by itself: NCCL's dump or its writer speaks of the GPUs."""
    file = node.nccl_file.name if node.nccl_file is not None else None
    return any(gpu.numa.origin is not None and gpu.numa.origin.source == file for gpu in node.gpus)


def _driver_silence(node: Node) -> str:
    if node.os.nvml_error.value:
        return f"NVML said {node.os.nvml_error.value}"
    gaps = [gap for gap in node.not_observed if Topic.GPUS in gap.of]
    silent = min(gaps, key=lambda gap: Topic.DRIVER not in gap.of, default=None)
    if silent is not None:
        return f"{silent.what}: {silent.why}"
    drivers = {device.driver.get("") for device in node.pci.values() if device.is_accelerator} - _REPORT
    return f"the kernel's driver in use is {' and '.join(sorted(drivers))}" if drivers else ""
