"""How long the steps of one rank's transfers waited for what, by the trace of NCCL's example profiler plug-in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import fsum

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin


@dataclass(frozen=True, slots=True)
class StepWaits:
    """One rank of one communicator. `us` by state of a step (SendWait, RecvGpuWait, ...), microseconds together;
    `peers` are the ranks to which it waited to send, by microseconds of SendPeerWait."""

    comm: int
    rank: int
    pid: int
    us: Mapping[str, float]
    peers: Mapping[int, float] = field(default_factory=dict)
    origin: Origin | None = None

    @property
    def total_us(self) -> float:
        return fsum(self.us.values())

    def share(self, state: str) -> float:
        """Part of the waiting that is in this state, 0 to 1."""
        return self.us.get(state, 0.0) / self.total_us if self.total_us > 0 else 0.0
