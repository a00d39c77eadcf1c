"""From what the job should reach down to what was measured, and which cause takes which part."""

from __future__ import annotations

from topodiag.draw.waterfall import draw_waterfall
from topodiag.model.verdict import Cause, Quantity
from topodiag.report.grid import UNKNOWN, Cell, Columns, Field, figure
from topodiag.report.html.interface import Section, Sheet, distinct, drawings_of, grid_of
from topodiag.report.places import Places
from topodiag.words.units import number, percent


def section(sheet: Sheet) -> Section | None:
    """None where no cause has a price in numbers."""
    verdict = sheet.result.verdict
    title = "From intended to measured"
    named = Places(sheet.result).sent
    drawings = drawings_of((title, draw_waterfall(verdict, named=named, prefix="waterfall") if verdict else ""))
    priced = [cause for cause in (verdict.causes if verdict is not None else ()) if cause.price.all_gone is not None]
    if not (priced or drawings):
        return None
    grid = grid_of("prices", "What the job's collective reaches, by cause", _PRICES, priced)
    says = distinct(cause.price.says for cause in priced)
    of = [cause.price.all_gone.what for cause in priced if cause.price.all_gone is not None]
    formulas = distinct(
        f"{quantity.what}: {quantity.source}"
        for cause in priced
        for quantity in (cause.price.all_gone, cause.price.predicted, cause.price.measured)
        if quantity is not None and quantity.source
    )
    values = {"drawings": drawings, "grid": grid, "says": says, "of": distinct(of), "formulas": formulas}
    return Section("waterfall", title, values)


def _quantity(quantity: Quantity | None) -> Cell:
    words = "not known" if quantity is None else f"{number(quantity.value)} {quantity.unit}"
    return Cell(words, UNKNOWN if quantity is None else quantity.value)


_PRICES: Columns[Cause] = {
    Field("Cause"): lambda cause: f"{cause.finding.id}  {cause.finding.message}",
    Field("With no cause", right=True): lambda cause: _quantity(cause.price.all_gone),
    Field("Without this cause", right=True): lambda cause: _quantity(cause.price.alone),
    Field("With all causes", right=True): lambda cause: _quantity(cause.price.predicted),
    Field("Measured", right=True): lambda cause: _quantity(cause.price.measured),
    Field("This cause takes", right=True): lambda cause: figure(cause.price.job_share, percent, "not known"),
}
