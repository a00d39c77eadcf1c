"""Tables of a prediction: paths, channels, tuning and what NCCL would choose."""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.api.tables.interface import Row, Table, columns
from topodiag.nccl.prediction import Prediction
from topodiag.report.topo.predict import PATTERNS


def _paths(made: Prediction) -> Iterator[Row]:
    for a, row in made.paths.items():
        for b, (hops, gbs, type_) in row.items():
            yield a, b, hops, gbs, type_


def _channels(made: Prediction) -> Iterator[Row]:
    for graph in made.graphs:
        for channel, order in enumerate(graph.orders):
            yield graph.id, PATTERNS.get(graph.pattern), channel, graph.bw_intra, graph.bw_inter, " ".join(order)


def _graphs(made: Prediction) -> Iterator[Row]:
    for g in made.graphs:
        yield (
            g.id, PATTERNS.get(g.pattern), g.channels, g.bw_intra, g.bw_inter, g.type_intra, g.type_inter,
            g.cross_nic, g.same_channels != 0,
        )  # fmt: skip


def _tuning(made: Prediction) -> Iterator[Row]:
    for collective, algorithms in made.tuning.items():
        for algorithm, protocols in algorithms.items():
            for protocol, (latency_us, gbs) in protocols.items():
                yield collective, algorithm, protocol, latency_us, gbs


PATHS = Table(
    "Paths as NCCL sees them.",
    columns("""
        from text: Device by NCCL's label, GPU/0-1b000.
        to text: Device by NCCL's label.
        hops whole: Links on the way.
        gbs number GB/s: Bandwidth in one direction.
        type text: LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS, NET or DIS.
    """),
    _paths,
)
GRAPHS = Table(
    "Searches for channels.",
    columns("""
        graph whole: NCCL's number: 0 ring, 1 tree, 2 CollNet chain, 3 NVLS, 4 CollNet direct.
        pattern text: Pattern of the search.
        channels whole: Channels that were found.
        bw_intra number GB/s: Bandwidth of a channel inside the node, in one direction.
        bw_inter number GB/s: Bandwidth of a channel between nodes, in one direction.
        type_intra text: Worst path inside the node.
        type_inter text: Worst path to the NIC.
        cross_nic whole: Whether a channel may leave by another NIC than it enters.
        same_channels truth: Whether all channels have one order.
    """),
    _graphs,
)
CHANNELS = Table(
    "Channels, each with its order of devices.",
    columns("""
        graph whole: NCCL's number of the search.
        pattern text: Pattern of the search.
        channel whole: Channel.
        bw_intra number GB/s: Bandwidth inside the node, in one direction.
        bw_inter number GB/s: Bandwidth between nodes, in one direction.
        order text: NET in, GPUs, NET out, parted by blanks.
    """),
    _channels,
)
TUNING = Table(
    "The table that NCCL chooses from.",
    columns("""
        collective text: Collective.
        algorithm text: Algorithm.
        protocol text: Protocol.
        latency_us number us: Latency.
        algbw_gbs number GB/s: Algorithm bandwidth; 0 where NCCL does not use it.
    """),
    _tuning,
)
CHOICES = Table(
    "What NCCL would run, by collective and size.",
    columns("""
        collective text: Collective.
        bytes whole bytes: Size.
        algorithm text: Algorithm.
        protocol text: Protocol.
        time_us number us: Time by NCCL's model.
        busbw_gbs number GB/s: Bus bandwidth that follows.
    """),
    lambda made: made.choices,
)
TERMS = Table(
    "The derivation, step by step.",
    columns("""
        name text: Name.
        value text: Value with its unit.
        formula text: Where it comes from.
    """),
    lambda made: made.terms,
)
