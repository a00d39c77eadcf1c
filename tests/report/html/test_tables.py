"""Tables that page and terminal share: the page sorts a column of numbers by the numbers, however they are written."""

from collections.abc import Callable, Iterator

import pytest

from tests.checks import jobs
from tests.report.place.test_json import CLUSTER, DEALT
from tests.report.sweep.test_page import SWEEP
from topodiag.app.case.placement import PlaceOptions
from topodiag.app.judge.placing import solve_placement
from topodiag.model.cluster import Assignment
from topodiag.model.history import FleetHistory, NodeFailures, RisingCounter
from topodiag.model.layout import Layout
from topodiag.model.result import Result
from topodiag.model.timeline import Clock, Moment, Timeline
from topodiag.placement.audit import audit
from topodiag.placement.groups import talk_of_layout
from topodiag.report.html.fleet import history_extras, sweep_extras
from topodiag.report.html.interface import Grid, Section, Sheet
from topodiag.report.html.placed import audit_extras, solve_extras
from topodiag.report.html.sections import job, timeline
from topodiag.report.interface import Style
from topodiag.report.text import Page

HISTORY = FleetHistory(
    failing=(NodeFailures("gpu07", 12, 30, (("GPU001", 3),), "2026-03-01", "2026-03-09"),),
    rising=(
        RisingCounter("gpu01", "mlx5_0/1", "symbol errors", 1200, 36.0, 2, 3),
        RisingCounter("gpu02", "mlx5_0/1", "symbol errors", 90, 240.0, 10, 100),
        RisingCounter("gpu03", "mlx5_0/1", "symbol errors", 700, 2.0, 3, 30),
    ),
    common=(("link downed", 8, 9), ("port errors", 70, 80)),
)
CLOCKS = (
    Clock("early", skew_s=-120.0, within_s=0.02),
    Clock("late", skew_s=90.0, within_s=4000.0),
    Clock("not tied"),
    Clock("near", skew_s=-3.0, within_s=1.5),
)


def shown(section: Callable[[Sheet], Section | None], result: Result) -> Section:
    found = section(Sheet("diagnose", result, Page(Style()), None))
    assert found is not None
    return found


def tables() -> Iterator[Grid]:
    yield from history_extras(HISTORY).grids
    yield from shown(timeline.section, Result(timeline=Timeline((Moment(0.0, "boot"),), CLOCKS))).values["grids"]
    yield from audit_extras(audit(CLUSTER, talk_of_layout(CLUSTER, Layout(tp=8), 32), Assignment(DEALT))).grids
    yield from solve_extras(solve_placement(PlaceOptions(layout=Layout(tp=8, dp=2), nodes=4))).grids
    yield from sweep_extras(SWEEP.judgement, SWEEP.plans[-1].fabric).grids
    for each in (jobs.job(2, 8), jobs.job(40, 8)):
        for listed in shown(job.section, Result(jobs=(each,))).values["jobs"]:
            yield from listed["grids"]


@pytest.fixture(scope="module")
def grids() -> list[Grid]:
    return list(tables())


def test_every_cell_of_a_column_of_numbers_has_its_number(grids: list[Grid]) -> None:
    columns = [(grid, at) for grid in grids for at in grid.right]
    assert len(columns) > 20
    without = {(grid.name, grid.heads[at]) for grid, at in columns if any(row[at].value is None for row in grid.rows)}
    assert without == set()


@pytest.mark.parametrize(
    ("table", "head", "order"),
    [
        ("Counters that rise on few parts", "Days", ["gpu03", "gpu01", "gpu02"]),  # 0.083, 1.5, 10
        ("Counters that rise on few parts", "Rises on", ["gpu02", "gpu03", "gpu01"]),  # 10 of 100, 3 of 30, 2 of 3
        ("Clocks", "Ahead", ["not tied", "early", "near", "late"]),
        ("Clocks", "Within", ["not tied", "early", "near", "late"]),  # 20 ms, 1.5 s, 1.11 h
    ],
)
def test_rows_are_sorted_by_what_their_words_mean(grids: list[Grid], table: str, head: str, order: list[str]) -> None:
    grid = next(grid for grid in grids if grid.caption == table)
    at = grid.heads.index(head)
    assert [row[0].text for row in sorted(grid.rows, key=lambda row: row[at].value)] == order


def test_the_slowest_init_of_communicators_is_their_number(grids: list[Grid]) -> None:
    grid = next(grid for grid in grids if grid.name == "comms-0")
    (init,) = {row[grid.heads.index("Init")].value is not None for row in grid.rows}
    assert init
