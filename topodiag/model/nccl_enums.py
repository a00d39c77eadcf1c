"""NCCL's enumerations: collectives, algorithms, protocols, graphs, patterns, path types, vertices, CPUs.

Members stand in the order of NCCL's numbers (src/include/nccl_common.h, src/include/graph.h, src/graph/topo.h): a text
of a log, a column of a table and a setting mean the same member everywhere. Which version has which algorithm is told
by `nccl_versions.Feature`; the path types of a version are in its `path_types`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum


class Collective(StrEnum):
    """ncclFunc_t: those that the tuning model prices, by the name that the log prints."""

    BROADCAST = "Broadcast"
    REDUCE = "Reduce"
    ALL_GATHER = "AllGather"
    REDUCE_SCATTER = "ReduceScatter"
    ALL_REDUCE = "AllReduce"

    @property
    def tested(self) -> str:
        """nccl-tests' name, without `_perf`: `all_reduce`."""
        return self.name.lower()


class Algorithm(StrEnum):
    """ncclAlgoStr, as the tuning table prints it. The member's name is what a choice prints (ncclAlgoToString)."""

    TREE = "Tree"
    RING = "Ring"
    COLLNET_DIRECT = "CollNetDirect"
    COLLNET_CHAIN = "CollNetChain"
    NVLS = "NVLS"
    NVLS_TREE = "NVLSTree"
    PAT = "PAT"

    @property
    def setting(self) -> str:
        """The user guide's spelling for NCCL_ALGO, which NCCL reads in any case of letters: `CollnetDirect`."""
        return self.replace("CollNet", "Collnet")


class Protocol(StrEnum):
    """ncclProtoStr. The member's name is what a choice prints."""

    LL = "LL"
    LL128 = "LL128"
    SIMPLE = "Simple"


COLLNET = (Algorithm.COLLNET_DIRECT, Algorithm.COLLNET_CHAIN)
NVLS_FAMILY = (Algorithm.NVLS, Algorithm.NVLS_TREE)
SIMPLE_ONLY = (*COLLNET, *NVLS_FAMILY, Algorithm.PAT)
"""NCCL runs these with the protocol Simple alone: the bandwidth of the others is 0 (src/graph/tuning.cc)."""
SHARDED = (Collective.ALL_GATHER, Collective.REDUCE_SCATTER)
_BUFFERS_SENT = {"allreduce": 2, "allgather": 1, "reducescatter": 1, "alltoall": 1}

BY_WEIGHT = (
    Collective.ALL_REDUCE,
    Collective.ALL_GATHER,
    Collective.REDUCE_SCATTER,
    Collective.BROADCAST,
    Collective.REDUCE,
)
"""The collectives, the one that matters most first: the order of reports."""


def busbw_factor(collective: str, ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth as nccl-tests prints them (its src/*.cu, *GetBw), by its name of the
    collective or NCCL's: what of the buffer each rank's link must carry. Sizes are those of its first column: of
    AllGather and ReduceScatter all ranks together."""
    buffers = _BUFFERS_SENT.get(collective.replace("_", "").lower())
    return buffers * max(ranks - 1, 0) / max(ranks, 1) if buffers is not None else 1.0


class _Search(IntEnum):
    """Members whose names are read out in reports."""

    @property
    def words(self) -> str:
        """`ring`, `balanced tree`, `CollNet chain`, `NVLS`."""
        return self.name.lower().replace("_", " ").replace("collnet", "CollNet").replace("nvls", "NVLS")


class Graph(_Search):
    """The channel searches, by the id that NCCL prints (src/init.cc)."""

    RING = 0
    TREE = 1
    COLLNET_CHAIN = 2
    NVLS = 3
    COLLNET_DIRECT = 4


GRAPH_OF: Mapping[str, Graph] = {
    **{Algorithm[graph.name]: graph for graph in Graph}, Algorithm.PAT: Graph.TREE, Algorithm.NVLS_TREE: Graph.NVLS,
}  # fmt: skip
"""The graph whose channels an algorithm runs on (graphs[] in src/init.cc)."""


class Pattern(_Search):
    """NCCL_TOPO_PATTERN_*, which the log prints as a number (src/include/graph.h)."""

    BALANCED_TREE = 1
    SPLIT_TREE = 2
    TREE = 3
    RING = 4
    NVLS = 5
    COLLNET_DIRECT = 6


class PathType(IntEnum):
    """PATH_* (src/graph/topo.h), best first, in the numeric order of the newest versions."""

    LOC = 0
    NVL = 1
    NVB = 2
    C2C = 3
    PIX = 4
    PXB = 5
    P2C = 6
    PXN = 7
    PHB = 8
    SYS = 9
    NET = 10
    DIS = 11


class CpuArch(IntEnum):
    """NCCL_TOPO_CPU_ARCH_* (src/include/graph.h)."""

    X86 = 1
    POWER = 2
    ARM = 3
    MIXED = 4


class CpuVendor(IntEnum):
    """NCCL_TOPO_CPU_VENDOR_* (src/include/graph.h)."""

    INTEL = 1
    AMD = 2
    ZHAOXIN = 3
    MIXED = 4


VERTEX_KINDS = ("GPU", "PCI", "NVS", "CPU", "NIC", "NET", "GIN", "RMA", "DEV", "CXB")
"""Kinds of vertices in the order of their numbers (src/graph/topo.h), which stand in NCCL's messages."""
