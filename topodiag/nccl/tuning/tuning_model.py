"""A communicator under a version's constants: what every cell of the tuning table needs, and how a figure is derived.

Bandwidths in GB/s, latencies in us. Source: src/graph/tuning.cc, since 2.31 src/tuning/tuning_general.cc.
"""

from __future__ import annotations

from dataclasses import field

from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import GRAPH_OF, SHARDED, Algorithm, Collective, CpuArch, CpuVendor, Graph, Protocol
from topodiag.model.nccl_versions import Feature, has, path_types
from topodiag.nccl.graph.graph import CommShape, SearchGraph
from topodiag.nccl.prediction import Term
from topodiag.nccl.settings import Settings
from topodiag.nccl.tuning import tuning_constants as tc
from topodiag.words.units import in_gbs, in_us

_NONE = SearchGraph(-1, 0, same_channels=0)
"""A graph that was not searched: zero channels of type LOC, as NCCL's memory has it."""


@dataclass(frozen=True, slots=True)
class Cell:
    collective: str
    algorithm: str
    protocol: str


@dataclass(slots=True)
class Steps:
    """The derivation of one figure, in order."""

    terms: list[Term] = field(default_factory=list)

    def gbs(self, name: str, value: float, formula: str) -> float:
        self.terms.append(Term(name, in_gbs(value), formula))
        return value

    def us(self, name: str, value: float, formula: str) -> float:
        self.terms.append(Term(name, in_us(value), formula))
        return value


class Model:
    """A communicator under a version's constants, with the quantities that every cell needs."""

    def __init__(self, shape: CommShape, settings: Settings) -> None:
        self.shape = shape
        self.settings = settings
        self.minor = shape.minor
        self.constants = tc.constants(shape.minor)
        self.n = shape.nranks
        self.nodes = max(shape.nodes, 1)
        self.ppn = self.n / self.nodes
        self.local = self.n // self.nodes
        self.gpu = tc.gpu_class(shape.min_sm)
        self.types = path_types(shape.minor)

    def has(self, feature: Feature) -> bool:
        """Whether the communicator's version of NCCL has a feature."""
        return has(self.minor, feature)

    def graph(self, algorithm: str) -> SearchGraph:
        """The graph whose channels an algorithm runs on (graphs[] in src/init.cc)."""
        number = GRAPH_OF[algorithm]
        if number is Graph.COLLNET_DIRECT and not self.has(Feature.COLLNET_DIRECT_SEARCH):
            number = Graph.COLLNET_CHAIN
        return self.shape.graphs.get(number, _NONE)

    def cap(self, caps: tc.Caps) -> float:
        return tc.cap(caps, self.gpu, self.nodes)

    @property
    def ll_cap(self) -> float:
        """On one node the GPU counts, between nodes the CPU."""
        row = self.gpu
        if self.nodes > 1:
            slow = (CpuVendor.AMD, CpuVendor.MIXED) if self.has(Feature.MIXED_CPUS_LL) else (CpuVendor.AMD,)
            row = tc.AMPERE if self.shape.cpu_vendor in slow else tc.VOLTA
        return tc.cap(self.constants.ll, row, self.nodes)

    def local_link(self, algorithm: str) -> str:
        return tc.NVLINK if self.graph(algorithm).type_intra == self.types.nvl else tc.PCI

    def link_us(self, link: str, algorithm: str, protocol: str) -> float:
        # Trees over PCI are favoured on Power systems.
        over_pci = (link, algorithm, protocol) == (tc.PCI, Algorithm.TREE, Protocol.SIMPLE)
        if over_pci and self.shape.cpu_arch == CpuArch.POWER and self.has(Feature.POWER_FAVOURS_TREES):
            algorithm = Algorithm.RING
        return self.constants.link_us(link, algorithm, protocol)

    def steps_of(self, collective: str) -> int:
        """Steps of a ring."""
        if collective == Collective.ALL_REDUCE:
            return 2 * (self.n - 1)
        return self.n - 1 if collective in SHARDED else self.n

    @property
    def net_overhead_us(self) -> float:
        given = self.settings.number("NCCL_NET_OVERHEAD")
        if given is not None and given != -2:  # NCCL's word for "not set"
            return given / 1000
        return 2.0 if (self.shape.cpu_arch, self.shape.cpu_vendor) == (CpuArch.X86, CpuVendor.AMD) else 1.0
