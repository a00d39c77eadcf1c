"""`model hierarchy`: flat against hierarchical all-reduce by size, and where each regime ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from topodiag.cost.collectives import algbw_gbs, busbw_gbs
from topodiag.cost.questions import AllReduceMethod, Hierarchy
from topodiag.cost.terms import Term
from topodiag.cost.tiers import Machine
from topodiag.draw.scale import Mark, Series
from topodiag.report.documents.from_model import Document, document_of, from_model
from topodiag.report.grid import Columns, Field, draw_table
from topodiag.report.model.words import draw_tiers, machine_json, spell_size, spelt
from topodiag.report.plot import draw_plot
from topodiag.report.terms import draw_assumed, draw_terms
from topodiag.report.text import Page, Part
from topodiag.words.own_data import own_data
from topodiag.words.units import plural, spell_time

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
    gain = "" if best is first else f", {_gain(hierarchy, best, size)} as fast as {first.name}"
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
        Field("gain", right=True): lambda way: _gain(hierarchy, way, size),
    }
    draw_table(page, columns, hierarchy.ways)


def _wins(hierarchy: Hierarchy, way: AllReduceMethod, size: int) -> bool:
    return way is hierarchy.best(size) and len(hierarchy.ways) > 1


def _gain(hierarchy: Hierarchy, way: AllReduceMethod, size: int) -> str:
    """How many times as fast as the first way."""
    took = way.time_us(size)
    return f"{hierarchy.ways[0].time_us(size) / took:.2f}×" if took > 0 else ""


def _by_size(page: Page, hierarchy: Hierarchy, sizes: Sequence[int]) -> None:
    def time(way: AllReduceMethod, size: int) -> Part:
        return spell_time(way.time_us(size)), "ok" if _wins(hierarchy, way, size) else ""

    columns: Columns[int] = {
        Field("bytes", right=True): spell_size,
        **{Field(way.name, right=True): partial(time, way) for way in hierarchy.ways},
        Field("gain", right=True): lambda size: (_gain(hierarchy, hierarchy.best(size), size), "strong"),
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
