"""The worked examples that the project was asked to reproduce, to the last printed digit."""

from __future__ import annotations

import pytest

from topodiag.cost import collectives, memory, traffic
from topodiag.cost.alpha_beta import Link
from topodiag.cost.collectives import shape, time_us
from topodiag.cost.hierarchy import leaders, total_us

MIB, GIB = float(1 << 20), float(1 << 30)
NVLINK, NETWORK = Link(1.0, 300.0, "NVLink"), Link(5.0, 12.5, "network")

TIERS = [
    (Link(1.0, 300.0, "NVLink"), "0.90", "1.0"),
    (Link(2.0, 25.0, "PCIe"), "10.74", "12.0"),
    (Link(3.0, 50.0, "InfiniBand NDR"), "5.37", "6.0"),
    (Link(30.0, 3.1, "Ethernet 25G"), "86.62", "96.7"),
]


def ms(us: float) -> str:
    return f"{us / 1000:.2f}"


@pytest.mark.parametrize(("link", "took", "against"), TIERS, ids=lambda each: getattr(each, "name", None))
def test_a_buffer_of_256_mib_over_each_tier(link: Link, took: str, against: str) -> None:
    fastest = TIERS[0][0].time_us(256 * MIB)
    assert ms(link.time_us(256 * MIB)) == took
    assert f"{link.time_us(256 * MIB) / fastest:.1f}" == against


def test_the_crossover_of_nvlink_is_about_a_megabyte_and_of_infiniband_about_100_kilobytes() -> None:
    assert Link(1.0, 900.0).crossover == pytest.approx(0.9e6)
    assert Link(2.0, 50.0).crossover == pytest.approx(100e3)


def test_below_its_crossover_a_link_is_bound_by_latency_and_above_it_by_bandwidth() -> None:
    link = Link(2.0, 50.0)
    assert (link.bound(4096), link.bound(GIB)) == ("latency", "bandwidth")
    assert link.effective_gbs(link.crossover) == pytest.approx(25.0)


def test_a_ring_of_8_on_nvlink_and_over_the_network() -> None:
    packed = time_us("all_reduce", "ring", 8, GIB, NVLINK)
    scattered = time_us("all_reduce", "ring", 8, GIB, NETWORK)
    assert ms(packed) == "6.28"
    assert ms(scattered) == "150.39"
    assert f"{scattered / packed:.1f}" == "24.0"


def test_a_flat_ring_of_32_against_leaders_of_4_nodes() -> None:
    flat = time_us("all_reduce", "ring", 32, GIB, NETWORK)
    hierarchy = total_us(leaders(4, 8, NVLINK, NETWORK), GIB)
    assert ms(flat) == "166.74"
    assert ms(hierarchy) == "138.74"
    assert f"{flat / hierarchy:.2f}" == "1.20"


def test_hierarchy_gains_most_where_latency_binds_and_falls_to_a_floor() -> None:
    def gain(power: int) -> float:
        size = 4.0 * 2**power
        return time_us("all_reduce", "ring", 32, size, NETWORK) / total_us(leaders(4, 8, NVLINK, NETWORK), size)

    gains = [gain(power) for power in range(16, 29)]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 3
    assert f"{gains[-1]:.2f}" == "1.20"


@pytest.mark.parametrize(("algorithm", "took"), [("unchunked_ring", "161.15"), ("ring", "10.16")])
def test_a_ring_of_single_hops_costs_about_k_times_a_chunked_one(algorithm: str, took: str) -> None:
    """K = 16, 256 MiB, InfiniBand NDR: 2(K-1) messages of n bytes, or of n/K."""
    made = time_us("all_reduce", algorithm, 16, 256 * MIB, Link(3.0, 50.0))
    by_hand = 30 * (3.0 + 256 * MIB / (1 if algorithm == "unchunked_ring" else 16) / 50e3)
    assert made == pytest.approx(by_hand)
    assert ms(made) == took
    assert shape("all_reduce", algorithm, 16).messages == 30


def test_bytes_of_a_ring_hardly_depend_on_the_ranks() -> None:
    assert traffic.ring_bytes(1e9, 8) == pytest.approx(1.75e9)
    assert traffic.ring_bytes(1e9, 1024) == pytest.approx(2e9, rel=1e-3)
    assert collectives.bytes_per_rank("reduce_scatter", "ring", 8, 1e9) == pytest.approx(traffic.ring_bytes(1e9, 8) / 2)
    assert collectives.busbw_factor("all_reduce", 8) == pytest.approx(1.75)


def test_data_parallel_traffic_of_70b_on_8_gpus() -> None:
    sent = traffic.ring_bytes(traffic.data(70e9, 2)[0].bytes, 8)
    assert sent / 1e9 == pytest.approx(245)
    fast, slow = sent / 600e9, sent / 50e9
    assert (f"{fast:.2f}", f"{slow:.1f}") == ("0.41", "4.9")
    assert (f"{fast / 2:.0%}", f"{slow / 2:.0%}") == ("20%", "245%")


def test_the_shorthand_divides_the_buffer_by_the_rate_once() -> None:
    assert (f"{140e9 / 600e9:.2f}", f"{140e9 / 50e9:.1f}") == ("0.23", "2.8")


def test_a_pipeline_boundary_of_batch_32_carries_a_gibibyte() -> None:
    size = traffic.activation_bytes(32, 2048, 8192, 2)
    assert size == GIB
    assert f"{1e9 / 50e9 * 1e3:.0f}" == "20", "ms, of the round gigabyte"
    assert f"{Link(0.0, 50.0).time_us(size) / 1e3:.1f}" == "21.5", "ms, of the gibibyte"


def test_a_tensor_parallel_all_reduce_of_16_mb() -> None:
    assert f"{Link(0.0, 600.0).time_us(16e6) / 1e3:.3f}" == "0.027", "ms, buffer over rate once"


def test_a_tensor_parallel_layer_over_infiniband_is_18_times_slower_than_over_nvlink() -> None:
    size = traffic.activation_bytes(32, 2048, 8192, 2)
    (calls,) = traffic.tensor(1, 1, size)
    assert calls.calls == 4, "two forward and as many backward"
    assert calls.size == 2 * 32 * 2048 * 8192
    slow, fast = (time_us("all_reduce", "ring", 8, size, Link(0.0, gbs)) for gbs in (50.0, 900.0))
    assert f"{slow / fast:.0f}" == "18"


def test_a_400_gigabit_nic_is_50_gigabytes_per_second() -> None:
    assert 400 / 8 == 50


@pytest.mark.parametrize(("stage", "total"), [(0, 120), (1, 50), (2, 32.5), (3, 15)])
def test_zero_on_10b_with_adam_over_8_gpus(stage: int, total: float) -> None:
    assert memory.states(10e9, 8, stage).total == pytest.approx(total)


def test_the_states_of_70b() -> None:
    made = memory.states(70e9)
    assert (made.weights, made.gradients, made.optimiser) == pytest.approx((140, 140, 560))


@pytest.mark.parametrize(
    ("stages", "micro_batches", "idle"),
    [(4, 4, "43 %"), (4, 16, "16 %"), (4, 32, "8.6 %"), (4, 64, "4.5 %"), (8, 64, "9.9 %")],
)
def test_the_bubble_of_a_pipeline(stages: int, micro_batches: int, idle: str) -> None:
    share = 100 * traffic.bubble(stages, micro_batches)
    assert (f"{share:.0f} %" if share > 10 else f"{share:.1f} %") == idle
