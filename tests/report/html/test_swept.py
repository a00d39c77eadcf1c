"""The page of a sweep: the pairs drawn, the rails of the nodes that were looked at, the runs that are slow."""

from dataclasses import replace

from tests.report.sweep.test_page import SWEEP
from topodiag.model.result import Result
from topodiag.model.sweep import SweepJudgement
from topodiag.report.html.fleet import sweep_extras
from topodiag.report.html.page import drawn_sheet
from topodiag.report.html.sections.verdict import section
from topodiag.report.sweep.page import draw_sweep
from topodiag.sweep.findings import sweep_findings

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
