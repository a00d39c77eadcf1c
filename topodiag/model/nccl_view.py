"""NCCL's own view of a node, as its log prints it: the system, the paths, the graphs found and the tuning table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import PathType
from topodiag.model.provenance import Origin


@dataclass(frozen=True, slots=True)
class SystemDevice:
    """One vertex. `kind` is GPU, NIC, NET, CPU, PCI, NVS, DEV, GIN, RMA, CXB; `id` as printed, in lower case and with
    its system (`0-1b000`), so that all versions agree; `name` is `GPU/0-1b000`.

    `rank` is the communicator's rank of a GPU, -1 for others. `speed_gbs`, `port` and `guid` are a NET's;
    `numbers` the figures in parentheses of a CPU (arch, vendor, model). `parent` names the vertex it hangs below in
    the printed tree, "" for a CPU.
    """

    kind: str
    id: str
    parent: str = ""
    rank: int = -1
    speed_gbs: float | None = None
    port: int | None = None
    guid: str = ""
    numbers: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.id}"


XGMI_LINK = "XGMI"
GPU_LINKS = ("NVL", XGMI_LINK)
"""Kinds of links between GPUs, as NCCL and as RCCL print them."""


@dataclass(frozen=True, slots=True)
class SystemLink:
    """A link as printed at `a`: kind NVL, XGMI, PCI, SYS, NET, C2C or LOC; GB/s of all its parallel lanes or links."""

    a: str
    b: str
    kind: str
    gbs: float


@dataclass(frozen=True, slots=True)
class NcclSystem:
    """`=== System : maxBw .. totalBw .. ===` and the path table below it. GB/s; None where that version has no figure.

    `paths[(from, to)]` holds what was printed; lines are cut at 1023 characters, so that a missing pair says nothing.
    `whole`: it was printed from its head to its closing line; of another one, devices at a cut may lack rows.
    """

    max_gbs: float | None = None
    total_gbs: float | None = None
    devices: Mapping[str, SystemDevice] = field(default_factory=dict)
    links: tuple[SystemLink, ...] = ()
    paths: Mapping[tuple[str, str], PathType] = field(default_factory=dict)
    origin: Origin | None = None
    whole: bool = True

    def of_kind(self, kind: str) -> tuple[SystemDevice, ...]:
        return tuple(device for device in self.devices.values() if device.kind == kind)


@dataclass(frozen=True, slots=True)
class Graph:
    """One `Pattern` line and the channels below it. GB/s per channel. Patterns: 1 balanced tree, 2 split tree, 3 tree,
    4 ring, 5 NVLS, 6 CollNet direct. `orders` are the vertices of each channel as printed, names as in NcclSystem."""

    pattern: int
    cross_nic: int
    channels: int
    bw_intra: float
    bw_inter: float
    type_intra: str
    type_inter: str
    same_channels: bool
    orders: tuple[tuple[str, ...], ...] = ()
    origin: Origin | None = None


Tuning = Mapping[tuple[str, str, str], tuple[float, float]]
"""(collective, algorithm, protocol) to (latency in us, GB/s); GB/s of 0 is a combination that NCCL does not use."""
