"""A new map: on healthy nodes first, for the launcher that will take it, priced by the wires that the log shows."""

from pathlib import Path

import pytest

from topodiag.app.case.placement import PlaceOptions
from topodiag.app.judge.placing import solve_placement
from topodiag.app.place import audit_placement
from topodiag.emit.place_formats import write
from topodiag.emit.place_map import UnwritableMapError
from topodiag.model.layout import Layout

JOBS = Path(__file__).parents[2] / "fixtures" / "jobs"
HEALTHY, NARROW = "fixture:dgx-h100-healthy", "fixture:dgx-h100-gpu5-x4"


def options(layout: Layout, **cluster: object) -> PlaceOptions:
    return PlaceOptions(layout=layout, **cluster)  # type: ignore[arg-type]


def test_no_rank_is_put_on_a_node_with_a_known_fault_while_others_have_room() -> None:
    solution = solve_placement(options(Layout(tp=8, dp=1), bundles=(NARROW, HEALTHY)))
    assert solution.place.hosts == ("dgx-017",)
    assert "1 node has a fault: dgx-040 (PCI001); no rank is put there" in solution.cluster.notes


def test_a_node_with_a_known_fault_that_is_needed_is_said() -> None:
    solution = solve_placement(options(Layout(tp=8, dp=2), bundles=(NARROW, HEALTHY)))
    assert set(solution.place.hosts) == {"dgx-017", "dgx-040"}
    assert any("dgx-040 (PCI001); 16 ranks do not fit on the others" in note for note in solution.cluster.notes)


def test_healthy_nodes_need_no_word() -> None:
    solution = solve_placement(options(Layout(tp=8, dp=1), bundles=(HEALTHY,)))
    assert not any("fault" in note for note in solution.cluster.notes)


TRAYS = {"system": "gb200-nvl72", "nodes": 5, "racks": 5, "exclude": ("node001:0,1", "node003:0,1")}
"""Two trays with two free GPUs each: a pair of groups is split over them, and ranks return to a node."""


@pytest.mark.parametrize("launcher", ["torchrun", "hostfile", "mpich"])
def test_a_map_is_one_that_its_launcher_takes(launcher: str) -> None:
    asked = options(Layout(tp=2, pp=2, dp=4), **TRAYS)
    with pytest.raises(UnwritableMapError, match="goes back to"):
        write(solve_placement(asked).place, launcher)
    solution = solve_placement(asked, launcher=launcher)
    assert write(solution.place, launcher).text
    assert solution.place.consecutive
    assert sorted(solution.solution.assignment.slot.tolist()) == sorted(set(solution.solution.assignment.slot.tolist()))


def test_a_launcher_that_takes_any_order_gets_the_best_map() -> None:
    asked = options(Layout(tp=2, pp=2, dp=4), **TRAYS)
    assert (solve_placement(asked, launcher="rankfile").place.host == solve_placement(asked).place.host).all()


def waited(job: str) -> tuple[float, tuple[str, ...]]:
    audit, _ = audit_placement(PlaceOptions(logs=(str(JOBS / job / "logs"),), layout=Layout(tp=8)))
    return audit.waited_us, audit.cluster.notes


def test_sockets_that_the_log_shows_are_what_is_priced() -> None:
    slow, texts = waited("socket-fallback")
    fast, also = waited("healthy")
    assert any("the log shows TCP sockets between nodes" in note for note in texts)
    assert any("the log shows 8 NICs of 400 Gb/s for a node in use" in note for note in also)
    assert slow > fast


def test_wires_that_are_given_count_for_more_than_those_of_the_log() -> None:
    given = PlaceOptions(nics=(4, 200.0), logs=(str(JOBS / "healthy" / "logs"),), layout=Layout(tp=8))
    assert not any("the log shows" in note for note in audit_placement(given)[0].cluster.notes)
