"""How many channels NCCL runs with: every rule of every version, by its inputs."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.small_trees import built, cpu, gpu, host, pci, slot
from tests.tables import examples
from topodiag.model.nccl_tree import Element
from topodiag.nccl.connect.channels import (
    limits,
    nvls_channels,
    nvls_possible,
    p2p_channels,
    per_peer_of_rank,
    runtime_channels,
)
from topodiag.nccl.graph.graph import RING, TREE, CommShape, SearchGraph, System
from topodiag.nccl.settings import Settings, read_settings


def shape(
    local_ranks: tuple[int, ...], minor: int = 28, *, sm: int = 80, nranks: int | None = None, channels: int = 0,
    graphs: dict[int, SearchGraph] | None = None, net_gbs: float = 0.0
) -> CommShape:  # fmt: skip
    count = sum(local_ranks) if nranks is None else nranks
    return CommShape(minor, count, local_ranks, sm, sm, 1, 1, graphs or {}, channels, 0, True, min_net_gbs=net_gbs)


def channels(searched: int, *, minor: int = 28, nodes: int = 1, sm: int = 80, bw: float = 20.0, nvls: int = 0,
             collnet: tuple[float, float] | None = None, **env: str) -> list[int]:  # fmt: skip
    graphs = {0: SearchGraph(0, RING, channels=searched, bw_intra=bw)}
    if collnet is not None:
        graphs[2] = SearchGraph(2, TREE, bw_intra=collnet[0], bw_inter=collnet[1])
    numbers, steps = runtime_channels(
        shape((8,) * nodes, minor, sm=sm, graphs=graphs), limits(read_settings(env, minor), minor), nvls
    )
    assert steps[-1].count == len(numbers)
    return numbers


@examples("cases")
def test_channels_at_run_time(cases: list[tuple[dict[str, Any], int | list[int]]]) -> None:
    """Their number, or which channels of the search they repeat."""
    for given_, wanted in cases:
        numbers = channels(**given_)
        assert (numbers if isinstance(wanted, list) else len(numbers)) == wanted, given_


def test_limits_stay_within_what_nccl_has() -> None:
    wild = limits(read_settings({"NCCL_MIN_NCHANNELS": "999", "NCCL_MAX_NCHANNELS": "-3"}, 28), 28)
    assert (wild.least, wild.most) == (64, 1)
    assert limits(read_settings({"NCCL_MAX_CTAS": "4", "NCCL_MIN_CTAS": "9"}, 28), 28).min_ctas == 4
    assert limits(Settings(), 24).max_ctas == 32


@given(
    st.integers(1, 32),
    st.sampled_from(range(18, 32)),
    st.tuples(st.integers(1, 4), st.sampled_from([70, 80, 90, 100])),
    st.tuples(st.integers(-5, 99), st.integers(-5, 99)),
)
def test_channels_repeat_from_the_start_and_stay_within_bounds(
    searched: int, minor: int, machine: tuple[int, int], bounds: tuple[int, int]
) -> None:
    searched = min(searched, 16 if minor < 25 else 32)
    least, most = map(str, bounds)
    env = {"NCCL_MIN_NCHANNELS": least, "NCCL_MAX_NCHANNELS": most}
    numbers = channels(searched, minor=minor, nodes=machine[0], sm=machine[1], bw=48.0, nvls=16, **env)
    assert 1 <= len(numbers) <= (64 if minor >= 25 else 32)
    assert all(after in {before + 1, 0} for before, after in pairwise(numbers))
    assert max(numbers) < 2 * searched


def nvls(
    minor: int, *, sm: int = 90, hosts: int = 1, ranks: tuple[int, ...] = (8,), bw: float = 0.0, **env: str
) -> int:
    given_ = read_settings(env, minor)
    comm = shape(ranks, minor, sm=sm, net_gbs=bw)
    return nvls_channels(comm, given_, limits(given_, minor), sm=sm, many_hosts=hosts > 1)


@examples("cases")
def test_channels_of_nvls(cases: list[tuple[dict[str, Any], int]]) -> None:
    for given_, wanted in cases:
        assert nvls(**given_) == wanted, given_


def test_nvls_takes_three_gpus_before_2_28_and_two_since() -> None:
    assert [nvls_possible(Settings(), 2, minor) for minor in (18, 27, 28, 30)] == [False, False, True, True]
    assert nvls_possible(Settings(), 3, 18)
    assert not nvls_possible(Settings(), 1, 30)
    assert not nvls_possible(read_settings({"NCCL_NVLS_ENABLE": "0"}, 28), 8, 28)


def switched(links: int = 18, nics: int = 1, mbps: int = 400000) -> Element:
    """Two GPUs on an NVSwitch, each below a PCIe switch with NICs."""
    return host(cpu(0, *(slot(at, nics, links=links, mbps=mbps) for at in (1, 2))))


PLAIN = host(cpu(0, pci("10", gpu("11"), gpu("12"))))


def per_peer(system: System, nranks: int, runtime: int, nodes: int = 1, **env: str) -> tuple[int, int]:
    given_ = read_settings(env, system.minor)
    least = min(per_peer_of_rank(system, one, given_, nranks) for one in system.gpus) if system.minor >= 29 else 0
    return p2p_channels(system, given_, shape((1,) * nodes, nranks=nranks, channels=runtime), least)


@examples("cases")
def test_channels_in_all_and_for_each_peer(cases: list[tuple[dict[str, Any], dict[str, Any], list[int]]]) -> None:
    """On two GPUs of an NVSwitch, or plain ones, of one or several versions."""
    for machine, asked, wanted in cases:
        options = dict(machine)
        minors = options.pop("minor", 28)
        tree = PLAIN if options.pop("plain", False) else switched(**options)
        for minor in minors if isinstance(minors, list) else [minors]:
            system = built(tree, minor=minor, nodes=min(asked.get("nodes", 1), 2))
            assert per_peer(system, **asked) == tuple(wanted), (machine, asked, minor)
