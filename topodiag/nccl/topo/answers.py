"""What NCCL makes of a topology that was changed, and of a topology file before it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from topodiag.lazy import dataclass
from topodiag.model.finding import Finding
from topodiag.model.provenance import NotObserved
from topodiag.nccl.prediction import Choice, PredictedGraph, Prediction
from topodiag.nccl.topo.changes import Change
from topodiag.nccl.topo.compare import Difference
from topodiag.nccl.topo.repair import Repair
from topodiag.words.units import percent, plural

_WORSE = {64 << 10: 0.1, 1 << 30: 0.01}
"""Bytes at which the file is compared with the present, and from which share on more time is worse. The large one is
bound by bandwidth, which NCCL reckons from the topology. The small one is bound by latency, where NCCL's estimate is a
sum of constants, and only for AllReduce over the same steps: that of Broadcast and Reduce leaves most of them out where
all channels have one order (ncclTopoTuneModel, src/graph/tuning.cc, v2.28)."""
COMPARED = tuple(_WORSE)
"""Bytes to choose for in both predictions."""

_SIZES = {64 << 10: "64 KiB", 1 << 30: "1 GiB"}
_LATENCY_BYTES = min(_SIZES)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What NCCL makes of so many nodes without the file and with it."""

    nodes: int
    before: Prediction
    after: Prediction


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A prediction before and after some changes, with the choice for an all-reduce of `size` bytes."""

    size: int
    changes: tuple[Change, ...]
    before: Prediction
    after: Prediction
    names: Mapping[str, str] = field(default_factory=dict)
    """The devices behind NCCL's labels."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Two machines: their differences, what NCCL finds on either, and what could not be compared."""

    differences: tuple[Difference, ...]
    predictions: tuple[Prediction, Prediction]
    not_compared: tuple[NotObserved, ...] = ()


@dataclass(frozen=True, slots=True)
class TopoFile:
    """A topology file ready to be written: its text, what was done for it, and what NCCL makes of it."""

    text: str
    version: str
    done: tuple[str, ...]
    repairs: tuple[Repair, ...]
    comparisons: tuple[Comparison, ...]
    worse: tuple[str, ...]
    """In what the file would make things worse than they are; () is the only state in which it is written unforced."""
    left: tuple[Finding, ...] = ()
    """What the checks of topology files still find in it."""
    flat: bool = False
    """Of a guest whose PCI tree is its hypervisor's invention, and nothing completed it."""
    library: str = "NCCL"

    @property
    def changes(self) -> bool:
        """Whether NCCL decides anything otherwise with the file than without it."""
        return any(differs(comparison) for comparison in self.comparisons)


# --- whether a file makes things worse than they are: the decisions without it against those with it ---------------


def differs(compared: Comparison) -> bool:
    """Whether NCCL decides anything otherwise with the file: what it finds, or what it takes for a size."""
    before, after = compared.before, compared.after
    return (
        before.accepted != after.accepted
        or before.ranks != after.ranks
        or before.choices != after.choices
        or [_summary(graph) for graph in before.graphs] != [_summary(graph) for graph in after.graphs]
    )


def _summary(graph: PredictedGraph) -> tuple[object, ...]:
    types = (graph.type_intra, graph.type_inter)
    return (graph.pattern, graph.cross_nic, graph.channels, graph.bw_intra, graph.bw_inter, types)


def worse(compared: Comparison) -> Iterator[str]:
    """In what the file makes things worse, one sentence each; nothing where NCCL refuses the machine as it is."""
    before, after = compared.before, compared.after
    if not before.accepted:
        return
    where = f" on {plural(compared.nodes, 'node')}"
    if after.ranks < before.ranks:
        yield f"{before.ranks - after.ranks} fewer GPUs{where}"
    for old in before.choices:
        if old.bytes == _LATENCY_BYTES and old.collective != "AllReduce":
            continue
        new = next((c for c in after.choices if (c.collective, c.bytes) == (old.collective, old.bytes)), None)
        if new is not None and new.time_us > old.time_us * (1 + _WORSE[old.bytes]):
            yield f"{old.collective} of {_SIZES[old.bytes]} takes {_slower(old, new)} longer{where}"


def _slower(old: Choice, new: Choice) -> str:
    return percent(new.time_us / old.time_us - 1)
