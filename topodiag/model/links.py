"""Links between the parts and path types between devices, in NCCL's terms; what was measured between them, and the
health of the NVLink fabric as its mask says it.

Bandwidths here are what NCCL reckons a link to carry in one direction, in GB/s (1e9 bytes per second): PCIe
lanes x value / 80, NVLink count x rate per link, network speed / 8000 (src/graph/topo.{h,cc} at v2.30). `intended`
is what the parts are built for, `negotiated` what the hardware trained to.
"""

from __future__ import annotations

from enum import Enum

from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import PathType
from topodiag.model.provenance import Fact
from topodiag.words.own_data import own_data


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


FABRIC_MISCONFIGURATIONS: dict[str, str] = own_data("model/fabric_health")["misconfigurations"]
"""Bits 8 to 11 of the health mask; 0 is not supported, 1 none."""

_PROBLEM_SHIFTS = {2: "route recovery in progress", 4: "route unhealthy", 6: "access timeout recovery"}


def fabric_bandwidth(mask: int) -> str | None:
    """`degraded` or `full` by bits 0 and 1 of the fabric health mask; None when it does not say."""
    return {1: "degraded", 2: "full"}.get(mask & 3)


def fabric_problems(mask: int) -> str | None:
    """The health mask's other fields that are set, joined with commas; None for a mask without any data."""
    if mask & 0xFFC == 0:
        return None
    texts = [name for shift, name in _PROBLEM_SHIFTS.items() if mask >> shift & 3 == 1]
    configuration = mask >> 8 & 15
    if configuration > 1:
        texts.append(FABRIC_MISCONFIGURATIONS.get(str(configuration), f"incorrect configuration {configuration}"))
    return ", ".join(texts)


@dataclass(frozen=True, slots=True)
class Affinity:
    """`values[gpu][nic]` in `unit` (`GB/s`, `Gb/s`, `us` or `ns`), all above zero; `gpus` and `nics` as the file names
    them (`GPU0`, `mlx5_0`, or bus ids)."""

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    unit: str = "GB/s"
