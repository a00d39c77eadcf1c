"""What `predict` returns: NCCL's decisions on a topology, in the names and units of the published result.

Bandwidths in GB/s per channel and direction, latencies in microseconds, bus and net ids as NCCL prints them
(`GPU/0-1b000`, `NET/0-3`). Frozen: a prediction can be kept, compared and shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from topodiag.lazy import dataclass
from topodiag.model.nccl_versions import Feature, assumption, has, minor_of

PathTable = Mapping[str, Mapping[str, tuple[int, float, str]]]
"""From and to by label: (hops, GB/s, type)."""

TuningTable = Mapping[str, Mapping[str, Mapping[str, tuple[float, float]]]]
"""Collective, algorithm, protocol (`AllReduce`, `Ring`, `Simple`): (latency in us, algorithm bandwidth in GB/s); a
bandwidth of 0 is a combination that NCCL does not use."""


@dataclass(frozen=True, slots=True)
class PredictedGraph:
    """One channel search's result, before ranks agree on the least of all (the `Pattern` line of one rank).

    `orders` are the labels of each channel from the entering NET over the GPUs to the leaving NET.
    """

    id: int
    pattern: int
    cross_nic: int
    channels: int
    bw_intra: float
    bw_inter: float
    type_intra: str
    type_inter: str
    same_channels: int
    orders: tuple[tuple[str, ...], ...] = ()


SIMPLE_ORDER_GBS = 0.11
"""Below this lies what NCCL writes for a channel that no search found, 0.1 GB/s; its least speed of search is 0.12."""


@dataclass(frozen=True, slots=True)
class Channels:
    """The line `N coll channels, N collnet channels, N nvls channels, N p2p channels, N p2p channels per peer`."""

    coll: int
    collnet: int
    nvls: int
    p2p: int
    p2p_per_peer: int


@dataclass(frozen=True, slots=True)
class Choice:
    """What NCCL would run for one size. `bytes` is the size by which the table is looked up (nccl-tests' column);
    `time_us` NCCL's own estimate, `busbw_gbs` the bus bandwidth that follows from it."""

    collective: str
    bytes: int
    algorithm: str
    protocol: str
    time_us: float
    busbw_gbs: float


@dataclass(frozen=True, slots=True)
class VirtualNic:
    """Ports that NCCL merged into one device: its label, its name (`mlx5_0+mlx5_1`), and GB/s of the ports together."""

    label: str
    name: str
    gbs: float


NO_NIC = (
    "no NIC in this topology: NCCL uses TCP sockets between nodes, whose speed is unknown;"
    " channels and times are not predicted"
)


@dataclass(frozen=True, slots=True)
class Term:
    """One step of the derivation: a name, its value with unit, and the sentence or formula that gives it."""

    name: str
    value: str
    formula: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """NCCL's decisions for `nodes` equal nodes of a topology under one version."""

    version: str
    nodes: int
    accepted: bool
    why: str = ""
    """NCCL's words when it refuses the topology."""
    line: int = 0
    """The line of the file that it refuses, 0 where none is to blame."""
    max_bw: float = 0.0
    total_bw: float = 0.0
    paths: PathTable = field(default_factory=dict)
    graphs: tuple[PredictedGraph, ...] = ()
    channels: Channels | None = None
    tuning: TuningTable = field(default_factory=dict)
    choices: tuple[Choice, ...] = ()
    terms: tuple[Term, ...] = ()
    ranks: int = 0
    nccl_nodes: int = 0
    """Nodes as NCCL counts them: P2P domains, not hosts."""
    virtual_nics: tuple[VirtualNic, ...] = ()
    no_nic: bool = False
    """Nothing but sockets joins the nodes: only paths inside a node are known (NO_NIC), no graph and no choice."""

    not_followed: tuple[str, ...] = ()
    """Settings that ask for what is not modelled, a sentence each."""
    library: str = "NCCL"
    decided_by: str = ""
    """Of RCCL: what its rings come from."""
    asked: str = ""
    """The version that was asked for, where the rules of another are followed."""

    @property
    def by(self) -> str:
        """Who decides: `NCCL 2.28`."""
        return f"{self.library} {self.version}"

    @property
    def assumed(self) -> tuple[str, ...]:
        """What was assumed about the version, and what was left out, a sentence each."""
        note = assumption(self.version) if self.library == "NCCL" else ""
        if self.asked:
            note = f"the rules of {self.library} {self.asked} are not known here: taken to decide as {self.version}"
        return (*([note] if note else []), *self.not_followed)

    @property
    def left_out(self) -> str:
        """What may run in the place of the choices and is not followed; "" for versions without."""
        known = self.library == "NCCL" and has(minor_of(self.version), Feature.SYMMETRIC_KERNELS)
        return "not followed: symmetric kernels, copy engines (registered windows)" if known else ""

    def graph(self, id: int) -> PredictedGraph | None:  # noqa: A002 - NCCL's own word for it
        return next((graph for graph in self.graphs if graph.id == id), None)

    @property
    def all_reduce(self) -> Choice | None:
        """What it would run for an all-reduce of the least size that was asked about."""
        return next((choice for choice in self.choices if choice.collective == "AllReduce"), None)

    @property
    def lost_tree(self) -> bool:
        """Rings were found and no tree: its stand-in has one channel, and all graphs are cut to the least of them."""
        ring, tree = self.graph(0), self.graph(1)
        return ring is not None and tree is not None and tree.bw_inter < SIMPLE_ORDER_GBS < ring.bw_inter
