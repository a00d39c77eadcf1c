"""Attempts of the search that cannot find anything better are not made, and nothing else is found than with them.

`test_search_plain` holds the search to one without any of this, on all sorts of machines.
"""

from collections.abc import Iterator
from dataclasses import asdict
from unittest.mock import patch

import pytest

from tests.nccl.small_trees import built, cpu, gpu, host, nic, nvlink, pci
from topodiag.model.nccl_enums import Graph
from topodiag.model.nccl_tree import Element
from topodiag.nccl.graph.graph import RING, TREE, SearchGraph, System
from topodiag.nccl.search import search
from topodiag.nccl.search.ceiling import Ceiling
from topodiag.nccl.search.follow import Roads
from topodiag.nccl.search.search import search_graphs
from topodiag.nccl.search.trial import Budget
from topodiag.nccl.settings import read_settings


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
