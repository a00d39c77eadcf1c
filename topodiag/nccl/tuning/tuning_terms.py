"""NCCL's tuning model for one collective, algorithm and protocol: its bandwidth and its latency, step by step.

The steps that make a figure are the steps that explain it. Bandwidths in GB/s, latencies in us. Source:
ncclTopoTuneModel in src/graph/tuning.cc, since MODEL_PER_ALGORITHM src/tuning/{ring,tree,nvls,collnet,pat}.cc; the
order of the steps is NCCL's. What a user or a missing part switches
off is `tuning`'s.
"""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.model.nccl_enums import COLLNET, NVLS_FAMILY, SHARDED, Algorithm, Collective, Protocol
from topodiag.model.nccl_versions import Feature, has
from topodiag.nccl.graph.graph import TREE, SearchGraph
from topodiag.nccl.tuning import tuning_constants as tc
from topodiag.nccl.tuning.tuning_model import Cell, Model, Steps
from topodiag.words.units import in_gbs, spell_us

_SHARDED_BY: Mapping[str, Feature] = {
    Algorithm.NVLS: Feature.SHARDED_NVLS,
    Algorithm.COLLNET_DIRECT: Feature.SHARDED_COLLNET_DIRECT,
    Algorithm.PAT: Feature.PAT,
}


def considered(minor: int, cell: Cell) -> bool:
    """Whether the version has the combination at all; the others have no latency and no bandwidth."""
    algorithm = cell.algorithm
    if algorithm == Algorithm.PAT and not has(minor, Feature.PAT):
        return False
    if algorithm in (*NVLS_FAMILY, Algorithm.PAT) and cell.protocol != Protocol.SIMPLE:
        return False
    if cell.collective == Collective.ALL_REDUCE:
        return algorithm != Algorithm.PAT
    if algorithm == Algorithm.RING:
        return True
    feature = _SHARDED_BY.get(algorithm)
    return cell.collective in SHARDED and feature is not None and has(minor, feature)


def pat_enabled(model: Model) -> bool:
    """NCCL_PAT_ENABLE: 2, the default, is one GPU per node. A network that runs on the GPU is not known here."""
    if model.shape.min_sm < 60 and model.has(Feature.PAT_FROM_PASCAL):
        return False
    wish = model.settings.pat_enable
    if model.nodes != model.n and model.has(Feature.PAT_OVER_NVLS):
        heads = model.shape.nvls_heads
        over_nvls = model.shape.nvls_channels > 0 and all(ranks == heads for ranks in model.shape.local_ranks)
        return over_nvls and wish != 0 and (wish != 2 or model.nodes > 1)
    return model.nodes == model.n if wish == 2 else wish != 0


def applies(model: Model, cell: Cell) -> bool:
    """`considered`, and what the communicator rules out before any figure is made."""
    if not considered(model.minor, cell) or model.n <= 1:
        return False
    if cell.algorithm == Algorithm.PAT:
        return pat_enabled(model)
    narrow = cell.algorithm in NVLS_FAMILY and model.graph(cell.algorithm).channels < 2
    return not (narrow and model.has(Feature.NVLS_EFFICIENCY))


def bandwidth(model: Model, cell: Cell, steps: Steps) -> float:
    """Algorithm bandwidth: bytes of the operation over its time, for large sizes."""
    graph = model.graph(cell.algorithm)
    if graph.channels == 0:
        return steps.gbs("channels", 0.0, f"the graph search gave no channels for {cell.algorithm}")
    if cell.algorithm in COLLNET and model.has(Feature.MODEL_PER_ALGORITHM):
        return _collnet_apart(model, cell, graph, steps)
    per_channel = _per_channel(model, cell, graph, steps)
    bus = steps.gbs("busBw", graph.channels * per_channel, f"{graph.channels} channels x {in_gbs(per_channel)}")
    if cell.algorithm == Algorithm.RING:
        bus = _ring(model, cell, graph, bus, steps)
    elif cell.algorithm == Algorithm.TREE:
        bus = _tree(model, cell, graph, bus, steps)
    elif cell.algorithm == Algorithm.PAT:
        factor = tc.PAT_SHARE[model.minor]
        bus = steps.gbs("PAT", bus * factor, f"{factor} x busBw")
    elif cell.algorithm in COLLNET and cell.protocol != Protocol.SIMPLE:
        bus = steps.gbs("protocol", 0.0, f"{cell.algorithm} runs Simple only")
    elif cell.algorithm == Algorithm.COLLNET_DIRECT:
        bus = _collnet_direct(model, cell, graph, bus, steps)
    if bus and (why := _sharded_needs(model, cell)):
        bus = steps.gbs("available", 0.0, why)
    return _to_algorithm_bandwidth(model, cell, bus, steps)


def _per_channel(model: Model, cell: Cell, graph: SearchGraph, steps: Steps) -> float:
    intra, inter = graph.bw_intra, graph.bw_inter
    if cell.algorithm in NVLS_FAMILY and model.has(Feature.NVLS_MODEL):
        return (_nvls_by_channels if model.has(Feature.NVLS_EFFICIENCY) else _nvls_by_graph)(model, cell, graph, steps)
    if cell.algorithm in COLLNET:
        return steps.gbs("bandwidth per channel", intra, "bwIntra of the graph")
    if model.has(Feature.MODEL_PER_ALGORITHM):
        blackwell = model.shape.min_sm >= 100
        if cell.algorithm == Algorithm.PAT or (cell.algorithm == Algorithm.TREE and blackwell):
            formula = f"min(bwIntra {intra:g}, bwInter {inter:g})"
            return steps.gbs("bandwidth per channel", min(intra, inter), formula)
        if model.nodes == 2 and blackwell:
            return steps.gbs("bandwidth per channel", inter, "bwInter of the graph, as above 1 node on Blackwell")
    if model.nodes <= 2:
        return steps.gbs("bandwidth per channel", intra, "bwIntra of the graph, as up to 2 nodes")
    return steps.gbs("bandwidth per channel", inter, "bwInter of the graph, as above 2 nodes")


def _nvls_by_graph(model: Model, cell: Cell, graph: SearchGraph, steps: Steps) -> float:
    intra, inter = graph.bw_intra, graph.bw_inter
    name = "bandwidth per channel"
    if cell.algorithm == Algorithm.NVLS_TREE:
        half = 1 if model.nodes <= 2 else 2
        return steps.gbs(name, min(intra, inter / half), f"min(bwIntra {intra:g}, bwInter {inter:g} / {half})")
    if cell.collective in SHARDED and model.has(Feature.SHARDED_NVLS_OVER_NODES):
        least = min(intra * (model.ppn - 1) / model.ppn, inter * 0.9)
        formula = f"min(bwIntra {intra:g} x {model.ppn - 1:g}/{model.ppn:g}, 0.9 x bwInter {inter:g})"
        return steps.gbs(name, least, formula)
    return steps.gbs(name, min(intra, inter), f"min(bwIntra {intra:g}, bwInter {inter:g})")


def _nvls_by_channels(model: Model, cell: Cell, graph: SearchGraph, steps: Steps) -> float:
    efficiency, channels = tc.NVLS_EFFICIENCY[model.gpu], graph.channels
    intra = graph.bw_intra * efficiency * (channels - 1) / channels
    formula = f"bwIntra {graph.bw_intra:g} x efficiency {efficiency} x {channels - 1}/{channels} channels"
    if cell.collective == Collective.ALL_REDUCE:
        intra = steps.gbs("inside the node", intra * 2, formula + " x 2, as it overlaps two operations")
    else:
        ppn = min(model.shape.local_ranks) if model.has(Feature.MODEL_PER_ALGORITHM) else model.ppn
        intra = steps.gbs("inside the node", intra * (ppn - 1) / ppn, formula + f" x {ppn - 1:g}/{ppn:g} GPUs")
    twice = 2 if cell.algorithm == Algorithm.NVLS_TREE and model.nodes <= 2 else 1
    least, formula = min(intra, graph.bw_inter * twice), f"min(inside the node, {twice} x bwInter {graph.bw_inter:g})"
    if cell.algorithm == Algorithm.NVLS_TREE:
        limit = model.cap(model.constants.nvls_tree)
        least, formula = min(least, limit), f"{formula}, at most {limit:g}"
    return steps.gbs("bandwidth per channel", least, formula)


def _ring(model: Model, cell: Cell, graph: SearchGraph, bus: float, steps: Steps) -> float:
    if cell.protocol == Protocol.LL:
        share = 0.5
        if not model.has(Feature.RING_LL_HALF):
            half = model.nodes > 1 or cell.collective in (Collective.ALL_REDUCE, Collective.REDUCE)
            share = 1 / 4 if half else 1 / 3
        limit = model.ll_cap
        return steps.gbs("LL", min(limit, bus * share), f"min({share:.3g} x busBw, {limit:g} for LL)")
    if cell.protocol == Protocol.LL128:
        share = 0.7 if model.ppn < 2 and not model.has(Feature.RING_LL128_EVEN_ALONE) else 0.92
        limit = model.cap(model.constants.ring_ll128)
        formula = f"min({share} x busBw, {graph.channels} channels x {limit:g})"
        return steps.gbs("LL128", min(bus * share, graph.channels * limit), formula)
    return bus


def _tree(model: Model, cell: Cell, graph: SearchGraph, bus: float, steps: Steps) -> float:
    limit = model.cap(model.constants.tree)
    formula = f"min(0.92 x busBw, {graph.channels} channels x {limit:g})"
    bus = steps.gbs("tree", min(bus * 0.92, graph.channels * limit), formula)
    if cell.protocol == Protocol.LL:
        bus = steps.gbs("LL", min(bus / 3.8, model.ll_cap), f"min(busBw / 3.8, {model.ll_cap:g} for LL)")
    elif cell.protocol == Protocol.LL128:
        share, words = (7 / 9, "7/9") if model.nodes == 1 else (120 / 128, "120/128")
        limit = model.cap(model.constants.tree_ll128)
        formula = f"min({words} x busBw, {graph.channels} channels x {limit:g})"
        bus = steps.gbs("LL128", min(bus * share, graph.channels * limit), formula)
    pattern = model.shape.max_tree_pattern if model.has(Feature.TREE_PATTERN_AGREED) else graph.pattern
    if pattern == TREE:
        bus = steps.gbs("simple tree", bus * 0.85, "0.85 x busBw, as up and down share a GPU's links")
    return bus


def _collnet_direct(model: Model, cell: Cell, graph: SearchGraph, bus: float, steps: Steps) -> float:
    ppn = model.ppn
    if cell.collective not in SHARDED:
        per_nic = ppn / graph.channels
        factor = per_nic - (per_nic - 1) / 2
        bus = steps.gbs(
            "GPUs per NIC", bus / factor, f"busBw / {factor:.3g}, half of what {per_nic:.3g} GPUs per NIC cost"
        )
        if model.shape.min_sm >= 90:
            bus = steps.gbs("Hopper", bus * 0.85, "0.85 x busBw")
        return bus
    if model.has(Feature.SHARDED_NVLS_OVER_NODES):
        least = min(graph.bw_intra, graph.bw_inter * 0.9)
        return steps.gbs("all GPUs", ppn * least, f"{ppn:g} GPUs x min(bwIntra, 0.9 x bwInter)")
    weight = (ppn - 1) / 7
    share = weight * 0.85 + (1 - weight) * 0.95
    return steps.gbs("all GPUs", ppn * graph.bw_intra * share, f"{ppn:g} GPUs x bwIntra x {share:.3g}")


def _collnet_apart(model: Model, cell: Cell, graph: SearchGraph, steps: Steps) -> float:
    """Both CollNets since MODEL_PER_ALGORITHM. AllReduce starts from what NCCL made of ReduceScatter before it
    (ncclTuningCollnetModelInit keeps `busBw` over its loop)."""
    if cell.protocol != Protocol.SIMPLE:
        return steps.gbs("protocol", 0.0, f"{cell.algorithm} runs Simple only")
    ppn = model.ppn
    least = min(graph.bw_intra, graph.bw_inter * 0.9)
    bus = steps.gbs("all GPUs", ppn * least, f"{ppn:g} GPUs x min(bwIntra, 0.9 x bwInter)")
    if cell.collective == Collective.ALL_REDUCE:
        per_nic = ppn / graph.channels
        factor = per_nic - (per_nic - 1) / 2
        bus = steps.gbs("GPUs per NIC", bus / factor, f"busBw / {factor:.3g}, for {per_nic:.3g} GPUs per NIC")
    if model.nodes > 1 and (why := _switches_need(model, max(model.shape.local_ranks))):
        return steps.gbs("available", 0.0, why)
    return steps.gbs("algBw", bus * 0.5, "busBw / 2")


def _sharded_needs(model: Model, cell: Cell) -> str:
    """Why AllGather and ReduceScatter between nodes cannot use the switches, "" where they can or need not.

    Whether the CollNet plugin offers the two is not known; those since its version 8 do.
    """
    if cell.collective not in SHARDED or model.nodes == 1 or not model.has(Feature.SHARDED_COLLNET_DIRECT):
        return ""
    over_nodes = model.has(Feature.SHARDED_NVLS_OVER_NODES)
    if cell.algorithm != Algorithm.COLLNET_DIRECT and not (cell.algorithm == Algorithm.NVLS and over_nodes):
        return ""
    return _switches_need(model, max(model.shape.local_ranks) if over_nodes else model.ppn)


def _switches_need(model: Model, most: float) -> str:
    """Why `most` ranks of a node cannot use the switches between nodes, "" where they can."""
    if not model.shape.collnet:
        return "CollNet is off"
    heads = model.shape.nvls_heads or model.graph(Algorithm.COLLNET_DIRECT).channels  # next to a NIC
    return f"{most:g} ranks of a node, and {heads} GPUs next to a NIC" if most > heads else ""


def _to_algorithm_bandwidth(model: Model, cell: Cell, bus: float, steps: Steps) -> float:
    name, algorithm, sharded = "algBw", cell.algorithm, cell.collective in SHARDED
    by_bus = algorithm != Algorithm.RING and model.has(Feature.SHARDED_BY_BUS)
    if sharded and (algorithm == Algorithm.COLLNET_DIRECT or by_bus):
        return steps.gbs(name, bus, "busBw")
    ring_steps = model.steps_of(cell.collective)
    if algorithm == Algorithm.RING or (algorithm in NVLS_FAMILY and model.has(Feature.NVLS_EFFICIENCY)):
        return steps.gbs(name, bus * model.n / ring_steps, f"busBw x {model.n} ranks / {ring_steps} steps")
    if algorithm == Algorithm.NVLS_TREE and not model.has(Feature.NVLS_MODEL):
        among = 2 * max(model.nodes - 1, 1)
        return steps.gbs(name, bus * 0.7 * model.nodes / among, f"busBw x 0.7 x {model.nodes} / {among}")
    if algorithm in NVLS_FAMILY:
        return steps.gbs(name, bus * 5 / 6, "busBw x 5/6")
    return steps.gbs(name, bus * 0.5, "busBw / 2")


def latency(model: Model, cell: Cell, steps: Steps) -> float:
    """What an operation takes before bytes count, in us."""
    algorithm, protocol = cell.algorithm, cell.protocol
    base = steps.us("base", model.constants.base_us(algorithm, protocol), f"start of {algorithm} {protocol}")
    if algorithm == Algorithm.RING and cell.collective in (Collective.BROADCAST, Collective.REDUCE):
        return steps.us("latency", *_rooted_ring(model, cell, base))
    link = model.local_link(algorithm)
    intra = steps.us(
        "step in the node", model.link_us(link, algorithm, protocol), f"{algorithm} {protocol} over {link}"
    )
    inter = _between_nodes(model, cell, steps)
    if algorithm == Algorithm.RING:
        intra = _posted(model, cell, intra, steps)
        return steps.us("latency", *_ring_latency(model, cell, base, intra, inter))
    return steps.us("latency", *_other_latency(model, algorithm, base, intra, inter))


def _between_nodes(model: Model, cell: Cell, steps: Steps) -> float:
    exposed = model.has(Feature.TREE_STEPS_ALONE) or cell.algorithm == Algorithm.RING
    exposed = exposed and model.has(Feature.STEPS_ALONE_EXPOSED)
    like = Algorithm.TREE if model.ppn == 1 and exposed else cell.algorithm
    device = model.graph(cell.algorithm).latency_inter
    times = 2 if cell.protocol == Protocol.SIMPLE else 1  # Simple waits for the flush too
    link = tc.NET
    if model.has(Feature.MODEL_PER_ALGORITHM):
        times = 1 if cell.algorithm == Algorithm.PAT else times
        link = tc.NET if model.nodes > 1 else model.local_link(cell.algorithm)
    inter = model.link_us(link, like, cell.protocol) + times * device
    return steps.us(
        "step between nodes", inter, f"{like} {cell.protocol} over the {link} + {times} x NIC {spell_us(device)}"
    )


def _rooted_ring(model: Model, cell: Cell, base: float) -> tuple[float, str]:
    link = model.local_link(Algorithm.RING) if model.nodes == 1 else tc.NET
    one = model.link_us(link, Algorithm.RING, cell.protocol)
    if model.graph(Algorithm.RING).same_channels:
        return base + one, f"base + {one:g} over {link}, as all channels are the same"
    if cell.protocol == Protocol.SIMPLE:
        one = model.link_us(link, Algorithm.TREE, cell.protocol)
    return base + model.n * one, f"base + {model.n} steps x {one:g} over {link}"


def _posted(model: Model, cell: Cell, intra: float, steps: Steps) -> float:
    """A step in the node is no shorter than the posting of the steps that leave it."""
    overhead = model.net_overhead_us * (3 if cell.protocol == Protocol.SIMPLE else 1)
    if model.nodes == 1 or overhead <= intra:
        return intra
    return steps.us("step in the node", overhead, "the CPU's overhead of posting to the network is longer")


def _ring_latency(model: Model, cell: Cell, base: float, intra: float, inter: float) -> tuple[float, str]:
    all_steps = model.steps_of(cell.collective)
    crossing = model.nodes - 1
    if cell.collective == Collective.ALL_REDUCE:
        # Else one step too many per direction, for more than one node.
        exact = model.nodes == 1 or model.has(Feature.RING_CROSSINGS_EXACT)
        crossing = 2 * (crossing if exact else model.nodes)
    lat = base + (all_steps - crossing) * intra + crossing * inter
    return lat, f"base + {all_steps - crossing} x {intra:g} + {crossing} x {inter:g}"


def _other_latency(model: Model, algorithm: str, base: float, intra: float, inter: float) -> tuple[float, str]:
    modelled, nodes, hops = model.has(Feature.NVLS_MODEL), model.nodes, model.local - 1
    rounds = nodes.bit_length() - 1
    if algorithm == Algorithm.TREE:
        lat = base + 2 * (hops * intra + rounds * inter)
        return lat, f"base + 2 x ({hops} GPUs x {intra:g} + {rounds} levels x {inter:g})"
    if algorithm == Algorithm.COLLNET_DIRECT:
        latency_us = tc.COLLNET_DIRECT_GPU_US[model.minor]
        first = min(1, hops)
        lat = base + 2 * (first * intra + hops * latency_us) + inter
        return lat, f"base + 2 x ({first} x {intra:g} + {hops} x {latency_us}) + {inter:g}"
    if algorithm == Algorithm.COLLNET_CHAIN:
        return base + 2 * hops * intra + inter, f"base + 2 x {hops} GPUs x {intra:g} + {inter:g}"
    if algorithm == Algorithm.PAT:
        lat = base + rounds * inter / 3.5 + 2.8 * model.n
        return lat, f"base + {rounds} levels x {inter:g} / 3.5 + 2.8 x {model.n} ranks"
    network = model.constants.link_us(tc.NET, algorithm, Protocol.SIMPLE)
    if algorithm == Algorithm.NVLS:
        if not modelled:
            words = f"base + {network:g} over the network" if nodes > 1 else "base"
            return base + (network if nodes > 1 else 0), words
        return intra + (inter if nodes > 1 else 0), f"{intra:g}{f' + {inter:g}' if nodes > 1 else ''}"
    if not modelled:
        return base + 2 * (nodes - 1) * network, f"base + 2 x {nodes - 1} nodes x {network:g}"
    return base + intra + 2 * rounds * inter, f"base + {intra:g} + 2 x {rounds} levels x {inter:g}"
