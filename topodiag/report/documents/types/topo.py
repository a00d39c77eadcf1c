"""The documents of `topo predict`, `what-if` and `diff`: GB/s of one direction, microseconds, NCCL's labels."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from topodiag.report.documents.from_model import Of
from topodiag.report.documents.types.common import AtLeastOne, Count, Finding, Input, NotObserved, Tool, Version

PathEntry = Annotated[
    tuple[Count, float, str],
    Meta(description="hops, GB/s, type (LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS NET DIS)"),
]
TuningEntry = tuple[float, float]


class SystemBandwidth(Struct, frozen=True, kw_only=True):
    """The best path of a GPU and the sum of its links, GB/s."""

    max_bw: float
    total_bw: float


class Graph(Struct, frozen=True, kw_only=True):
    """One search for channels."""

    pattern: Annotated[
        int,
        Meta(ge=1, le=6, description="1 balanced tree, 2 split tree, 3 tree, 4 ring, 5 NVLS, 6 CollNet direct"),
    ]
    cross_nic: int
    channels: Count
    bw_intra: float
    bw_inter: float
    type_intra: str
    type_inter: str
    same_channels: int
    orders: Annotated[list[list[str]], Meta(description="per channel: NET in, GPUs, NET out; on one node GPUs alone")]


class ChannelCounts(Struct, frozen=True, kw_only=True):
    """Channels that NCCL would open."""

    coll: Count
    collnet: Count
    nvls: Count
    p2p: Count
    p2p_per_peer: Count


class VirtualNic(Struct, frozen=True, kw_only=True):
    """Ports that NCCL merged into one device: its label among the paths, its name, GB/s of the ports together."""

    label: str
    name: str
    gbs: float


class Choice(Struct, frozen=True, kw_only=True):
    """What NCCL would run for one size."""

    collective: str
    bytes: Count
    algorithm: str
    protocol: str
    time_us: float
    busbw_gbs: float


class Step(Struct, frozen=True, kw_only=True):
    """One step of the derivation."""

    name: str
    value: str
    formula: str


class Prediction(Struct, frozen=True, kw_only=True):
    """NCCL's decisions on a topology. Where NCCL refuses it, only accepted, why and line mean something."""

    schema_version: Version
    nccl_version: Annotated[str, Of("version"), Meta(pattern=r"^2\.[0-9]+")]
    assumed: Annotated[
        list[str], Meta(description="what was assumed about a version whose own rules are not known, a sentence each")
    ]
    nodes: Annotated[AtLeastOne, Meta(description="equal nodes that were asked about")]
    ranks: Count
    nccl_nodes: Annotated[Count, Meta(description="nodes as NCCL counts them: domains of P2P")]
    library: Annotated[str, Meta(description="NCCL, or RCCL where the topology is AMD's")]
    decided_by: Annotated[str, Meta(description="of RCCL: what its rings come from")]
    virtual_nics: list[VirtualNic]
    no_nic: Annotated[
        bool,
        Meta(description="true: only sockets join the nodes, whose speed is unknown; no graph, channel or choice"),
    ]
    accepted: bool
    why: Annotated[str, Meta(description="NCCL's words where it refuses the topology")]
    line: AtLeastOne | None
    system: SystemBandwidth
    paths: Annotated[
        dict[str, dict[str, PathEntry]], Meta(description="from GPUs and NETs to all that they have a path to")
    ]
    graphs: Annotated[list[Graph], Meta(description="in the order in which NCCL searches")]
    channels: ChannelCounts | None
    tuning: Annotated[
        dict[str, dict[str, dict[str, TuningEntry]]],
        Meta(
            description="collective, algorithm, protocol: latency in us and algorithm bandwidth in GB/s, 0 where NCCL"
            " does not use it"
        ),
    ]
    choices: list[Choice]
    terms: Annotated[list[Step], Meta(description="the derivation, step by step")]


class PredictDocument(Prediction, frozen=True, kw_only=True):
    """`topo predict`: the prediction, and what every document has."""

    tool: Tool
    inputs: list[Input]
    findings: list[Finding]
    not_observed: list[NotObserved]


class WhatIfDocument(Struct, frozen=True, kw_only=True):
    """`topo what-if`: two predictions and what lies between them."""

    schema_version: Version
    tool: Tool
    inputs: list[Input]
    changes: list[str]
    bytes: Annotated[AtLeastOne, Meta(description="the all-reduce that the sentence speaks of")]
    before: Prediction
    after: Prediction
    sentence: str
    findings: list[Finding]
    not_observed: list[NotObserved]


class Difference(Struct, frozen=True, kw_only=True):
    """What differs at one device; null where it is on one side alone."""

    device: str
    what: str
    left: str | None
    right: str | None


class DiffDocument(Struct, frozen=True, kw_only=True):
    """`topo diff`: the differences one by one, and the graphs of either side as spelt in the table."""

    schema_version: Version
    tool: Tool
    inputs: list[Input]
    left: str
    right: str
    differences: list[Difference]
    graphs: Annotated[
        dict[str, tuple[str | None, str | None]],
        Meta(description="by name of the search: left and right, null where NCCL finds none"),
    ]
    findings: list[Finding]
    not_observed: list[NotObserved]
