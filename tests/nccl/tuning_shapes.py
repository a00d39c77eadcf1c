"""Communicators for the tests of the tuning model: the shape of a machine's graphs, as NCCL prints them."""

from hypothesis import strategies as st

from topodiag.model.nccl_versions import NEWEST, OLDEST, path_types
from topodiag.nccl.graph.graph import BALANCED_TREE, NVLS, RING, SPLIT_TREE, TREE, CommShape, SearchGraph


def graph(
    channels: int,
    bw: float,
    *,
    inter: float | None = None,
    pattern: int = RING,
    same: int = 1,
    types: tuple[str, str] = ("NVL", "PIX"),
    minor: int = 28,
) -> SearchGraph:
    intra, outer = (path_types(minor).numbers[kind] for kind in types)
    return SearchGraph(
        0, pattern, channels=channels, bw_intra=bw, bw_inter=bw if inter is None else inter, type_intra=intra,
        type_inter=outer, same_channels=same,
    )  # fmt: skip


def h100(minor: int = 28, nodes: int = 1, *, vendor: int = 1, inter_type: str = "PIX") -> CommShape:
    """DGX H100: 8 GPUs over NVSwitch and 8 NICs of 400 Gb/s a node, as NCCL 2.21 and later search it."""
    types = ("NVL", inter_type)
    if nodes == 1:
        ring, tree = (
            graph(12, 30, minor=minor, types=types),
            graph(12, 30, pattern=BALANCED_TREE, minor=minor, types=types),
        )
        nvls = graph(8, 40, inter=60, pattern=NVLS, same=0, minor=minor, types=types)
    else:
        ring, tree = (
            graph(8, 48, same=0, minor=minor, types=types),
            graph(8, 48, pattern=TREE, same=0, minor=minor, types=types),
        )
        nvls = graph(8, 40, inter=48, pattern=NVLS, same=0, minor=minor, types=types)
    return CommShape(
        minor=minor,
        nranks=8 * nodes,
        local_ranks=(8,) * nodes,
        min_sm=90,
        max_sm=90,
        cpu_arch=1,
        cpu_vendor=vendor,
        graphs={0: ring, 1: tree, 3: nvls},
        channels=24 if nodes == 1 else 16,
        nvls_channels=16,
        nvs=True,
        max_tree_pattern=tree.pattern,
    )


def one_gpu_nodes(minor: int, nodes: int) -> CommShape:
    """One H100 of each node: what a data-parallel group of one rail is."""
    ring, tree = graph(2, 24, types=("LOC", "PIX")), graph(2, 48, inter=24, pattern=TREE, types=("LOC", "PIX"))
    return CommShape(minor, nodes, (1,) * nodes, 90, 90, 1, 1, {0: ring, 1: tree}, 4, 0, True)


@st.composite
def graphs(draw: st.DrawFn, minor: int, pattern: int) -> SearchGraph:
    return SearchGraph(
        id=0,
        pattern=pattern,
        channels=draw(st.integers(1, 32)),
        bw_intra=draw(st.floats(0.1, 100)),
        bw_inter=draw(st.floats(0.1, 100)),
        type_intra=draw(st.integers(0, path_types(minor).sys)),
        type_inter=draw(st.integers(0, path_types(minor).sys)),
        cross_nic=draw(st.integers(0, 2)),
        same_channels=draw(st.integers(0, 1)),
        latency_inter=draw(st.floats(0, 10)),
    )


@st.composite
def shapes(draw: st.DrawFn) -> CommShape:
    """Any communicator of two ranks or more, with and without NVLS and CollNet."""
    minor = draw(st.integers(OLDEST, NEWEST))
    local = draw(st.lists(st.integers(1, 40), min_size=1, max_size=5).filter(lambda ranks: sum(ranks) > 1))
    sm = draw(st.sampled_from((52, 60, 70, 75, 80, 86, 89, 90, 100, 103, 120)))
    tree = draw(st.sampled_from((BALANCED_TREE, SPLIT_TREE, TREE)))
    fuseds = {0: draw(graphs(minor, RING)), 1: draw(graphs(minor, tree))}
    nvls, collnet = draw(st.booleans()), draw(st.booleans())
    if nvls:
        fuseds[3] = draw(graphs(minor, NVLS))
    if collnet:
        fuseds |= {number: draw(graphs(minor, TREE)) for number in (2, 4)}
    return CommShape(
        minor=minor,
        nranks=sum(local),
        local_ranks=tuple(local),
        min_sm=sm,
        max_sm=draw(st.sampled_from((sm, 120))),
        cpu_arch=draw(st.integers(1, 4)),
        cpu_vendor=draw(st.integers(-1, 4)),
        graphs=fuseds,
        channels=draw(st.integers(1, 64)),
        nvls_channels=16 if nvls else 0,
        nvs=draw(st.booleans()),
        max_tree_pattern=tree,
        collnet=collnet,
        nvls_heads=draw(st.integers(0, 8)),
    )
