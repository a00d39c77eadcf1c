"""`place look`: the layout drawn. Nodes are rows and GPUs are cells, below the switch or rack that they belong to; a
cell is its group's number in the group's hue, in brackets where the group is split. Two layouts stand side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topodiag.model.cluster import Assignment, Bools, Cluster, Ints
from topodiag.report.text import Page, Part, width_of
from topodiag.report.words import plural

NOBODY, UNUSABLE = -1, -2
NODES_SHOWN = 40
"""Nodes drawn; `-v` draws all."""
_HUES = ("nvlink", "close", "doubtful", "near", "unknown", "ok")
_GAP = 4


@dataclass(frozen=True, slots=True)
class View:
    """One layout. `group[node, gpu]` is the number of the group that runs there, -1 for a free GPU and -2 for one that
    cannot be used; `split` marks groups on more NVLink domains than they need."""

    title: str
    group: Ints
    split: Bools
    split_groups: int
    groups: int


@dataclass(frozen=True, slots=True)
class Look:
    """One or two layouts of a job on one cluster, seen by one dimension."""

    cluster: Cluster
    dimension: str
    size: int
    views: tuple[View, ...]

    @property
    def shown(self) -> Ints:
        """The nodes that run something in a view, by the level that they lie in and their order."""
        used = np.flatnonzero(np.logical_or.reduce([(view.group >= 0).any(axis=1) for view in self.views]))
        keys = [used, *(level.group[used] for level in self.cluster.levels)]
        return used[np.lexsort(keys)]

    def home(self, node: int) -> str:
        """What a node stands below in the drawing: its group of the innermost level that has several."""
        level = next((each for each in self.cluster.levels if each.groups > 1), None)
        if level is None:
            return ""
        number = int(level.group[node])
        name = level.names[number] if number < len(level.names) else ""
        return name or f"{level.kind} {number + 1}"


def view_of(cluster: Cluster, assignment: Assignment, ids: Ints, title: str, *, together: bool) -> View:
    """A layout by the group of each rank (`ids[rank]`, -1 for none). `together` says whether groups belong inside one
    domain; only then a split is one."""
    group = np.where(cluster.usable, NOBODY, UNUSABLE).astype(np.int64)
    group.ravel()[assignment.slot] = ids
    split = np.zeros(group.shape, bool)
    wide = 0
    members = np.flatnonzero(ids >= 0)
    count = int(ids.max(initial=-1)) + 1
    if together and members.size:
        domain = cluster.nvlink_domain[cluster.node_of(assignment.slot[members])]
        pairs = np.unique(np.stack([ids[members], domain], axis=1), axis=0)
        room = int(np.bincount(cluster.nvlink_domain, weights=cluster.usable.sum(axis=1)).max())
        need = -(-np.bincount(ids[members], minlength=count) // max(room, 1))
        bad = np.bincount(pairs[:, 0], minlength=count) > need
        wide = int(bad.sum())
        split.ravel()[assignment.slot[members]] = bad[ids[members]]
    return View(title, group, split, wide, count)


def draw_look(page: Page, look: Look) -> None:
    """The drawing, with what is split in a line above it."""
    what = f"{look.dimension}: {plural(look.views[0].groups, 'group')} of {plural(look.size, 'rank')}"
    page.add("", (what, "strong"), f"  {look.cluster.system}, {plural(look.shown.size, 'node')}")
    for view in look.views:
        said = f"{view.split_groups} of {view.groups} groups split" if view.split_groups else "no group is split"
        page.add(f"{view.title}  ", (said, "error" if view.split_groups else "ok"))
    if page.style.quiet:
        return
    cell = max(len(str(max(int(view.group.max(initial=0)) for view in look.views))), 1) + 2
    nodes = look.shown.tolist()
    drawn = nodes if page.style.verbose else nodes[:NODES_SHOWN]
    label = max((width_of(look.cluster.names[node]) for node in drawn), default=0) + 2
    wide = cell * look.cluster.slots
    beside = 2 + label + len(look.views) * (wide + _GAP) - _GAP <= page.width
    for views in [look.views] if beside else [(view,) for view in look.views]:
        page.blank()
        _draw(page, look, views, drawn, label=label, cell=cell)
    if len(drawn) < len(nodes):
        page.add("  ", (f"… and {plural(len(nodes) - len(drawn), 'more node')} (-v draws all)", "dim"))
    page.blank()
    page.add(
        "", ("a number is a group, [in brackets] one that is split, · a free GPU, x one that cannot be used", "dim")
    )


def _draw(page: Page, look: Look, views: Sequence[View], nodes: Sequence[int], *, label: int, cell: int) -> None:
    wide = cell * look.cluster.slots
    titles: list[Part] = [(view.title[:wide].ljust(wide + _GAP), "dim") for view in views]
    heading = page.text(" " * (2 + label), *titles)
    heading.rstrip()
    page.lines.append(page.cut(heading, page.width))
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
        line = page.text(*parts)
        line.rstrip()
        page.lines.append(page.cut(line, page.width))


def _cell(number: int, split: bool, width: int) -> Part:
    if number < 0:
        return ("·" if number == NOBODY else "x").center(width), "dim"
    if split:
        return f"[{number}]".rjust(width), "error"
    return f"{number} ".rjust(width), _HUES[number % len(_HUES)]
