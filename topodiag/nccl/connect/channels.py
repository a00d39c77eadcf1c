"""How many channels a communicator runs with: doubling, limits, NVLS channels, and channels per peer of send/recv.

Rules of src/graph/connect.cc (ncclTopoPostset), src/graph/paths.cc (ncclTopoComputeP2pChannels), src/graph/topo.cc
(getLocalNetCountByBw) and src/transport/nvls.cc (ncclNvlsInit, ncclNvlsTuning).
"""

from __future__ import annotations

from topodiag.lazy import dataclass
from topodiag.model.nccl_enums import Graph
from topodiag.model.nccl_versions import MAX_CHANNELS, Feature, has, path_types
from topodiag.nccl.graph.bandwidths import nvlink_bandwidth
from topodiag.nccl.graph.graph import CommShape, System, Vertex
from topodiag.nccl.graph.nearest import local_cpu, local_nets, nearest
from topodiag.nccl.numbers import power_of_two, single
from topodiag.nccl.settings import Settings
from topodiag.words.units import in_gbs

_ENOUGH = 16
"""Channels from which on neither Hopper's nor NVLS' extra channels are added."""
_FAST_RING = 45.0
"""GB/s of a ring channel inside a node above which four channels serve one search channel (src/graph/connect.cc)."""
_NVLS_HOPPER, _NVLS_BLACKWELL, _NVLS_BLACKWELL_ONE_NODE = 16, 32, 24
"""NVLS_NCHANNELS_SM90, _SM100 and _SM100_NVL (src/transport/nvls.cc)."""
_NET_PER_CHANNEL = 14
"""NCCL_P2P_PER_CHANNEL_NET_BW, GB/s (src/graph/paths.cc)."""
_PEERS_PER_BATCH = 8
_PER_NET_PEER = "NCCL_NCHANNELS_PER_NET_PEER"
"""NCCL_MAX_DEV_WORK_P2P_PER_BATCH (src/include/device.h)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds that settings put on channels, as NCCL caps them; CTA bounds hold for NVLS too."""

    least: int
    most: int
    min_ctas: int
    max_ctas: int


def limits(settings: Settings, minor: int) -> Limits:
    """NCCL_MIN/MAX_NCHANNELS (or NRINGS) and NCCL_MIN/MAX_CTAS within what the version can have."""
    bound = MAX_CHANNELS[minor]
    most = settings.number("NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS")
    least = settings.number("NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS") or 0
    max_ctas, min_ctas = (max(settings.number(name) or 0, 0) for name in ("NCCL_MAX_CTAS", "NCCL_MIN_CTAS"))
    most = bound if most is None else max(1, min(most, bound))
    max_ctas = min(max_ctas or bound, bound)
    return Limits(max(0, min(least, bound)), most, min(min_ctas or 1, max_ctas), max_ctas)


@dataclass(frozen=True, slots=True)
class ChannelStep:
    """One step from search channels to runtime channels: the count after it, and the rule."""

    count: int
    rule: str


def runtime_channels(shape: CommShape, bounds: Limits, nvls: int = 0) -> tuple[list[int], list[ChannelStep]]:
    """The channels, each as the number of the one among twice the ring's that it repeats, and the steps that led there.

    With CHANNELS_UP_TO_NVLS the channels are extended to the `nvls` channels, which the log then counts as collective
    channels.
    """
    minor, ring, chain = shape.minor, shape.graphs[Graph.RING], shape.graphs.get(Graph.COLLNET_CHAIN)
    bound = MAX_CHANNELS[minor]
    numbers = list(range(2 * ring.channels))[:bound]
    steps = [ChannelStep(len(numbers), f"two channels (one of each tree) for each of {ring.channels} search channels")]

    def extend(end: int, rule: str) -> None:
        start = len(numbers)
        if end <= start:
            return
        for channel in range(start, end):
            numbers.append(numbers[channel - start])
        steps.append(ChannelStep(len(numbers), rule))

    if chain is not None and chain.bw_intra > chain.bw_inter and shape.nranks > shape.nodes:
        more = min(bound, len(numbers) + len(numbers) // 2)
        extend(more, "half as many again for CollNet's bandwidth inside the node")
    room = len(numbers) < _ENOUGH if has(minor, Feature.EXTRA_CHANNELS_BELOW_16) else 2 * len(numbers) <= bound
    hopper = shape.min_sm >= 90 if has(minor, Feature.EXTRA_CHANNELS_BLACKWELL) else shape.min_sm == 90
    if hopper and shape.nodes > 1 and ring.bw_intra > _FAST_RING and room:
        extend(2 * len(numbers), f"doubled: ring channels of more than {in_gbs(_FAST_RING)} between nodes")
    most = min(bounds.most, bounds.max_ctas)
    if most < len(numbers):
        del numbers[most:]
        steps.append(ChannelStep(most, "at most NCCL_MAX_NCHANNELS and NCCL_MAX_CTAS"))
    extend(max(bounds.least, bounds.min_ctas), "at least NCCL_MIN_NCHANNELS and NCCL_MIN_CTAS")
    if has(minor, Feature.CHANNELS_UP_TO_NVLS):
        extend(nvls, "repeated up to the NVLS channels")
    return numbers, steps


def nvls_possible(settings: Settings, gpus: int, minor: int) -> bool:
    """Whether NCCL tries NVLS at all: not with too few GPUs in the node's domain (ncclNvlsInit)."""
    return settings.nvls_enable and gpus >= (2 if has(minor, Feature.NVLS_OF_TWO_GPUS) else 3)


def nvls_channels(shape: CommShape, settings: Settings, bounds: Limits, *, sm: int, many_hosts: bool) -> int:
    """NVLS channels of a rank of compute capability `sm`. `many_hosts`: ranks outside the host or clique of rank 0."""
    minor = shape.minor
    if sm >= 100 and has(minor, Feature.BLACKWELL):
        by_net, fewer = has(minor, Feature.NVLS_CHANNELS_BY_NET), has(minor, Feature.NVLS_CHANNELS_ONE_NODE)
        many = shape.nodes > 1 if by_net else many_hosts
        count = _NVLS_BLACKWELL if many or not fewer else _NVLS_BLACKWELL_ONE_NODE
        if by_net and shape.min_sm >= 100 and many:
            count = _blackwell_nvls_over_nodes(shape.nodes, min(shape.local_ranks), shape.min_net_gbs)
    else:
        count = _NVLS_HOPPER
    asked = settings.number("NCCL_NVLS_NCHANNELS")
    if asked is not None and asked >= (1 if has(minor, Feature.NVLS_NCHANNELS_FROM_1) else 0):
        count = asked
    return max(bounds.min_ctas, min(bounds.max_ctas, count))


def _blackwell_nvls_over_nodes(nodes: int, per_node: int, net_bw: float) -> int:
    """ncclNvlsTreeSm100Tuning (src/transport/nvls.cc)."""
    if nodes == 2 and net_bw >= 48:
        return 32
    if net_bw >= 96:
        return 24 if per_node <= 8 else 32
    return 24 if net_bw >= 48 else _NVLS_BLACKWELL


def least_net_bw(system: System, gpu: Vertex, settings: Settings) -> float:
    """The least GB/s from a GPU to the NETs that its channels use, 0 without any (ncclTopoGetMinNetBw)."""
    if not system.nets:
        return 0.0
    return min(gpu.paths["NET"][net].bw for net in _nets_in_turn(system, gpu, settings))


def p2p_channels(system: System, settings: Settings, shape: CommShape, per_peer: int) -> tuple[int, int]:
    """Channels of send/recv in all and per peer, powers of two. `per_peer` is what all ranks agreed on
    (see `per_peer_of_rank`); before PEER_CHANNELS_AGREED NCCL looks at the GPUs of the domain alone."""
    minor, nranks = system.minor, shape.nranks
    bound = MAX_CHANNELS[minor]
    most = settings.number("NCCL_MAX_P2P_NCHANNELS")
    least = settings.number("NCCL_MIN_P2P_NCHANNELS") or 1
    total = max(min(shape.channels, bound if most is None else most), least, 1)
    if not has(minor, Feature.PEER_CHANNELS_AGREED):
        counts = [
            count
            for gpu in system.gpus
            for count in _per_peer_counts(system, gpu, settings, nranks=nranks, total=total)
        ]
        channels_each = power_of_two(min([total, *counts]))
        total = min(power_of_two(total), bound)
        return total, min(channels_each, total) if has(minor, Feature.PEER_CHANNELS_WITHIN_ALL) else channels_each
    total, channels_each = min(power_of_two(total), bound), power_of_two(per_peer)
    if shape.nodes > 1 and settings.number(_PER_NET_PEER) is None:
        while channels_each * -(-nranks // _PEERS_PER_BATCH) > total and channels_each > 1:
            channels_each //= 2
        return total, channels_each
    return total, min(channels_each, total)


def per_peer_of_rank(system: System, gpu: Vertex, settings: Settings, nranks: int) -> int:
    """Channels per peer as one rank would have it, before ranks agree on the least (PEER_CHANNELS_AGREED)."""
    return min([MAX_CHANNELS[system.minor], *_per_peer_counts(system, gpu, settings, nranks=nranks, total=0)])


def _per_peer_counts(system: System, gpu: Vertex, settings: Settings, *, nranks: int, total: int) -> list[int]:
    """Channels to every other rank of the domain, and once to a rank outside where there is one."""
    types = path_types(system.minor)
    nvlink = (types.nvl, types.nvb) if system.has(Feature.PEER_CHANNELS_OVER_NVB) else (types.nvl,)
    counts = []
    for peer in system.gpus:
        if peer is gpu:
            continue
        path = peer.paths["GPU"][gpu.index]
        links = int(path.bw / nvlink_bandwidth(gpu.sm, system.minor)) if path.type in nvlink else 1
        counts.append(2 * max(1, links))
    if nranks > len(system.gpus):
        counts.append(to_remote(system, gpu, settings, nranks=nranks, total=total))
    return counts


def to_remote(system: System, gpu: Vertex, settings: Settings, *, nranks: int, total: int) -> int:
    """Channels to a rank of another node."""
    asked = settings.number(_PER_NET_PEER)
    if asked is not None and asked >= 0:
        return asked
    if not system.has(Feature.PEER_CHANNELS_BY_NET):
        return 2
    if system.has(Feature.PEER_CHANNELS_AGREED):
        count, bw = _nets_by_turn_and_bw(system, gpu, settings)
        return max(count, -(-int(bw) // _NET_PER_CHANNEL)) if count else 2
    # More peers than channels can serve at once: one channel each.
    share = 1 if 2 * nranks > 4 * total else 2
    return max(_nets_needed(system, gpu), share)


def _nets_needed(system: System, gpu: Vertex) -> int:
    """Nearest NETs that it takes to fill the GPU's link to its CPU; none where it has no such link of its own."""
    to_cpu = [link.bw for link in gpu.links if link.remote.kind == "CPU"]
    wanted = to_cpu[-1] if to_cpu else 0.0
    count, bw = 0, 0.0
    for net in nearest(system, gpu, "NET")[0]:
        if bw >= wanted:
            break
        bw = single(bw + gpu.paths["NET"][net].bw)
        count += 1
    return count


def _nets_in_turn(system: System, gpu: Vertex, settings: Settings) -> list[int]:
    """Indices of the NETs that a GPU's channels use. Raises RejectedError where it reaches none."""
    return local_nets(system, gpu.index, settings.values.get("NCCL_NETDEVS_POLICY", ""))


def _nets_by_turn_and_bw(system: System, gpu: Vertex, settings: Settings) -> tuple[int, float]:
    if not system.nets:
        return 1, 0.0  # the NIC that the plugin of sockets adds to a file without any, slower than one channel needs
    wanted = gpu.paths["CPU"][local_cpu(system, gpu.index)].bw
    count, bw = 0, 0.0
    for net in _nets_in_turn(system, gpu, settings):
        bw = single(bw + gpu.paths["NET"][net].bw)
        count += 1
        if bw >= wanted:
            break
    return count, bw
