"""`model link`: one buffer over all tiers, and where each turns bandwidth-bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topodiag.cost.collectives import algbw_gbs
from topodiag.cost.questions import LinkPrice, link_terms
from topodiag.report.answer import note_answer
from topodiag.report.documents.from_model import Document, document_of, from_model
from topodiag.report.grid import Field, draw_grid
from topodiag.report.model.words import spell_size, spelt
from topodiag.report.plot.scale import Mark, Series
from topodiag.report.plot.terminal import draw_plot
from topodiag.report.terms import draw_terms
from topodiag.report.text import Page, Part
from topodiag.words.units import spell_gbs, spell_time


def draw_links(page: Page, made: Sequence[LinkPrice], size: int, sizes: Sequence[int], *, explain: bool) -> None:
    """A row per tier, the plot over sizes, and with `explain` the terms."""
    first = made[0].link.name
    page.add("", (f"{spell_size(size)} over one link, one direction", "strong"), "  T = alpha + B/beta")
    note_answer(
        page, (f"{spell_size(size)} over one link: ", "strong"),
        ", ".join(f"{each.link.name} {spell_time(each.time_us)}" for each in made),
    )  # fmt: skip
    page.blank()
    rows: list[list[Part]] = [
        [
            (each.link.name, "name"),
            f"{each.link.alpha_us:g}",
            spell_gbs(each.link.gbs),
            (spell_time(each.time_us), "strong"),
            f"{each.ratio:.1f}×",
            spell_gbs(algbw_gbs(size, each.time_us)),
            spell_size(each.link.crossover) if each.link.crossover >= 1 else "every size",
        ]
        for each in made
    ]
    fields = (
        Field("tier", least=8), Field("alpha us", right=True), Field("GB/s", right=True), Field("time", right=True),
        Field(f"against {first[:12]}", right=True, drop=1), Field("reached", right=True, drop=2),
        Field("bandwidth-bound above", right=True),
    )  # fmt: skip
    draw_grid(page, fields, rows)
    page.blank()
    draw_plot(page, link_series(made, sizes), marks=link_marks(made) if page.style.verbose else ())
    if explain:
        draw_terms(page, spelt([term for each in made for term in link_terms(each, size)]))


def link_series(made: Sequence[LinkPrice], sizes: Sequence[int]) -> list[Series]:
    return [Series(each.link.name, [(float(at), each.link.time_us(float(at))) for at in sizes]) for each in made]


def link_marks(made: Sequence[LinkPrice]) -> list[Mark]:
    return [
        Mark(each.link.crossover, f"{each.link.name} turns bandwidth-bound at {spell_size(each.link.crossover)}")
        for each in sorted(made, key=lambda each: each.link.crossover)
        if each.link.crossover >= 1
    ]


def links_json(made: Sequence[LinkPrice], size: int, sizes: Sequence[int], inputs: dict[str, Any]) -> Document:
    """The published shape (schema/model-1.0.schema.json).

    The times at the top are the first tier's, all tiers stand in `tiers`.
    """
    first = made[0].time_us
    return document_of(
        "model.LinkDocument",
        made[0],
        inputs=inputs,
        terms=[term for each in made for term in link_terms(each, size)],
        time_us=first,
        algbw_gbs=algbw_gbs(size, first),
        busbw_gbs=algbw_gbs(size, first),
        tiers=[
            from_model(
                "model.PricedTier",
                each,
                sizes=[
                    {"bytes": at, "time_us": each.link.time_us(float(at)), "bound": each.link.bound(at)} for at in sizes
                ],
            )
            for each in made
        ],
    )
