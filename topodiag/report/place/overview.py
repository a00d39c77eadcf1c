"""A layout of too many nodes for a row each: one sign per node, switch or stretch of nodes, by how much is split."""

from __future__ import annotations

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.cluster import Ints
from topodiag.placement.price import Floats
from topodiag.placement.view import Look, View
from topodiag.report.text import Page, Part, width_of
from topodiag.words.fold import plural

LINES = 24
"""Lines of signs for a view."""
ACROSS = 64
"""Signs in a line, at most."""
EXAMPLE_NODES = 8
"""Nodes of one group drawn GPU by GPU below the overview."""
GAP = 4
IDLE = -1.0


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
            names = tuple(look.group_name(level, int(level.group[nodes[at]])) for at in np.sort(first).tolist())
            counts = np.bincount(of)
            many = f"up to {counts.max()}" if counts.min() < counts.max() else f"{counts.max()}"
            return Units(rank[of].astype(np.int64), names, f"a {level.kind} of {many} nodes")
    size = -(-nodes.size // most)
    names = tuple(look.cluster.names[node] for node in nodes[::size].tolist())
    return Units(np.arange(nodes.size) // size, names, f"{size} nodes in a row")


def shares(look: Look, view: View, of: Ints) -> Floats:
    """By part: the share of its GPUs in use that belong to split groups, -1 where none is in use."""
    nodes = look.shown
    count = int(of.max(initial=-1)) + 1
    used = np.bincount(of, weights=(view.group[nodes] >= 0).sum(axis=1), minlength=count)
    split = np.bincount(of, weights=view.split[nodes].sum(axis=1), minlength=count)
    return np.where(used > 0, split / np.maximum(used, 1), IDLE)


def draw_overview(page: Page, look: Look) -> None:
    """The signs of all views beside each other, where they fit, with the name of each line's first part."""
    views = look.views
    label = 2 + max((width_of(look.cluster.names[node]) for node in look.shown[:1].tolist()), default=0)
    label = min(max(label, 10), page.width // 3)
    across = max(min((page.width - 2 - label - GAP * (len(views) - 1)) // len(views), ACROSS), 8)
    units = units_of(look, across * LINES)
    signs = [[_sign(share) for share in shares(look, view, units.of).tolist()] for view in views]
    page.blank()
    heading: list[Part] = [" " * (2 + label)]
    heading += [(view.title[:across].ljust(across + GAP), "dim") for view in views]
    page.add_line(page.text(*heading))
    for first in range(0, len(units.names), across):
        parts: list[Part] = [("  " + units.names[first])[: label + 1].ljust(2 + label)]
        for row in signs:
            here = row[first : first + across]
            parts += here
            parts.append(" " * (across - len(here) + GAP))
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


def example_words(look: Look, group: int, nodes: Ints) -> str:
    """What is drawn GPU by GPU."""
    if group < 0:
        return f"the first {plural(nodes.size, 'node')}"
    return f"for example {look.dimension} group {group}"
