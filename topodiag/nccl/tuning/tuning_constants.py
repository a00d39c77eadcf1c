"""The measured constants of NCCL's tuning model, by version.

Source: src/graph/tuning.cc at the last patch of every known version (from 2.28 on they are
`ncclTunerConstantsDefaults`, which a tuner plugin may change).
Latencies in us, as LL, LL128, Simple; bandwidths in GB/s, as one node, two nodes, more nodes.

Earlier patches differ: 2.18.1 (Tree Simple latencies as 2.19's, one LL128 cap for rings and trees), 2.27.3 (LL128 up to
P2C instead of PXN on Hopper), 2.28.3 and 2.28.7 (NVLSTree 14 us over the network, and 43.1 on Blackwell above two
nodes; 2.28.3 also Ring LL128 on Blackwell as 2.27), 2.29.2 and 2.29.3 (Ring LL128 on Blackwell 34.5, 34.6, 34.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import Algorithm, Collective, Protocol
from topodiag.model.nccl_versions import ByVersion

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
"""By class of GPU (VOLTA first), then one, two, more nodes. Before 2.25 there is no Blackwell row: see `Constants`."""

_ZERO: Row = (0, 0, 0)

_BASE: ByVersion[Latencies] = ByVersion(
    {
        18: {
            "Tree": (6.8, 14.0, 0),
            "Ring": (6.6, 14.0, 8.4),
            "CollNetDirect": (6.8, 14.0, 0),
            "CollNetChain": (6.8, 14.0, 0),
            "NVLS": (0, 0, 23.0),
            "NVLSTree": (0, 0, 23.0),
        },
        19: {"Tree": (6.8, 14.0, 0), "Ring": (6.6, 14.0, 8.4)},
        # PAT's 8 us stand in its formula up to 2.27; only AllGather and ReduceScatter use it, so it is the same here.
        23: {"Tree": (6.8, 14.0, 8.4), "Ring": (6.6, 14.0, 8.4), "PAT": (8.0, 8.0, 8.0)},
    }
)

_RING = {NVLINK: (0.6, 1.9, 3.4), PCI: (1.0, 2.5, 5.7), NET: (2.7, 4.0, 14.0)}


def _links(simple: Mapping[str, Row]) -> Mapping[str, Latencies]:
    """Latencies per link; `simple` are Simple's over NVLink, PCI and network. Others never changed since 2.18."""
    tree = {NVLINK: (0.6, 1.25), PCI: (1.0, 1.9), NET: (5.0, 8.5)}
    links: dict[str, Latencies] = {}
    for i, link in enumerate((NVLINK, PCI, NET)):
        rows: dict[str, Row] = {algorithm: (0, 0, values[i]) for algorithm, values in simple.items()}
        links[link] = rows | {"Tree": (*tree[link], simple["Tree"][i]), "Ring": _RING[link]}
    return links


_COLLNET_19: Mapping[str, Row] = {"CollNetDirect": (3.7, 3.7, 31), "CollNetChain": (2.8, 2.8, 30)}
_NVLS_21: Mapping[str, Row] = {"NVLS": (25, 0, 18), "NVLSTree": (25, 0, 14)}

_LINKS: ByVersion[Mapping[str, Latencies]] = ByVersion(
    {
        18: _links(
            {
                "Tree": (4, 6, 14),
                "CollNetDirect": (8, 8, 10.7),
                "CollNetChain": (4.75, 8, 14),
                "NVLS": (0, 0, 18),
                "NVLSTree": (0, 0, 19),
            }
        ),
        19: _links({"Tree": (28, 28, 28), "NVLS": (23, 0, 18), "NVLSTree": (23, 0, 14), **_COLLNET_19}),
        21: _links({"Tree": (28, 28, 28), **_NVLS_21, **_COLLNET_19}),
        # PAT has no row of its own up to 2.27: its latencies are zero there.
        23: _links({"Tree": (4, 4, 14), **_NVLS_21, **_COLLNET_19}),
        28: _links(
            {"Tree": (4, 4, 14), "NVLS": (25, 0, 18), "NVLSTree": (25, 0, 20.9), "PAT": (4, 4, 14), **_COLLNET_19}
        ),
    }
)

# Bandwidth of the LL protocol. Rows by class of GPU on one node; by CPU on more (AMPERE's row is AMD's).
_LL: ByVersion[Caps] = ByVersion(
    {
        18: ((39.0, 39.0, 20.4), (87.7, 22.5, 19.0), (87.7, 22.5, 19.0)),
        21: ((39.0, 39.0, 20.4), (87.7, 22.5, 19.0), (141.0, 45.0, 35.0)),
        25: ((39.0, 39.0, 20.4), (87.7, 22.5, 19.0), (141.0, 45.0, 35.0), (282.0, 90.0, 70.0)),
        32: ((39.0, 39.0, 20.4), (87.7, 22.5, 19.0), (141.0, 45.0, 35.0), (282.4, 90.0, 70.0)),
    }
)

# The rest are per channel.
_OLD_LL128: Row = (20.0, 20.0, 20.0)
_HOPPER_RING_LL128: Row = (36.7, 36.7, 36.7)
_RING_LL128: ByVersion[Caps] = ByVersion(
    {
        18: (_OLD_LL128, _OLD_LL128, _HOPPER_RING_LL128),
        25: (_OLD_LL128, _OLD_LL128, _HOPPER_RING_LL128, (73.4, 73.4, 73.4)),
        28: (_OLD_LL128, _OLD_LL128, _HOPPER_RING_LL128, (73.4, 34.6, 73.4)),
        29: (_OLD_LL128, _OLD_LL128, _HOPPER_RING_LL128, (40.0, 40.0, 40.0)),
    }
)

_TREE_LL128: ByVersion[Caps] = ByVersion(
    {
        18: (_OLD_LL128, _OLD_LL128, (36.7, 36.7, 29.0)),
        25: (_OLD_LL128, _OLD_LL128, (36.7, 36.7, 29.0), (73.4, 73.4, 58.0)),
        28: (_OLD_LL128, _OLD_LL128, (36.7, 36.7, 29.0), (55.6, 31.67, 20.0)),
        32: (_OLD_LL128, _OLD_LL128, (36.7, 36.7, 29.0), (55.6, 36.7, 20.0)),
    }
)

_VOLTA_TREE: Row = (26.5, 18.5, 10.0)
_AMPERE_TREE: Row = (24.0, 23.6, 17.8)
_TREE: ByVersion[Caps] = ByVersion(
    {
        18: (_VOLTA_TREE, _AMPERE_TREE, (38.7, 41.4, 36.0)),
        25: (_VOLTA_TREE, _AMPERE_TREE, (38.7, 41.4, 36.0), (77.4, 82.8, 72.0)),
        28: (_VOLTA_TREE, _AMPERE_TREE, (38.7, 41.4, 36.0), (70.0, 42.8, 24.0)),
    }
)

_NVLS_TREE: ByVersion[Caps] = ByVersion(
    {
        18: (_ZERO,),  # no cap before 2.28
        28: (_VOLTA_TREE, _AMPERE_TREE, (0.0, 57.7, 45.5), (0.0, 96.0, 43.8)),
        30: (_VOLTA_TREE, _AMPERE_TREE, (0.0, 57.7, 45.5), (0.0, 96.0, 80.0)),
    }
)

NVLS_EFFICIENCY = (0.0, 0.0, 0.85, 0.74)
"""What of its link an NVLS channel carries, by class of GPU; since 2.28."""

TREE_CORRECTION: Mapping[str, tuple[float, ...]] = {
    "LL": (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1, 1),
    "LL128": (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1),
    "Simple": (0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7,
               0.8, 0.9, 0.9, 0.9),
}  # fmt: skip
"""What of the modelled bandwidth a tree reaches: 64 B, 128 B, ... The last entry is NVLSTree's only (2.29+)."""

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
    base: Latencies
    links: Mapping[str, Latencies]
    ll: Caps
    ring_ll128: Caps
    tree_ll128: Caps
    tree: Caps
    nvls_tree: Caps

    def base_us(self, algorithm: str, protocol: str) -> float:
        return self.base.get(algorithm, _ZERO)[PROTOCOLS.index(protocol)]

    def link_us(self, link: str, algorithm: str, protocol: str) -> float:
        return self.links[link].get(algorithm, _ZERO)[PROTOCOLS.index(protocol)]


@cache
def constants(minor: int) -> Constants:
    """The constants of NCCL 2.`minor`."""
    return Constants(
        _BASE[minor],
        _LINKS[minor],
        _LL[minor],
        _RING_LL128[minor],
        _TREE_LL128[minor],
        _TREE[minor],
        _NVLS_TREE[minor],
    )


def cap(caps: Caps, row: int, nodes: int) -> float:
    """A GPU newer than the version's newest row counts as that row's."""
    return caps[min(row, len(caps) - 1)][min(nodes, 3) - 1]


def gpu_class(compute_capability: int) -> int:
    """The row of a table for a compute capability written as NCCL does: 90 for 9.0 (since 2.17: greater or equal)."""
    return sum(compute_capability >= least for least in (80, 90, 100))
