"""Attempts of the search that cannot find anything better are not made; whether a search can make NCCL give up."""

import re
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.nccl.plain_search import rounded
from tests.nccl.small_machines import machines
from tests.nccl.small_trees import built, cpu, gpu, host, nic, nvlink, pci, to_gpu
from topodiag.model.nccl_enums import Graph
from topodiag.model.nccl_tree import Element
from topodiag.model.nccl_versions import NEWEST, OLDEST, spell_version
from topodiag.nccl import search as search_module
from topodiag.nccl.graph.attach import count_gpus
from topodiag.nccl.graph.graph import RING, TREE, RejectedError, SearchGraph, System
from topodiag.nccl.numbers import single
from topodiag.nccl.predict import predict_tree
from topodiag.nccl.search import search
from topodiag.nccl.search.ceiling import Ceiling
from topodiag.nccl.search.follow import Roads, amounts
from topodiag.nccl.search.search import search_graphs
from topodiag.nccl.search.searched import _NAMES, _asked, surely_searched
from topodiag.nccl.search.trial import TOTAL_BUDGET, Budget, ladder
from topodiag.nccl.settings import Settings, read_settings


def _found(tree: Element, minor: int) -> list[dict[str, object]]:
    system = built(tree, minor=minor, nodes=2)
    return [asdict(graph) for graph in search_graphs(system, read_settings({}, minor), nvls=False, collnet=True)]


def _switched(links: tuple[int, ...], speeds: tuple[int, ...], gdr: int = 1) -> Element:
    """GPUs with so many NVLinks to an NVSwitch each, and beside each a NIC of so many Mb/s."""
    return host(
        cpu(
            0,
            *(
                pci(
                    f"8{at}",
                    gpu(f"1{at}", *([nvlink("0000:ff:00.0", count)] if count else []), dev=at, sm=90),
                    nic(f"4{at}", speed, gdr=gdr),
                )
                for at, (count, speed) in enumerate(zip(links, speeds, strict=True))
            ),
        )
    )


def _may(*_: object) -> bool:
    """In place of what tells that an attempt is in vain: none is."""
    return True


FAULTS = {
    "none": _switched((18, 18, 18), (200_000,) * 3),
    "links down": _switched((18, 9, 18), (200_000,) * 3),
    "a slow port": _switched((18, 18, 18), (200_000, 100_000, 200_000)),
    "no GPUDirect": _switched((18, 18), (200_000,) * 2, gdr=0),
}


@pytest.mark.parametrize("minor", [19, 30])
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_else_is_found_on_a_machine_with_a_fault(fault: str, minor: int) -> None:
    with patch.object(Ceiling, "may_improve", _may):
        by_all = _found(FAULTS[fault], minor)
    assert _found(FAULTS[fault], minor) == by_all


def _attempts(tree: Element) -> int:
    numbers: list[int] = []
    whole = vars(search)["attempt"]

    def counted(*given: object) -> int:
        numbers.append(1)
        return int(whole(*given))

    with patch.object(search, "attempt", counted):
        _found(tree, 28)
    return len(numbers)


def test_fewer_attempts_are_made_where_a_fault_bounds_them() -> None:
    with patch.object(Ceiling, "may_improve", _may):
        whole = _attempts(FAULTS["a slow port"])
    assert _attempts(FAULTS["a slow port"]) < whole * 3 / 4


def _trial(system: System, pattern: int, speed: float, channels: int) -> SearchGraph:
    """A trial that may use all types of ways."""
    trial = SearchGraph(Graph.RING, pattern, min_channels=1, max_channels=channels)
    trial.bw_intra = trial.bw_inter = speed
    trial.type_intra = trial.type_inter = max(
        way.type for row in (*Roads(system).gpu_net, *Roads(system).gpu_gpu) for way in row if way
    )
    return trial


def _most(tree: Element, pattern: int, speed: float) -> int:
    system = built(tree, minor=28, nodes=2)
    return Ceiling(Roads(system)).most(_trial(system, pattern, speed, 32))[0]


def test_channels_are_bound_by_the_ports() -> None:
    assert _most(FAULTS["none"], RING, 24.0) == 3
    assert _most(FAULTS["a slow port"], RING, 24.0) == 2
    assert _most(FAULTS["a slow port"], RING, 12.0) == 5


def test_rings_are_bound_by_what_leaves_the_gpu_with_the_fewest_links() -> None:
    lone = _switched((18, 1, 18), (200_000,) * 3)
    assert _most(lone, RING, 20.0) < _most(FAULTS["none"], RING, 20.0)
    assert _most(lone, TREE, 20.0) < _most(FAULTS["none"], TREE, 20.0)


def _budget(times: tuple[int, ...], steps: int = 100) -> Budget:
    """A budget with attempts put aside that may take so much time."""
    budget, graph = Budget(steps), SearchGraph(Graph.RING, RING, min_channels=1, max_channels=1)
    for time in times:
        budget.steps -= time
        budget.put_aside(graph, graph, time)
    return budget


def _left(*times: int) -> Iterator[int]:
    return iter(times)


def test_attempts_put_aside_are_not_made_while_the_budget_lasts_for_all() -> None:
    budget = _budget((40, 60))
    assert not budget.is_spent()
    assert not budget.was_spent(lambda *_: pytest.fail("made"))


def test_they_are_made_where_it_depends_on_them_whether_it_is_spent() -> None:
    gained = _left(10, 15)
    budget = _budget((60, 60))
    assert not budget.is_spent()
    assert not budget.was_spent(lambda *_: next(gained))
    assert budget.steps == 5


def test_it_was_spent_where_they_took_too_much() -> None:
    gained = _left(10, 5)
    budget = _budget((60, 60))
    assert not budget.is_spent()
    assert budget.was_spent(lambda *_: next(gained))


def test_it_is_spent_where_that_does_not_depend_on_them() -> None:
    budget = _budget((60, 30))
    budget.steps -= 120
    assert budget.is_spent()


# --- ways as integers take from links what NCCL's single precision would, and fail where it would


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


def _surely(tree: Element, minor: int) -> bool:
    try:
        return surely_searched(tree, count_gpus(tree), minor=minor, settings=read_settings({}, minor))
    except RejectedError:
        return False


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(machines(gpus=2, nics=2), st.sampled_from(range(OLDEST, NEWEST + 1)))
def test_what_surely_starts_is_never_refused_by_the_search(tree: Element, minor: int) -> None:
    prediction = predict_tree(tree, version=spell_version(minor), sizes=(1,))
    assert prediction.accepted or not _surely(tree, minor)


@pytest.mark.parametrize("minor", range(OLDEST, NEWEST + 1))
def test_an_ordinary_machine_surely_starts(minor: int) -> None:
    switched = [gpu(f"1{at}", nvlink("0000:ff:00.0", 4), dev=at, sm=90) for at in range(2)]
    assert _surely(host(cpu(0, pci("80", *switched, nic("40")))), minor)


@pytest.mark.parametrize("minor", [20, 30])
def test_a_machine_without_a_processor_for_its_gpus_does_not(minor: int) -> None:
    assert not _surely(host(pci("80", gpu("10", dev=0))), minor)


@pytest.mark.parametrize("minor", [28, 29, 30])
def test_a_machine_without_nets_surely_starts_too(minor: int) -> None:
    assert _surely(host(cpu(0, pci("80", gpu("10", dev=0), gpu("11", dev=1)))), minor)


ROOM = Path(search_module.__file__).parents[1]


def read_by_searches() -> str:
    """The source of the rooms that build systems and search them, without the key's own."""
    files = [*(ROOM / "search").glob("*.py"), *(ROOM / "graph").glob("*.py")]
    return "\n".join(path.read_text() for path in files if path.name != "searched.py")


def test_a_setting_that_a_search_asks_for_is_part_of_its_key() -> None:
    other = {bool: lambda value: not value, int: lambda value: value + 1, type(None): lambda value: 1}
    for each in fields(Settings):
        if each.name == "values" or not re.search(rf"\bsettings\.{each.name}\b", read_by_searches()):
            continue
        plain = Settings()
        value = getattr(plain, each.name)
        changed = Settings(**{each.name: other[type(value)](value)})
        assert _asked(plain) != _asked(changed), each.name


def test_so_is_each_variable_that_it_asks_for_by_name() -> None:
    asked = set(re.findall(r"(?:settings\.values|\benv)\.get\(\"(\w+)\"", read_by_searches()))
    assert asked == set(_NAMES)
    for name in asked:
        assert _asked(Settings()) != _asked(Settings(values={name: "1"}))
