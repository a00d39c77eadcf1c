"""`model link`: one buffer over all tiers, and where each turns bandwidth-bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topodiag.cost.collectives import algbw_gbs
from topodiag.cost.questions import LinkPrice, link_terms
from topodiag.draw.scale import Mark, Series
from topodiag.report.documents.from_model import Document, document_of, from_model
from topodiag.report.grid import Columns, Field, draw_table
from topodiag.report.model.words import spell_size, spelt
from topodiag.report.plot import draw_plot
from topodiag.report.terms import draw_terms
from topodiag.report.text import Page
from topodiag.words.units import spell_gbs, spell_time


def draw_links(page: Page, prices: Sequence[LinkPrice], size: int, sizes: Sequence[int], *, explain: bool) -> None:
    """A row per tier, the plot over sizes, and with `explain` the terms."""
    first = prices[0].link.name
    page.add("", (f"{spell_size(size)} over one link, one direction", "strong"), "  T = alpha + B/beta")
    times = ", ".join(f"{price.link.name} {spell_time(price.time_us)}" for price in prices)
    page.note_answer((f"{spell_size(size)} over one link: ", "strong"), times)
    page.blank()
    columns: Columns[LinkPrice] = {
        Field("tier", least=8): lambda price: (price.link.name, "name"),
        Field("alpha us", right=True): lambda price: f"{price.link.alpha_us:g}",
        Field("GB/s", right=True): lambda price: spell_gbs(price.link.gbs),
        Field("time", right=True): lambda price: (spell_time(price.time_us), "strong"),
        Field(f"against {first[:12]}", right=True, drop=1): lambda price: f"{price.ratio:.1f}×",
        Field("reached", right=True, drop=2): lambda price: spell_gbs(algbw_gbs(size, price.time_us)),
        Field("bandwidth-bound above", right=True): lambda price: (
            spell_size(price.link.crossover) if price.link.crossover >= 1 else "every size"
        ),
    }
    draw_table(page, columns, prices)
    page.blank()
    draw_plot(page, link_series(prices, sizes), marks=link_marks(prices) if page.style.verbose else ())
    if explain:
        draw_terms(page, spelt([term for link_price in prices for term in link_terms(link_price, size)]))


def link_series(prices: Sequence[LinkPrice], sizes: Sequence[int]) -> list[Series]:
    links = [price.link for price in prices]
    return [Series(link.name, [(float(at), link.time_us(float(at))) for at in sizes]) for link in links]


def link_marks(prices: Sequence[LinkPrice]) -> list[Mark]:
    links = sorted((price.link for price in prices), key=lambda link: link.crossover)
    return [
        Mark(link.crossover, f"{link.name} turns bandwidth-bound at {spell_size(link.crossover)}")
        for link in links
        if link.crossover >= 1
    ]


def links_json(prices: Sequence[LinkPrice], size: int, sizes: Sequence[int], inputs: dict[str, Any]) -> Document:
    """The published shape (schema/model-1.0.schema.json).

    The times at the top are the first tier's, all tiers stand in `tiers`.
    """
    gbs = algbw_gbs(size, prices[0].time_us)
    return document_of(
        "model.LinkDocument",
        prices[0],
        inputs=inputs,
        terms=[term for link_price in prices for term in link_terms(link_price, size)],
        algbw_gbs=gbs,
        busbw_gbs=gbs,
        tiers=[
            from_model(
                "model.PricedTier",
                link_price,
                sizes=[(at, link_price.link.time_us(float(at)), link_price.link.bound(at)) for at in sizes],
            )
            for link_price in prices
        ],
    )
