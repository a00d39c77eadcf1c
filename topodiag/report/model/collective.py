"""Answers of `topodiag model`: `collective`, one collective under two placements, and what a measured time says;
`link`, one buffer over all tiers, and where each turns bandwidth-bound; `hierarchy`, flat against hierarchical
all-reduce by size, and where each regime ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from topodiag.cost.collectives import Term, algbw_gbs, busbw_gbs
from topodiag.cost.questions import (
    AllReduceMethod,
    Hierarchy,
    LinkPrice,
    Placements,
    PricedPlacement,
    Reading,
    link_terms,
)
from topodiag.cost.spread import Spread, available, time_us
from topodiag.cost.tiers import Machine
from topodiag.draw.scale import Mark, Series
from topodiag.report.documents.from_model import Document, document_of, from_model
from topodiag.report.grid import Columns, Field, draw_assumed, draw_table, draw_terms
from topodiag.report.model.words import draw_tiers, machine_json, spell_size, spelt
from topodiag.report.plot import draw_plot
from topodiag.report.text import Page, Part
from topodiag.words.own_data import own_data
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


WAYS: Mapping[str, str] = own_data("report/model/ways")["ways"]
"""How each way goes."""


def draw_hierarchy(
    page: Page, hierarchy: Hierarchy, machine: Machine, size: int, sizes: Sequence[int], *, explain: bool
) -> None:
    """Each way at `size` and its regimes; with -v the table by size with the gain over the flat ring, and the plot."""
    ranks = hierarchy.nodes * hierarchy.per_node
    kind = "node" if machine.domain == machine.gpus_per_node else "NVLink domain"
    where = f"{plural(ranks, 'rank')} on {plural(hierarchy.nodes, kind)} of {hierarchy.per_node}"
    page.add("", (f"all_reduce, {where}", "strong"), f"  on {machine.name}")
    if len(hierarchy.ways) == 1:
        page.add("  ", "One rank per node, or one node alone: there is no hierarchy to use.")
    best, first = hierarchy.best(size), hierarchy.ways[0]
    words = f"all_reduce of {spell_size(size)}: {best.name} {spell_time(best.time_us(size))}"
    gain = "" if best is first else f", {_hierarchical_gain(hierarchy, best, size)} as fast as {first.name}"
    page.note_answer((words, "strong"), gain)
    page.blank()
    _at_size(page, hierarchy, size)
    if page.style.verbose:
        page.blank()
        _by_size(page, hierarchy, sizes)
    page.blank()
    for way in hierarchy.ways:
        _regimes(page, way, max(len(way.name) for way in hierarchy.ways))
    if page.style.verbose:
        page.blank()
        draw_plot(page, hierarchy_series(hierarchy, sizes), marks=hierarchy_marks(hierarchy))
    if explain:
        draw_tiers(page, machine)
        draw_terms(page, spelt(way_terms(hierarchy.ways, size)))
        draw_assumed(page, machine.assumed)


def _at_size(page: Page, hierarchy: Hierarchy, size: int) -> None:
    columns: Columns[AllReduceMethod] = {
        Field(f"at {spell_size(size)}"): lambda way: (way.name, "ok" if _wins(hierarchy, way, size) else "name"),
        Field("time", right=True): lambda way: (spell_time(way.time_us(size)), "strong"),
        Field("gain", right=True): lambda way: _hierarchical_gain(hierarchy, way, size),
    }
    draw_table(page, columns, hierarchy.ways)


def _wins(hierarchy: Hierarchy, way: AllReduceMethod, size: int) -> bool:
    return way is hierarchy.best(size) and len(hierarchy.ways) > 1


def _hierarchical_gain(hierarchy: Hierarchy, way: AllReduceMethod, size: int) -> str:
    """How many times as fast as the first way."""
    took = way.time_us(size)
    return f"{hierarchy.ways[0].time_us(size) / took:.2f}×" if took > 0 else ""


def _by_size(page: Page, hierarchy: Hierarchy, sizes: Sequence[int]) -> None:
    def time(way: AllReduceMethod, size: int) -> Part:
        return spell_time(way.time_us(size)), "ok" if _wins(hierarchy, way, size) else ""

    columns: Columns[int] = {
        Field("bytes", right=True): spell_size,
        **{Field(way.name, right=True): partial(time, way) for way in hierarchy.ways},
        Field("gain", right=True): lambda size: (_hierarchical_gain(hierarchy, hierarchy.best(size), size), "strong"),
        Field("by", drop=1): lambda size: hierarchy.best(size).name,
    }
    draw_table(page, columns, sizes)


def _regimes(page: Page, way: AllReduceMethod, wide: int) -> None:
    page.add(page.text("  ", (way.name.ljust(wide), "name"), "  "), WAYS[way.name])
    regimes = way.regimes
    if regimes is None:
        return
    if regimes.bandwidth_from < 1:
        page.add(" " * (wide + 4), (f"gains {regimes.gain_large:.2f}× at every size: no link has a latency", "dim"))
        return
    low, high = spell_size(regimes.latency_to), spell_size(regimes.bandwidth_from)
    small, large = f"{regimes.gain_small:.2f}×", f"{regimes.gain_large:.2f}×"
    words = f"gains up to {small} below {low}, where latency limits, and {large} above {high}, where bandwidth limits"
    page.add(" " * (wide + 4), (words, "dim"))


def hierarchy_series(hierarchy: Hierarchy, sizes: Sequence[int]) -> list[Series]:
    return [Series(way.name, [(float(at), way.time_us(at)) for at in sizes]) for way in hierarchy.ways]


def hierarchy_marks(hierarchy: Hierarchy) -> list[Mark]:
    """Where the latency regime ends and where the bandwidth regime starts, over all ways."""
    regimes = [way.regimes for way in hierarchy.ways if way.regimes is not None]
    if not regimes:
        return []
    low, high = min(regime.latency_to for regime in regimes), max(regime.bandwidth_from for regime in regimes)
    return [
        Mark(low, f"below {spell_size(low)} latency limits every way"),
        Mark(high, f"above {spell_size(high)} bandwidth limits every way"),
    ]


def way_terms(ways: Sequence[AllReduceMethod], size: float) -> list[Term]:
    """The phases of each way and their sum."""
    terms: list[Term] = []
    for way in ways:
        terms += [
            Term(f"{way.name}: {stage.name}", stage.time_us(size), "us", stage.formula)
            for stage in way.stages
            if len(way.stages) > 1
        ]
        words = way.stages[0].formula if len(way.stages) == 1 else "the phases one after the other"
        terms.append(Term(way.name, way.time_us(size), "us", words))
    return terms


def hierarchy_json(
    hierarchy: Hierarchy, machine: Machine, size: int, sizes: Sequence[int], inputs: dict[str, Any]
) -> Document:
    """The published shape (schema/model-1.0.schema.json).

    Time and bandwidths at the top are those of the fastest way at `size`.
    """
    took = hierarchy.best(size).time_us(size)
    return document_of(
        "model.HierarchyDocument",
        hierarchy,
        inputs={**inputs, "system": machine_json(machine)},
        terms=way_terms(hierarchy.ways, size),
        time_us=took,
        algbw_gbs=algbw_gbs(size, took),
        busbw_gbs=busbw_gbs("all_reduce", hierarchy.nodes * hierarchy.per_node, size, took),
        best=hierarchy.best(size).name,
        ways=[
            from_model("model.Way", way, time_us=way.time_us(size), sizes=[(at, way.time_us(at)) for at in sizes])
            for way in hierarchy.ways
        ],
    )
