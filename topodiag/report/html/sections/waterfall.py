"""From what the job should reach down to what was measured, and which cause takes which part."""

from __future__ import annotations

from topodiag.draw.waterfall import draw_waterfall
from topodiag.model.verdict import Cause, Quantity
from topodiag.report.html.interface import Cell, Columns, Section, Sheet, drawings_of, figure, grid_of
from topodiag.report.html.sections.shared import distinct
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
    return UNKNOWN if quantity is None else Cell(f"{number(quantity.value)} {quantity.unit}", quantity.value)


UNKNOWN = Cell("not known", -1.0)
_PRICES: Columns[Cause] = {
    "Cause": lambda cause: f"{cause.finding.id}  {cause.finding.message}",
    ">With no cause": lambda cause: _quantity(cause.price.all_gone),
    ">Without this cause": lambda cause: _quantity(cause.price.alone),
    ">With all causes": lambda cause: _quantity(cause.price.predicted),
    ">Measured": lambda cause: _quantity(cause.price.measured),
    ">This cause takes": lambda cause: figure(cause.price.job_share, percent, "not known"),
}
