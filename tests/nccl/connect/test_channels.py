"""How many channels NCCL runs with: every rule of every version, by its inputs."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.small_trees import built, cpu, gpu, host, pci, slot
from topodiag.model.nccl_tree import Element
from topodiag.nccl.connect.channels import (
    limits,
    nvls_channels,
    nvls_possible,
    p2p_channels,
    per_peer_of_rank,
    runtime_channels,
)
from topodiag.nccl.graph.graph import System
from topodiag.nccl.settings import Settings, read_settings


def channels(searched: int, *, minor: int = 28, nodes: int = 1, sm: int = 80, bw: float = 20.0, nvls: int = 0,
             collnet: tuple[float, float] | None = None, **env: str) -> list[int]:  # fmt: skip
    numbers, steps = runtime_channels(
        searched,
        limits(read_settings(env, minor), minor),
        minor=minor,
        nodes=nodes,
        nranks=8 * nodes,
        min_sm=sm,
        ring_bw_intra=bw,
        collnet=collnet,
        nvls=nvls,
    )
    assert steps[-1].count == len(numbers)
    return numbers


def test_every_search_channel_becomes_two_up_to_what_the_version_has() -> None:
    assert channels(12) == list(range(24))
    assert len(channels(32, minor=28)) == 64
    assert len(channels(16, minor=24)) == 32


def test_fast_rings_of_hopper_between_nodes_get_four_channels_each_up_to_sixteen() -> None:
    assert channels(1, nodes=2, sm=90, bw=48.0) == [0, 1, 0, 1]
    assert len(channels(7, nodes=2, sm=90, bw=48.0)) == 28
    assert len(channels(8, nodes=2, sm=90, bw=48.0)) == 16
    assert len(channels(1, nodes=2, sm=90, bw=45.0)) == 2
    assert len(channels(1, nodes=1, sm=90, bw=48.0)) == 2
    assert len(channels(1, nodes=2, sm=80, bw=48.0)) == 2


def test_up_to_2_19_hoppers_channels_double_as_long_as_there_is_room() -> None:
    assert len(channels(8, minor=19, nodes=2, sm=90, bw=48.0)) == 32
    assert len(channels(9, minor=19, nodes=2, sm=90, bw=48.0)) == 18
    assert len(channels(8, minor=20, nodes=2, sm=90, bw=48.0)) == 16


def test_blackwell_doubles_since_2_25() -> None:
    assert len(channels(2, minor=24, nodes=2, sm=100, bw=48.0)) == 4
    assert len(channels(2, minor=25, nodes=2, sm=100, bw=48.0)) == 8


def test_from_2_20_to_2_27_the_nvls_channels_count_as_collective_channels() -> None:
    assert [len(channels(2, minor=minor, nvls=16)) for minor in (18, 19, 20, 27, 28, 30)] == [4, 4, 16, 16, 4, 4]
    assert channels(2, minor=27, nvls=16)[4:] == [0, 1, 2, 3] * 3


def test_collnet_adds_half_where_the_node_is_faster_inside() -> None:
    assert len(channels(4, nodes=2, collnet=(48.0, 24.0))) == 12
    assert len(channels(4, nodes=2, collnet=(24.0, 24.0))) == 8


def test_the_most_cuts_before_the_least_repeats() -> None:
    assert channels(12, NCCL_MAX_NCHANNELS="3") == [0, 1, 2]
    assert channels(2, NCCL_MIN_NCHANNELS="6") == [0, 1, 2, 3, 0, 1]
    assert channels(12, NCCL_MAX_NCHANNELS="2", NCCL_MIN_NCHANNELS="4") == [0, 1, 0, 1]
    assert len(channels(12, NCCL_MAX_CTAS="5")) == 5
    assert len(channels(12, NCCL_MAX_NRINGS="4")) == 4


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
    return nvls_channels(given_, limits(given_, minor), minor=minor, sm=sm, min_sm=sm, many_hosts=hosts > 1,
                         local_ranks=ranks, net_bw=bw)  # fmt: skip


def test_nvls_has_sixteen_channels_on_hopper_and_more_on_blackwell() -> None:
    assert nvls(28) == 16
    assert [nvls(minor, sm=100) for minor in (24, 25, 26, 27, 28, 30)] == [16, 32, 32, 24, 24, 24]
    assert [nvls(minor, sm=100, hosts=2, ranks=(8, 8)) for minor in (24, 26, 27, 29, 30)] == [16, 32, 32, 32, 32]


def test_2_30_goes_by_the_nic_between_blackwell_nodes() -> None:
    two, four, wide = (8, 8), (8,) * 4, (72,) * 4
    assert nvls(30, sm=100, hosts=2, ranks=two, bw=48.0) == 32
    assert nvls(30, sm=100, hosts=4, ranks=four, bw=48.0) == 24
    assert nvls(30, sm=100, hosts=4, ranks=four, bw=96.0) == 24
    assert nvls(30, sm=100, hosts=4, ranks=wide, bw=96.0) == 32
    assert nvls(30, sm=100, hosts=4, ranks=four, bw=25.0) == 32


def test_settings_bound_nvls_channels() -> None:
    assert nvls(28, NCCL_NVLS_NCHANNELS="8") == 8
    assert nvls(28, NCCL_MAX_CTAS="4") == 4
    assert nvls(28, NCCL_MIN_CTAS="20") == 20
    assert nvls(28, NCCL_NVLS_NCHANNELS="eight") == 16


def test_nvls_takes_three_gpus_before_2_28_and_two_since() -> None:
    assert [nvls_possible(Settings(), 2, minor) for minor in (18, 27, 28, 30)] == [False, False, True, True]
    assert nvls_possible(Settings(), 3, 18)
    assert not nvls_possible(Settings(), 1, 30)
    assert not nvls_possible(read_settings({"NCCL_NVLS_ENABLE": "0"}, 28), 8, 28)


def switched(links: int = 18, nics: int = 1, mbps: int = 400000) -> Element:
    """Two GPUs on an NVSwitch, each below a PCIe switch with NICs."""
    return host(cpu(0, *(slot(at, nics, links=links, mbps=mbps) for at in (1, 2))))


def per_peer(system: System, nranks: int, runtime: int, nodes: int = 1, **env: str) -> tuple[int, int]:
    given_ = read_settings(env, system.minor)
    least = min(per_peer_of_rank(system, one, given_, nranks) for one in system.gpus) if system.minor >= 29 else 0
    return p2p_channels(system, given_, nranks=nranks, channels=runtime, nodes=nodes, per_peer=least)


@pytest.mark.parametrize("minor", [18, 21, 27, 28, 29, 30])
def test_nvlink_gives_two_channels_per_link_in_powers_of_two(minor: int) -> None:
    assert per_peer(built(switched(links=18), minor=minor), 2, 24) == (32, 32)
    assert per_peer(built(switched(links=4), minor=minor), 2, 24) == (32, 8)


def test_a_peer_over_pcie_has_two_channels() -> None:
    plain = built(host(cpu(0, pci("10", gpu("11"), gpu("12")))))
    assert per_peer(plain, 2, 2) == (2, 2)
    assert per_peer(plain, 2, 12) == (16, 2)


def test_between_nodes_two_channels_per_peer_until_there_are_many_peers() -> None:
    system = built(switched(), nodes=2)
    assert per_peer(system, 4, 16, nodes=2) == (16, 2)
    assert per_peer(system, 32, 16, nodes=16) == (16, 2)
    assert per_peer(system, 33, 16, nodes=17) == (16, 1)
    assert per_peer(built(switched(), minor=18, nodes=2), 33, 16, nodes=17) == (16, 2)


def test_since_2_29_channels_per_peer_follow_the_nics_bandwidth() -> None:
    # 48 GB/s of a NIC at 14 GB/s per channel: four; two NICs give twice the bandwidth up to what the CPU link takes.
    assert per_peer(built(switched(), minor=29, nodes=2), 4, 16, nodes=2) == (16, 4)
    assert per_peer(built(switched(mbps=100000), minor=30, nodes=2), 4, 16, nodes=2) == (16, 1)
    assert per_peer(built(switched(), minor=30, nodes=2), 64, 16, nodes=32) == (16, 2)


def test_settings_set_channels_per_peer_and_in_all() -> None:
    system = built(switched(), nodes=2)
    assert per_peer(system, 4, 16, nodes=2, NCCL_NCHANNELS_PER_NET_PEER="8") == (16, 8)
    assert per_peer(system, 4, 16, nodes=2, NCCL_MAX_P2P_NCHANNELS="4") == (4, 2)
    assert per_peer(system, 4, 4, nodes=2, NCCL_MIN_P2P_NCHANNELS="9") == (16, 2)
    newer = built(switched(), minor=30, nodes=2)
    assert per_peer(newer, 64, 16, nodes=32, NCCL_NCHANNELS_PER_NET_PEER="8") == (16, 8)
