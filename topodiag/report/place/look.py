"""`place look`: the layout drawn. Nodes are rows and GPUs are cells, below the switch or rack that they belong to; a
cell is its group's number in the group's hue, in brackets where the group is split. Two layouts stand side by side.
More nodes than fit a screen are an overview, with the nodes of one group below it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.cells import cell_len

from topodiag.lazy import dataclass
from topodiag.model.cluster import Ints
from topodiag.placement.view import NOBODY, Look, View, shares
from topodiag.report.text import Page, Part
from topodiag.words.units import plural

NODES_SHOWN = 40
"""Nodes drawn one by one; `-v` draws all."""
_HUES = ("nvlink", "close", "doubtful", "near", "unknown", "ok")
_GAP = 4
LINES = 24
"""Lines of signs for a view."""
ACROSS = 64
"""Signs in a line, at most."""
EXAMPLE_NODES = 8
"""Nodes of one group drawn GPU by GPU below the overview."""


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
        first = f"the first {plural(nodes.size, 'node')}"
        what = first if group < 0 else f"for example {look.dimension} group {group}"
        page.heading(what, "  (-v draws all nodes)")
    _cells(page, look, nodes.tolist())
    page.blank()
    words = "a number is a group, [in brackets] one that is split, · a free GPU, x one that cannot be used"
    page.add("", (words, "dim"))


def _cells(page: Page, look: Look, nodes: Sequence[int]) -> None:
    """GPU by GPU, the views side by side where they fit."""
    most = max((int(view.group[nodes].max(initial=0)) for view in look.views), default=0)
    cell = len(str(most)) + 2
    label = max((cell_len(look.cluster.names[node]) for node in nodes), default=0) + 2
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


@dataclass(frozen=True, slots=True)
class Units:
    """Parts of the cluster that one sign stands for. `of[i]` is the part of the i-th node of `Look.shown`; parts are
    numbered in that order. `what` says what a part is."""

    of: Ints
    names: tuple[str, ...]
    what: str


def units_of(look: Look, most: int) -> Units:
    """The finest parts of which there are at most `most`: nodes, groups of a level, or equal stretches of nodes."""
    nodes = look.shown
    if nodes.size <= most:
        return Units(np.arange(nodes.size), tuple(look.cluster.names[node] for node in nodes.tolist()), "a node")
    for level in look.cluster.levels:
        _, first, of = np.unique(level.group[nodes], return_index=True, return_inverse=True)
        if 1 < first.size <= most:
            rank = np.argsort(np.argsort(first))  # in the order of their first nodes
            names = tuple(level.group_name(int(level.group[nodes[at]])) for at in np.sort(first).tolist())
            counts = np.bincount(of)
            many = f"up to {counts.max()}" if counts.min() < counts.max() else f"{counts.max()}"
            return Units(rank[of].astype(np.int64), names, f"a {level.kind} of {many} nodes")
    size = -(-nodes.size // most)
    names = tuple(look.cluster.names[node] for node in nodes[::size].tolist())
    return Units(np.arange(nodes.size) // size, names, f"{size} nodes in a row")


def draw_overview(page: Page, look: Look) -> None:
    """The signs of all views beside each other, where they fit, with the name of each line's first part."""
    views = look.views
    label = 2 + max((cell_len(look.cluster.names[node]) for node in look.shown[:1].tolist()), default=0)
    label = min(max(label, 10), page.width // 3)
    across = max(min((page.width - 2 - label - _GAP * (len(views) - 1)) // len(views), ACROSS), 8)
    units = units_of(look, across * LINES)
    signs = [[_sign(share) for share in shares(look, view, units.of).tolist()] for view in views]
    page.blank()
    heading: list[Part] = [" " * (2 + label)]
    heading += [(view.title[:across].ljust(across + _GAP), "dim") for view in views]
    page.add_line(page.text(*heading))
    for first in range(0, len(units.names), across):
        parts: list[Part] = [("  " + units.names[first])[: label + 1].ljust(2 + label)]
        for row in signs:
            here = row[first : first + across]
            parts += here
            parts.append(" " * (across - len(here) + _GAP))
        page.add_line(page.text(*parts))
    page.blank()
    split = "o no group split, 1-9 so many tenths of its GPUs in split groups, # all"
    title = split if any(view.together for view in views) else "o in use"
    page.add("", (f"a sign is {units.what}: {title}, . idle", "dim"))


def _sign(share: float) -> Part:
    if share < 0:
        return ".", "dim"
    if share == 0:
        return "o", "ok"
    return ("#" if share >= 1 else str(max(int(share * 10), 1))), "error"


def example(look: Look) -> tuple[int, Ints]:
    """The first group that is split in the first view, -1 for none, and the nodes that it lies on in all views."""
    first = look.views[0]
    split = first.group[first.split]
    if not split.size:
        return -1, look.shown[: EXAMPLE_NODES // 2]
    group = int(split.min())
    there = np.logical_or.reduce([(view.group == group).any(axis=1) for view in look.views])
    return group, look.shown[there[look.shown]][:EXAMPLE_NODES]
