"""The compiled search, which skips repeated visits, against one that walks every link each time: the same graphs."""

from dataclasses import asdict
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.nccl.plain_search import plain_attempt
from tests.nccl.small_machines import machines
from tests.nccl.small_trees import built, cpu, gpu, host, nic, nvlink, pci, to_gpu
from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.graph import RejectedError, SearchGraph
from topodiag.nccl.search import search
from topodiag.nccl.search.ceiling import Ceiling
from topodiag.nccl.search.search import search_graphs
from topodiag.nccl.settings import read_settings

Graphs = list[dict[str, object]]


def compiled(tree: Element, minor: int, nodes: int, env: dict[str, str], collnet: bool) -> Graphs | str:
    """Rings and trees, or why NCCL would give up."""
    try:
        system = built(tree, minor=minor, nodes=nodes, **env)
        graphs = search_graphs(system, read_settings(env, minor), nvls=False, collnet=collnet)
    except RejectedError as rejected:
        return rejected.words
    return [asdict(graph) for graph in graphs if graph.id != 4]


def plain(tree: Element, minor: int, nodes: int, env: dict[str, str], collnet: bool) -> Graphs | str:
    """The same without compiled ways, and without remembering visits or attempts or leaving one out."""
    try:
        system = built(tree, minor=minor, nodes=nodes, **env)
    except RejectedError as rejected:
        return rejected.words
    walk = plain_attempt({net.index: net.bw for net in system.nets})

    def attempt(this: object, trial: SearchGraph, best: SearchGraph, time: int, _known: object) -> int:
        if trial.pattern == 6:
            return time
        return walk(this.guide, trial, best, time, False)  # type: ignore[attr-defined]

    try:
        with (
            patch.object(search.Search, "_attempt", attempt),
            patch.object(Ceiling, "may_improve", lambda *_, **__: True),
        ):
            graphs = search_graphs(system, read_settings(env, minor), nvls=False, collnet=collnet)
    except RejectedError as rejected:
        return rejected.words
    return [asdict(graph) for graph in graphs if graph.id != 4]


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    machines(gpus=3, nics=2),
    st.sampled_from(range(18, 32)),
    st.integers(1, 2),
    st.sampled_from([{}, {}, {"NCCL_CROSS_NIC": "0"}, {"NCCL_CROSS_NIC": "1"}, {"NCCL_P2P_LEVEL": "SYS"}]),
    st.booleans(),
)
def test_both_find_the_same_on_any_small_machine(
    tree: Element, minor: int, nodes: int, env: dict[str, str], collnet: bool
) -> None:
    assert compiled(tree, minor, nodes, env, collnet) == plain(tree, minor, nodes, env, collnet)


def _sockets(sm: int, gdr: int) -> Element:
    return host(
        cpu(0, pci("80", gpu("10", dev=0, sm=sm), gpu("11", dev=1, sm=sm), nic("40", gdr=gdr))),
        cpu(1, pci("81", gpu("12", dev=2, sm=sm), gpu("13", dev=3, sm=sm), nic("41", gdr=gdr))),
    )


def _cube() -> Element:
    """Four GPUs, each with NVLink to all others, as in half a DGX-1."""
    buses = [f"1{at}" for at in range(4)]
    devices = [
        gpu(bus, *(to_gpu(other, 1) for other in buses if other != bus), dev=at, sm=70) for at, bus in enumerate(buses)
    ]
    return host(cpu(0, pci("80", *devices[:2], nic("40")), pci("81", *devices[2:], nic("41"))))


def _switched() -> Element:
    devices = [gpu(f"1{at}", nvlink("0000:ff:00.0", 4), dev=at, sm=90) for at in range(3)]
    return host(cpu(0, *(pci(f"8{at}", one, nic(f"4{at}", latency=at)) for at, one in enumerate(devices))))


@pytest.mark.parametrize("minor", [18, 19, 20, 21, 22, 23, 25, 26, 27, 28, 29, 30])
@pytest.mark.parametrize("tree", [_sockets(80, 1), _sockets(70, 0), _cube(), _switched()])
def test_both_find_the_same_in_every_version(tree: Element, minor: int) -> None:
    assert compiled(tree, minor, 2, {}, False) == plain(tree, minor, 2, {}, False)


@pytest.mark.parametrize("links", [(4, 4, 4, 4), (4, 0, 4, 4)])
def test_both_find_the_same_where_gpus_follow_each_other_in_a_row(links: tuple[int, ...]) -> None:
    """Behind an NVSwitch, whole and with a GPU that has no links."""
    devices = [
        gpu(f"1{at}", *([nvlink("0000:ff:00.0", count)] if count else []), dev=at, sm=90)
        for at, count in enumerate(links)
    ]
    tree = host(cpu(0, *(pci(f"8{at}", one, *([nic(f"4{at}")] if at < 2 else [])) for at, one in enumerate(devices))))
    assert compiled(tree, 30, 2, {}, False) == plain(tree, 30, 2, {}, False)
