"""The measured constants of NCCL's tuning model, by version: those of constants.toml, and what stands in its formulas.

Source: src/graph/tuning.cc at the last patch of every known version.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from msgspec import convert

from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import Algorithm, Collective, Protocol
from topodiag.model.nccl_versions import ByVersion, Feature, has
from topodiag.words.own_data import own_data

COLLECTIVES = tuple(collective.value for collective in Collective)
ALGORITHMS = tuple(algorithm.value for algorithm in Algorithm)
PROTOCOLS = tuple(protocol.value for protocol in Protocol)
"""In NCCL's order: of two equally fast ones NCCL takes the first."""

VOLTA, AMPERE, HOPPER, BLACKWELL = range(4)
NVLINK, PCI, NET = "NVLink", "PCI", "network"

Row = tuple[float, float, float]
Latencies = Mapping[str, Row]
"""By algorithm, then LL, LL128, Simple."""
Caps = tuple[Row, ...]
"""By class of GPU (VOLTA first), then one, two, more nodes. Before 2.25 there is no Blackwell row: see `cap`."""

_ZERO: Row = (0, 0, 0)

NVLS_EFFICIENCY = (0.0, 0.0, 0.85, 0.74)
"""What of its link an NVLS channel carries, by class of GPU; since 2.28."""

PAT_SHARE = ByVersion({18: 0.85, 24: 0.75})
"""What of its bus bandwidth PAT reaches."""
COLLNET_DIRECT_GPU_US = ByVersion({18: 0.5, 19: 0.4})
"""What each GPU of a node adds to CollNetDirect's latency, each way, us."""

TREE_CORRECTION_SIZES = 23
NVLS_TREE_CORRECTION_SIZES = 24
NVLS_TREE_CORRECTION_ARM = ByVersion({18: 0, 31: 23, 32: 20})
"""As many sizes for two nodes with Arm CPUs; beyond two nodes all of them."""
NVLS_TREE_ARM_GPUS, NVLS_TREE_ARM_NET_GBS = 4, 96.0
"""What a node with Arm CPUs must have for that: GPUs, and the least bandwidth to a NIC."""

RING_PLATEAU_BYTES = 64
"""Bytes per channel and rank from which on a Simple ring's AllReduce between nodes starts later, by these factors."""
RING_PLATEAU_OLD, RING_PLATEAU = 1.9, 1.4
"""Below compute capability 8.0; from there on."""
RING_PLATEAU_DELTA = 0.1
"""What the full factor lacks or loses at most, where it goes by the steps of the ring and by the bytes."""
RING_PLATEAU_FADES = 256 << 10
"""Bytes per channel and rank from which on, and over which, it loses that."""


@dataclass(frozen=True, slots=True)
class Constants:
    """What constants.toml holds for one version."""

    base: Latencies
    links: Mapping[str, Latencies]
    ll: Caps
    ring_ll128: Caps
    tree_ll128: Caps
    tree: Caps
    nvls_tree: Caps
    tree_correction: Mapping[str, tuple[float, ...]]
    """What of the modelled bandwidth a tree reaches, by protocol: 64 B, 128 B, ..."""

    def base_us(self, algorithm: str, protocol: str) -> float:
        return self.base.get(algorithm, _ZERO)[PROTOCOLS.index(protocol)]

    def link_us(self, link: str, algorithm: str, protocol: str) -> float:
        return self.links[link].get(algorithm, _ZERO)[PROTOCOLS.index(protocol)]


@cache
def constants(minor: int) -> Constants:
    """The constants of NCCL 2.`minor`."""
    tables = own_data("nccl/tuning/constants")
    return convert({name: ByVersion(table)[minor] for name, table in tables.items()}, Constants)


def algorithms(minor: int) -> tuple[str, ...]:
    """The columns of the version's table."""
    return ALGORITHMS if has(minor, Feature.PAT) else ALGORITHMS[:-1]


def cap(caps: Caps, row: int, nodes: int) -> float:
    """A GPU newer than the version's newest row counts as that row's."""
    return caps[min(row, len(caps) - 1)][min(nodes, 3) - 1]


def gpu_class(compute_capability: int) -> int:
    """The row of a table for a compute capability written as NCCL does: 90 for 9.0 (since 2.17: greater or equal)."""
    return sum(compute_capability >= least for least in (80, 90, 100))
