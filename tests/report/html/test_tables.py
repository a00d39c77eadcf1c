"""Tables that page and terminal share: the page sorts a column of numbers by the numbers, however they are written."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.checks import jobs
from tests.report.place.test_json import CLUSTER, DEALT
from tests.report.sweep.test_page import SWEEP
from tests.tables import examples
from topodiag.app.case.placement import PlaceOptions
from topodiag.app.judge.placing import solve_placement
from topodiag.model.cluster import Assignment
from topodiag.model.history import FleetHistory, NodeFailures, RisingCounter
from topodiag.model.layout import Layout
from topodiag.model.result import Clock, Moment, Result, Timeline
from topodiag.placement.audit import audit
from topodiag.placement.groups import talk_of_layout
from topodiag.report.html.fleet import history_extras, sweep_extras
from topodiag.report.html.interface import Grid, Section, Sheet
from topodiag.report.html.page import drawn_sheet
from topodiag.report.html.placed import audit_extras, solve_extras
from topodiag.report.html.sections import job, timeline
from topodiag.report.html.sections.verdict import section
from topodiag.report.interface import Style
from topodiag.report.sweep.page import draw_sweep
from topodiag.report.text import Page
from topodiag.sweep.parts import sweep_findings
from topodiag.sweep.values import SweepJudgement

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


@examples("table", "head", "order")
def test_rows_are_sorted_by_what_their_words_mean(grids: list[Grid], table: str, head: str, order: list[str]) -> None:
    grid = next(grid for grid in grids if grid.caption == table)
    at = grid.heads.index(head)
    assert [row[0].text for row in sorted(grid.rows, key=lambda row: row[at].value)] == order


def test_the_slowest_init_of_communicators_is_their_number(grids: list[Grid]) -> None:
    grid = next(grid for grid in grids if grid.name == "comms-0")
    (init,) = {row[grid.heads.index("Init")].value is not None for row in grid.rows}
    assert init


# --- The page of a sweep: the pairs drawn, the rails of the nodes that were looked at, the runs that are slow


FABRIC = SWEEP.plans[-1].fabric


def test_the_pairs_are_drawn_in_place_of_a_picture_file() -> None:
    (drawn,) = sweep_extras(SWEEP.judgement, FABRIC).drawings
    assert drawn.svg.startswith("<svg")
    assert "prefers-color-scheme" not in drawn.svg


def test_a_node_alone_has_no_pairs() -> None:
    assert sweep_extras(SWEEP.judgement, replace(FABRIC, nodes=FABRIC.nodes[:1])).drawings == ()


def test_the_slow_rail_of_the_node_at_fault_is_marked() -> None:
    rails = sweep_extras(SWEEP.judgement, FABRIC).grids[0]
    row = next(row for row in rails.rows if row[0].text == "node003")
    marked = {head for head, cell in zip(rails.heads, row, strict=True) if cell.hue in {"error", "doubtful"}}
    assert marked == {"2"}


def test_runs_that_are_slow_are_listed_the_worst_first_and_others_are_not() -> None:
    runs = sweep_extras(SWEEP.judgement, FABRIC).grids[1]
    shares = [row[5].value for row in runs.rows]
    assert shares == sorted(shares)
    assert 0 < len(runs.rows) < len(SWEEP.judgement.runs)


def test_an_answer_without_a_sign_has_the_colour_of_its_worst_finding() -> None:
    result = Result(findings=tuple(sweep_findings(SWEEP.judgement, FABRIC)))
    sheet = drawn_sheet("bench read", lambda page: draw_sweep(page, SWEEP.judgement, SWEEP.plans, None), None, result)
    assert [value["hue"] for value in section(sheet).values["answers"]] == ["error"]
    none = SweepJudgement()
    nothing = drawn_sheet("bench read", lambda page: draw_sweep(page, none, SWEEP.plans, None), None, Result())
    assert [value["hue"] for value in section(nothing).values["answers"]] == ["plain"]
