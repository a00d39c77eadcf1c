"""Ways as integers take from links what NCCL's single precision would, and fail where it would."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nccl.plain_search import rounded
from tests.nccl.small_trees import built, cpu, gpu, host, nic, pci, to_gpu
from topodiag.nccl.numbers import single
from topodiag.nccl.search.follow import Roads, amounts
from topodiag.nccl.search.trial import TOTAL_BUDGET, ladder

SPEEDS = sorted(
    {
        speed
        for minor in range(18, 32)
        for sm in (80, 90, 100)
        for inter in (0, 1)
        for speed in ladder(minor, sm, bool(inter))
    }
)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("speed", SPEEDS)
def test_a_link_has_room_in_thousandths_exactly_if_it_has_in_single_precision(speed: float, factor: float) -> None:
    exact = single(speed * factor)
    plain, pci_amount, _, _ = amounts(exact)
    for amount, needed in ((plain, exact), (pci_amount, single(single(exact * 6) / 5))):
        assert single(amount / 1000) >= needed
        assert single((amount - 1) / 1000) < needed


@given(st.integers(0, 2_000_000), st.sampled_from(SPEEDS), st.booleans())
def test_taking_in_thousandths_is_taking_in_single_precision(free: int, speed: float, over_cpu: bool) -> None:
    """Up to 2000 GB/s: wider are only links inside a GPU and from a CPU to its own NIC, which never run out."""
    exact = single(single(single(speed) * 6) / 5) if over_cpu else speed
    amount = amounts(speed)[1 if over_cpu else 0]

    assert rounded(single(single(free / 1000) - exact)) == rounded((free - amount) / 1000)


def test_following_a_way_leaves_every_guard_bit_exactly_while_there_is_room() -> None:
    """Two NVLinks of 20 GB/s between two GPUs: 30 fit once, 20 twice."""
    system = built(host(cpu(0, gpu("10", to_gpu("11", 2), dev=0), gpu("11", to_gpu("10", 2), dev=1))))
    roads = Roads(system)
    way = roads.gpu_gpu[0][1]
    assert way is not None

    def fits(speed: float, times: int) -> bool:
        state = roads.start - times * way.step(speed)[0]
        return state & roads.guard == roads.guard

    assert fits(30, 1)
    assert not fits(30, 2)
    assert fits(20, 2)
    assert not fits(20, 3)


def test_the_other_direction_has_links_of_its_own() -> None:
    system = built(host(cpu(0, gpu("10", to_gpu("11", 2), dev=0), gpu("11", to_gpu("10", 2), dev=1))))
    roads = Roads(system)
    there, back = roads.gpu_gpu[0][1], roads.gpu_gpu[1][0]

    state = roads.start - there.step(40)[0] - back.step(40)[0]
    assert state & roads.guard == roads.guard


def test_the_free_bandwidth_of_a_gpus_pci_link_is_told_in_whole_gbs() -> None:
    system = built(host(cpu(0, pci("80", gpu("10", dev=0), nic("40")))), nodes=2)
    roads = Roads(system)
    way = roads.net_gpu[0][0]

    assert roads.free_pci(roads.start, 0) == 24
    assert roads.free_pci(roads.start - way.step(2.4)[0], 0) == 21


def test_a_share_that_is_no_thousandth_needs_the_next_one() -> None:
    """A third of 10 GB/s: 3.333 are taken, but 3.334 must be free."""
    system = built(host(cpu(0, gpu("10", to_gpu("11", 1), dev=0), gpu("11", to_gpu("10", 1), dev=1))))
    way = Roads(system).gpu_gpu[0][1]
    need, take = way.share(10 / 3)

    assert need == way.uses[0] * 3334
    assert take == way.uses[0] * 3333


def test_ladders_fall_and_grow_with_the_versions() -> None:
    for minor in range(18, 32):
        for sm in (70, 80, 90, 100, 120):
            for inter in (False, True):
                speeds = ladder(minor, sm, inter)
                assert list(speeds) == sorted(set(speeds), reverse=True)
    assert ladder(30, 100, True)[:4] == (96, 86, 80, 48)
    assert ladder(29, 100, True)[:3] == (96, 80, 48)
    assert ladder(28, 100, True)[:3] == (96, 48, single(45.1))
    assert ladder(24, 100, False) == ladder(24, 90, False)
    assert ladder(18, 90, False)[:2] == (60, 40)
    assert TOTAL_BUDGET[18] < TOTAL_BUDGET[19]
