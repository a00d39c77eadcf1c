"""The data that NCCL's decisions work on: the tree of elements, the system graph with its paths, and the
record of a channel search.

Mutable and built for speed: the search subtracts and adds bandwidth on the links some hundred thousand times. Made by
`system` and `paths`, read by `search`; nothing outside this package keeps one. Bandwidths in GB/s, one direction.
Kinds, and the meaning of every field, are those of src/graph/topo.h and src/include/graph.h (v2.28).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, fields
from operator import attrgetter

from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import Pattern
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import Feature, has
from topodiag.nccl.numbers import c_int

KINDS = ("GPU", "PCI", "NVS", "CPU", "NIC", "NET", "DEV", "GIN", "RMA", "CXB")


class RejectedError(ValueError):
    """NCCL would not start on this topology: its own words, and the line of the file where that is known."""

    def __init__(self, words: str, line: int = 0) -> None:
        super().__init__(words)
        self.words = words
        self.line = line


OWN_RAIL = 1 << 16
"""In rails and planes of NETs: by NCCL's own numbers, adapter and port (src/graph/topo.cc of 2.32)."""


@dataclass(slots=True, eq=False)
class Link:
    """One direction of a link, from the vertex that lists it to `remote`. `type` is a path type's number."""

    type: int
    remote: Vertex
    bw: float


@dataclass(slots=True, eq=False)
class Path:
    """The way from a vertex to a base: the links from the vertex on, hops, narrowest bandwidth and type."""

    links: list[Link]
    count: int
    bw: float
    type: int


@dataclass(slots=True, eq=False)
class Vertex:
    """One vertex. `index` is its position in the list of its kind. Only the fields of its kind are meant.

    `paths[kind][i]` is the path to the i-th vertex of a kind; a kind that was never reached has no entry.
    """

    kind: str
    id: int
    index: int = 0
    # not shown: the graph goes in circles
    links: list[Link] = field(default_factory=list, repr=False)
    paths: dict[str, list[Path]] = field(default_factory=dict, repr=False)
    # GPU, and DEV where there are any
    dev: int = -1
    rank: int = -1
    sm: int = 0
    gcn: str = ""
    """AMD's architecture, `gfx942`; compute units are in `sm` of a file of RCCL's alone."""
    cu: int = 0
    gdr: int = 0
    parent: Vertex | None = None
    busid: str = ""
    # NET
    asic: int = 0
    port: int = 0
    bw: float = 0.0
    latency: float = 0.0
    coll: int = 0
    name: str = ""
    local_gpu: int = -1
    """Index of the GPU nearest to a NET, -1 for none; found with the paths."""
    rail: int = -1
    plane: int = -1
    """-1 where nobody gives it one; OWN_RAIL and a number where NCCL does."""
    # CPU
    arch: int = 0
    vendor: int = 0
    model: int = 0
    # PCI: vendor, device and subsystem; NET: vendor and device, 16 bits each
    device: int = 0

    @property
    def system_id(self) -> int:
        """Which host of a multi-host (MNNVL) tree it is on."""
        return self.id >> 56

    @property
    def label(self) -> str:
        """`GPU/0-1b000`, as NCCL prints it since 2.21."""
        return f"{self.kind}/{self.id >> 56:x}-{self.id & (1 << 56) - 1:x}"


@dataclass(slots=True, eq=False)
class System:
    """The system graph of one communicator as one of its ranks sees it: its NVLink and P2P domain, and all NICs.

    `nranks` is the size of the communicator; `inter` whether it has ranks outside; `max_bw` and `total_bw` the
    figures of the `=== System` line.
    """

    minor: int
    nranks: int
    nodes: dict[str, list[Vertex]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    hosts: list[int] = field(default_factory=list)
    inter: bool = False
    rccl: bool = False
    """Whether RCCL decides, by the rules of 2.21.5."""
    gdr_all: bool = False
    """Of RCCL: GPUDirect RDMA from every GPU, and not all GPUs joined by xGMI: a node keeps its NETs."""
    scattered: bool = False
    """NCCL_TOPO_SCATTER_START_NET, as `compute_paths` finds it."""
    max_bw: float = 0.0
    total_bw: float = 0.0
    lines: dict[Vertex, int] = field(default_factory=dict, repr=False)
    """Where a vertex comes from: the line of its element in the file, 0 where it is not known."""

    def __iter__(self) -> Iterator[Vertex]:
        for vertices in self.nodes.values():
            yield from vertices

    def has(self, feature: Feature) -> bool:
        """Whether its version of NCCL has a feature."""
        return has(self.minor, feature)

    @property
    def gpus(self) -> list[Vertex]:
        return self.nodes["GPU"]

    @property
    def nets(self) -> list[Vertex]:
        return self.nodes["NET"]

    @property
    def cpus(self) -> list[Vertex]:
        return self.nodes["CPU"]

    @property
    def nvs(self) -> list[Vertex]:
        return self.nodes["NVS"]


BALANCED_TREE, SPLIT_TREE, TREE, RING, NVLS, COLLNET_DIRECT = Pattern


@dataclass(slots=True)
class SearchGraph:
    """What a search found: per channel the ranks in order (`intra`) and the ids of the NETs in and out (`inter`).

    Bandwidths per channel in GB/s. `intra[c][step]` is a communicator rank; NVLS fills step 0 only.
    """

    id: int
    """A `nccl_enums.Graph`."""
    pattern: int
    coll_net: bool = False
    cross_nic: int = 0
    min_channels: int = 1
    max_channels: int = 1
    channels: int = 0
    bw_intra: float = 0.0
    bw_inter: float = 0.0
    latency_inter: float = 0.0
    type_intra: int = 0
    type_inter: int = 0
    same_channels: int = 1
    hops: int = 0
    intra: list[list[int]] = field(default_factory=list)
    inter: list[list[int]] = field(default_factory=list)

    def copy(self) -> SearchGraph:
        """The same record once more; the orders are shared, as they are replaced and never changed."""
        return SearchGraph(*_values(self))


_values = attrgetter(*(column.name for column in fields(SearchGraph)))


@dataclass(frozen=True, slots=True)
class CommShape:
    """What the tuning model needs of a communicator. `graphs` by SearchGraph.id; a graph that was not searched or
    found no channel (NVLS, CollNet off) is absent. `local_ranks` are the ranks of every node as NCCL counts nodes."""

    minor: int
    nranks: int
    local_ranks: tuple[int, ...]
    min_sm: int
    max_sm: int
    cpu_arch: int
    cpu_vendor: int
    """Of the node's CPUs: xml reference section 3.2; 4 (MIXED, 2.24+) where ranks differ."""
    graphs: Mapping[int, SearchGraph]
    """As all ranks have agreed: the least of channels and bandwidths, the greatest of types."""
    channels: int
    """Runtime channels (`N coll channels`)."""
    nvls_channels: int
    nvs: bool
    """Whether the system has an NVSwitch."""
    max_tree_pattern: int = TREE
    collnet: bool = False
    nvls_heads: int = 0
    min_net_gbs: float = 0.0
    """The least bandwidth of a GPU's way to one of its NICs, of all ranks (`minNetBw`); 0 without NICs."""

    @property
    def nodes(self) -> int:
        return len(self.local_ranks)


@dataclass(slots=True, eq=False)
class Branch:
    """An element of the joined tree: attributes by name (the first of a name counts), children, line in the file."""

    tag: str
    attributes: dict[str, str]
    children: list[Branch] = field(default_factory=list)
    line: int = 0
    nics: bool = False
    """Whether a net is below."""

    def required(self, name: str) -> str:
        """An attribute that NCCL cannot do without, or RejectedError in its words (xmlGetAttrStr, src/graph/xml.h)."""
        value = self.attributes.get(name)
        if value is None:
            raise RejectedError(f"Attribute {name} of node {self.tag} not found", self.line)
        return value

    def number(self, name: str) -> int:
        return c_int(self.required(name))

    def number_or(self, name: str, default: int) -> int:
        value = self.attributes.get(name)
        return default if value is None else c_int(value)

    def add(self, tag: str, attributes: dict[str, str], line: int = 0) -> Branch:
        """A new element as the last one below, for more to be put into it."""
        self.children.append(Branch(tag, attributes, line=line))
        return self.children[-1]

    def first(self, tag: str) -> Branch | None:
        return next((child for child in self.children if child.tag == tag), None)

    @classmethod
    def opened(cls, element: Element) -> Branch:
        """An element for more to be put into it, and into what is below it."""
        return cls(element.tag, dict(element.attributes), list(map(cls.opened, element.children)), element.line)

    def closed(self) -> Element:
        """The element as it is by now."""
        children = tuple(child.closed() for child in self.children)
        return Element(self.tag, tuple(self.attributes.items()), children, self.line)

    def walk(self) -> Iterator[Branch]:
        """The element and all below it, in the order of the file."""
        stack = [self]
        while stack:
            branch = stack.pop()
            yield branch
            stack.extend(reversed(branch.children))
