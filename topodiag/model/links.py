"""Links between the parts, and path types between devices, in NCCL's terms.

Bandwidths here are what NCCL reckons a link to carry in one direction, in GB/s (1e9 bytes per second): PCIe
lanes x value / 80, NVLink count x rate per link, network speed / 8000 (src/graph/topo.{h,cc} at v2.30). `intended`
is what the parts are built for, `negotiated` what the hardware trained to.
"""

from __future__ import annotations

from enum import Enum

from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import PathType
from topodiag.model.provenance import Fact


class LinkKind(Enum):
    """What a link is made of."""

    PCIE = "pcie"
    NVLINK = "nvlink"
    C2C = "c2c"
    SMP = "smp"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Link:
    """A bidirectional link between two vertices of the node's graph.

    Vertices are named `gpu:0`, `pci:0000:1b:00.0`, `cpu:0` (a NUMA node), `nvs:0`, `nic:mlx5_0`, `port:mlx5_0/1`.
    Bandwidths in GB/s and latency in microseconds, one direction; unknown where the evidence is silent.
    """

    a: str
    b: str
    kind: LinkKind
    count: int = 1
    intended_gbs: Fact[float] = Fact()
    negotiated_gbs: Fact[float] = Fact()
    latency_us: Fact[float] = Fact()
    label: str = ""
    """How a person would call its rate: `Gen5 x16`, `18 x NVLink4`, `400 Gb/s`."""


@dataclass(frozen=True, slots=True)
class Path:
    """The way between two devices as NCCL would take it: type, vertices, and the narrowest link on it."""

    type: PathType
    vertices: tuple[str, ...] = ()
    intended_gbs: float | None = None
    negotiated_gbs: float | None = None
