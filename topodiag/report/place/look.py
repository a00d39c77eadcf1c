"""`place look`: the layout drawn. Nodes are rows and GPUs are cells, below the switch or rack that they belong to; a
cell is its group's number in the group's hue, in brackets where the group is split. Two layouts stand side by side.
More nodes than fit a screen are an overview, with the nodes of one group below it."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.placement.view import NOBODY, Look, View
from topodiag.report.place.overview import draw_overview, example, example_words
from topodiag.report.text import Page, Part, width_of
from topodiag.words.fold import plural

NODES_SHOWN = 40
"""Nodes drawn one by one; `-v` draws all."""
_HUES = ("nvlink", "close", "doubtful", "near", "unknown", "ok")
_GAP = 4


def draw_look(page: Page, look: Look) -> None:
    """The drawing, with what is split in a line above it."""
    what = f"{look.dimension}: {plural(look.views[0].groups, 'group')} of {plural(look.size, 'rank')}"
    page.add("", (what, "strong"), f"  {look.cluster.system}, {plural(look.shown.size, 'node')}")
    for view in look.views:
        page.add(f"{view.title}  ", (view.summary, "error" if view.split_groups else "ok"))
    if page.style.quiet:
        return
    nodes = look.shown
    if nodes.size > NODES_SHOWN and not page.style.verbose:
        draw_overview(page, look)
        group, nodes = example(look)
        page.heading(example_words(look, group, nodes), "  (-v draws all nodes)")
    _cells(page, look, nodes.tolist())
    page.blank()
    page.add(
        "", ("a number is a group, [in brackets] one that is split, · a free GPU, x one that cannot be used", "dim")
    )


def _cells(page: Page, look: Look, nodes: Sequence[int]) -> None:
    """GPU by GPU, the views side by side where they fit."""
    most = max((int(view.group[nodes].max(initial=0)) for view in look.views), default=0)
    cell = len(str(most)) + 2
    label = max((width_of(look.cluster.names[node]) for node in nodes), default=0) + 2
    wide = cell * look.cluster.slots
    beside = 2 + label + len(look.views) * (wide + _GAP) - _GAP <= page.width
    for views in [look.views] if beside else [(view,) for view in look.views]:
        page.blank()
        _draw(page, look, views, nodes, label=label, cell=cell)


def _draw(page: Page, look: Look, views: Sequence[View], nodes: Sequence[int], *, label: int, cell: int) -> None:
    wide = cell * look.cluster.slots
    titles: list[Part] = [(view.title[:wide].ljust(wide + _GAP), "dim") for view in views]
    page.add_line(page.text(" " * (2 + label), *titles))
    before = None
    for node in nodes:
        home = look.home(node)
        if home and home != before:
            page.add("", (home, "dim"))
        before = home
        parts: list[Part] = [f"  {look.cluster.names[node]}".ljust(2 + label)]
        for view in views:
            cells = zip(view.group[node].tolist(), view.split[node].tolist(), strict=True)
            parts += [_cell(number, split, cell) for number, split in cells]
            parts.append(" " * _GAP)
        page.add_line(page.text(*parts))


def _cell(number: int, split: bool, width: int) -> Part:
    if number < 0:
        return ("·" if number == NOBODY else "x").center(width), "dim"
    if split:
        return f"[{number}]".rjust(width), "error"
    return f"{number} ".rjust(width), _HUES[number % len(_HUES)]
