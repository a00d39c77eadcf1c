"""From what the job should reach down to what was measured, and which cause takes which part."""

from __future__ import annotations

from collections.abc import Callable

from topodiag.draw.waterfall import draw_waterfall
from topodiag.model.verdict import Cause, Quantity, Verdict
from topodiag.report.html.interface import Cell, Drawing, Grid, Section, Sheet
from topodiag.report.html.sections.shared import distinct
from topodiag.report.places import Places
from topodiag.words.units import number, percent


def section(sheet: Sheet) -> Section | None:
    """None where no cause has a price in numbers."""
    verdict = sheet.result.verdict
    drawings = (*sheet.of("waterfall"), *_drawn(verdict, Places(sheet.result).sent))
    priced = [cause for cause in (verdict.causes if verdict is not None else ()) if cause.price.all_gone is not None]
    if not (priced or drawings):
        return None
    heads = ("Cause", "With no cause", "Without this cause", "With all causes", "Measured", "This cause takes")
    grid = Grid(
        "prices", "What the job's collective reaches, by cause", heads, [_row(cause) for cause in priced],
        right=frozenset({1, 2, 3, 4, 5}),
    )  # fmt: skip
    says = distinct(cause.price.says for cause in priced)
    of = [cause.price.all_gone.what for cause in priced if cause.price.all_gone is not None]
    formulas = distinct(
        f"{quantity.what}: {quantity.source}"
        for cause in priced
        for quantity in (cause.price.all_gone, cause.price.predicted, cause.price.measured)
        if quantity is not None and quantity.source
    )
    values = {"drawings": drawings, "grid": grid, "says": says, "of": distinct(of), "formulas": formulas}
    return Section("waterfall", "From intended to measured", values)


def _drawn(verdict: Verdict | None, named: Callable[[str], str]) -> list[Drawing]:
    """The steps from intended to measured, "" where no cause has a price."""
    svg = draw_waterfall(verdict, named=named, prefix="waterfall") if verdict is not None else ""
    return [Drawing("waterfall", "From intended to measured", svg, inline=True)] if svg else []


def _row(cause: Cause) -> list[Cell]:
    price = cause.price
    share = price.job_share
    return [
        Cell(f"{cause.finding.id}  {cause.finding.message}"),
        _quantity(price.all_gone),
        _quantity(price.alone),
        _quantity(price.predicted),
        _quantity(price.measured),
        Cell(percent(share), share) if share is not None else Cell("not known", -1.0),
    ]


def _quantity(given: Quantity | None) -> Cell:
    return Cell("not known", -1.0) if given is None else Cell(f"{number(given.value)} {given.unit}", given.value)
