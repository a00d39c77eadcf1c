"""`model collective`: one collective under two placements, and what a measured time says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topodiag.cost.questions import Placements, PricedPlacement, Reading
from topodiag.cost.spread import Spread, available, time_us
from topodiag.cost.tiers import Machine
from topodiag.draw.scale import Series
from topodiag.report.documents.from_model import Document, document_of, from_model
from topodiag.report.grid import Columns, Field, draw_table
from topodiag.report.model.words import draw_tiers, machine_json, spell_size, spelt
from topodiag.report.plot import draw_plot
from topodiag.report.terms import draw_assumed, draw_terms
from topodiag.report.text import Page
from topodiag.words.units import plural, spell_gbs, spell_time

NO_GAIN = 0.05
"""Placements whose times are as near are told as equal."""


def spell_spread(spread: Spread) -> str:
    """`8 on 1 node`, `8 on 8 nodes`."""
    return f"{spread.ranks} on {plural(spread.nodes, 'node')}"


def draw_placements(
    page: Page,
    placements: Placements,
    machine: Machine,
    sizes: Sequence[int],
    reading: Reading | None,
    *,
    explain: bool,
) -> None:
    """A row per placement, the gain, the reading of a measured time, the plot; tiers and terms with `explain`."""
    page.add("", (f"{placements.collective} of {spell_size(placements.size)}", "strong"), f"  on {machine.name}")
    times = [f"{spell_time(placed.priced.time_us)} for {spell_spread(placed.spread)}" for placed in placements.placed]
    page.note_answer((f"{placements.collective} of {spell_size(placements.size)}: ", "strong"), ", ".join(times))
    page.blank()
    columns: Columns[PricedPlacement] = {
        Field("ranks"): lambda placed: (spell_spread(placed.spread), "name"),
        Field("algorithm", drop=1): lambda placed: placed.priced.algorithm,
        Field("carried by"): lambda placed: placed.spread.level,
        Field("time", right=True): lambda placed: (spell_time(placed.priced.time_us), "strong"),
        Field("algbw", right=True, drop=2): lambda placed: spell_gbs(placed.algbw_gbs),
        Field("busbw GB/s", right=True): lambda placed: (spell_gbs(placed.busbw_gbs), "strong"),
        Field("bound", right=True, drop=3): lambda placed: spell_time(placed.bound_us),
    }
    draw_table(page, columns, placements.placed)
    if len(placements.placed) > 1:
        page.blank()
        _gain(page, placements)
    if reading is not None:
        page.blank()
        draw_reading(page, reading)
    if not page.style.quiet:
        page.blank()
        draw_plot(page, placement_series(placements, sizes))
    if explain:
        draw_tiers(page, machine)
        for placement in placements.placed:
            title = f"{spell_spread(placement.spread)}, {placement.priced.algorithm}"
            draw_terms(page, spelt(placement.priced.terms), title)
        draw_assumed(page, machine.assumed)


def _gain(page: Page, placements: Placements) -> None:
    first, last = placements.placed[0], placements.placed[-1]
    if abs(placements.gain - 1) < NO_GAIN:
        page.add("  ", ("placement makes no difference", "ok"), " to this collective at this size")
        return
    fast, slow, gain = (first, last, placements.gain) if placements.gain >= 1 else (last, first, 1 / placements.gain)
    words = f"{gain:.1f}× faster than {spell_spread(slow.spread)}"
    page.add("  ", (spell_spread(fast.spread), "name"), " is ", (words, "strong"))


def draw_reading(page: Page, reading: Reading) -> None:
    """What a measured time says, what would confirm it, the first thing to do."""
    page.add("  measured  ", (spell_time(reading.measured_us), "strong"), f"  {reading.words}")
    if reading.confirm:
        page.add("  confirm   ", reading.confirm)
    if reading.fix:
        page.add("  fix       ", reading.fix)


def placement_series(placements: Placements, sizes: Sequence[int]) -> list[Series]:
    """The fastest algorithm of each placement over the sizes; the one that was asked for where one was."""
    return [Series(spell_spread(placed.spread), _points(placements, placed, sizes)) for placed in placements.placed]


def _points(placements: Placements, placement: PricedPlacement, sizes: Sequence[int]) -> list[tuple[float, float]]:
    if placement.spread.ranks == 1:
        return []
    names = available(placements.collective, placement.spread) if placements.fastest else (placement.priced.algorithm,)
    return [
        (float(at), min(time_us(placements.collective, name, placement.spread, float(at)) for name in names))
        for at in sizes
    ]


def placements_json(
    placements: Placements, machine: Machine, reading: Reading | None, inputs: dict[str, Any]
) -> Document:
    """The published shape (schema/model-1.0.schema.json); time and bandwidths at the top are the first placement's."""
    first = placements.placed[0]
    fits = placements.placed.index(reading.fits) if reading is not None and reading.fits is not None else None
    return document_of(
        "model.CollectiveDocument",
        first,
        inputs={**inputs, "system": machine_json(machine)},
        gain=placements.gain if first.priced.time_us > 0 else None,
        placements=placements.placed,
        reading=from_model("model.Reading", reading, fits=fits) if reading is not None else None,
    )
