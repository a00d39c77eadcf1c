"""What the kernel log says of GPUs, folded by GPU and Xid. The checks of the GPU family read it; it judges nothing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable

from topodiag.hardware.xids import Xid, xid
from topodiag.lazy import dataclass
from topodiag.model.clock_text import EPOCH_S, stamp
from topodiag.model.devices import NVIDIA, Gpu, PciKind
from topodiag.model.events import Event, Trust
from topodiag.model.node import Node
from topodiag.model.provenance import Topic
from topodiag.words.units import in_s, plural

NO_LOG = "a whole kernel log is not in the evidence"
EXCERPT = "of the kernel log some lines are in the evidence, and the rest may hold what they do not"
OF_GPUS = frozenset({"xid", "sxid", "gpu-lost", "gpu-init", "gpu-reset", "gsp", "amdgpu"})
"""Kinds of events that show that there is a GPU."""
MASKED = "a GPU (bus id not reported)"


@dataclass(frozen=True, slots=True)
class XidGroup:
    """All lines of one Xid on one GPU, in the order of the log. `entry` is None for a number nobody documents."""

    code: int
    entry: Xid | None
    label: str
    events: tuple[Event, ...]


def log_was_read(node: Node) -> bool:
    """Whether the kernel log is there as a whole: what it does not hold did not happen, as far as it goes back."""
    return Topic.KERNEL_LOG in node.topics


def gpus_were_logged(node: Node) -> bool:
    """Whether a whole kernel log is there of a node with a driver of GPUs at work: of another it clears no GPU, nor
    does one that ends where the driver begins."""
    at_work = bool(node.makers) and not node.driver_only_loaded
    return log_was_read(node) and (Topic.GPUS in node.topics or at_work)


def is_start_after(event: Event, trouble: Event) -> bool:
    """Whether by a line below another the driver took a GPU: one without a date may be older than one that has one."""
    return event.kind == "gpu-up" and bool(event.date) == bool(trouble.date)


def lasted_s(events: Iterable[Event]) -> float:
    """Seconds from the first to the last of these messages; 0 where times are missing or of two clocks."""
    times = [math.nan if event.time_s is None else event.time_s for event in events]
    lasted = max(times) - min(times) if times else 0.0
    return lasted if lasted < EPOCH_S else 0.0


def no_log(node: Node) -> str:
    """Why the kernel log clears nothing: it shows no driver of GPUs, or is not there, or a piece of it is."""
    if log_was_read(node):
        return "the kernel log shows no driver of GPUs at work"
    return EXCERPT if any(event.trust is Trust.PROGRAM for event in node.events) else NO_LOG


def no_gpu(node: Node) -> str:
    """Why there is no GPU to judge: the bus or the driver was seen and shows none. Empty where there may be one."""
    if node.gpus or any(event.kind in OF_GPUS for event in node.events):
        return ""
    if any(function.kind is PciKind.GPU and function.vendor.get(NVIDIA) == NVIDIA for function in node.pci.values()):
        return ""
    return "no NVIDIA GPU in this node" if node.pci and Topic.PCI in node.topics else ""


def gpu_at(node: Node, bus_id: str | None) -> Gpu | None:
    return next((gpu for gpu in node.gpus if bus_id is not None and gpu.bus_id == bus_id), None)


def label_at(node: Node, bus_id: str | None) -> str:
    """The GPU's label where the evidence numbers it, else its bus id."""
    gpu = gpu_at(node, bus_id)
    return gpu.label if gpu is not None else bus_id or MASKED


def named(node: Node, label: str) -> str:
    """A GPU as messages begin with it: `GPU4 (0000:9d:00.0)`, `The GPU at 0000:9d:00.0`."""
    gpu = next((gpu for gpu in node.gpus if gpu.label == label), None)
    if gpu is not None:
        return f"{label} ({gpu.bus_id})" if gpu.bus_id else label
    return label.replace("a GPU", "A GPU") if label == MASKED else f"The GPU at {label}"


def with_bus(node: Node, label: str, fix: Iterable[str]) -> tuple[str, ...]:
    """Commands with the bus id of the GPU, where it is known."""
    own = next((gpu for gpu in node.gpus if gpu.label == label), None)
    bus_id = own.bus_id if own is not None else label if ":" in label else None
    return tuple(line.replace("BUS_ID", bus_id) if bus_id else line for line in fix)


def where_gpus(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels as a finding's place holds them."""
    return tuple(label for label in dict.fromkeys(labels) if label != MASKED)


def xid_groups(node: Node, families: Collection[str] | None = None) -> tuple[XidGroup, ...]:
    """The Xids of the node by GPU and number, in the order in which they first came; None takes every family."""
    events: dict[tuple[str, int], list[Event]] = defaultdict(list)
    for event in node.events:
        if event.kind == "xid" and event.code is not None:
            number = event.fields.get("gpu") if event.bus_id is None else None
            events[label_at(node, event.bus_id) if number is None else f"GPU{number}", event.code].append(event)
    groups = (XidGroup(code, xid(code), label, tuple(own)) for (label, code), own in events.items())
    return tuple(group for group in groups if families is None or (group.entry and group.entry.family in families))


def answers(gpu: Gpu) -> bool:
    """Whether the driver read something of this GPU that only an answering one gives."""
    live = (gpu.pstate, gpu.throttle, gpu.utilization, gpu.sm_clock_mhz, gpu.mig, gpu.compute_mode)
    return not gpu.lost.known and (any(fact.known for fact in live) or any(link.state.known for link in gpu.nvlinks))


def when(event: Event) -> str:
    """The time of a line, in words; empty where it has none."""
    if event.time_s is None or event.date:
        return event.date
    return stamp(event.time_s) if event.time_s >= EPOCH_S else f"{in_s(event.time_s)} after boot"


def times(events: Collection[Event]) -> str:
    """How often and when: ` at 14:02:11`, ` 5 times, first at ...`."""
    first = next((text for event in events if (text := when(event))), "")
    often = f" {plural(len(events), 'time')}" if len(events) > 1 else ""
    at = (", first at " if often else " at ") + first if first else ""
    if events and not any(event.trust is Trust.PROGRAM for event in events):
        at = ", time not reported"
    return often + at
