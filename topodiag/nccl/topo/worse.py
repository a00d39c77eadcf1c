"""Whether a topology file makes things worse than they are: NCCL's decisions without the file against those with it."""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.lazy import dataclass
from topodiag.nccl.prediction import Choice, PredictedGraph, Prediction
from topodiag.words.fold import plural
from topodiag.words.units import percent

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
