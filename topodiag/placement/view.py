"""What `place look` draws: the group on every GPU under one layout or two, seen by one dimension."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.cluster import Assignment, Bools, Cluster, Ints
from topodiag.placement.groups import Talk, ids_by_rank
from topodiag.placement.price import Floats

NOBODY, UNUSABLE = -1, -2
IDLE = -1.0


@dataclass(frozen=True, slots=True)
class View:
    """One layout. `group[node, gpu]` is the number of the group that runs there, -1 for a free GPU and -2 for one that
    cannot be used; `split` marks groups on more NVLink domains than they need. `together`: they belong inside one."""

    title: str
    group: Ints
    split: Bools
    split_groups: int
    groups: int
    together: bool = True

    @property
    def summary(self) -> str:
        """How many groups are split."""
        if not self.together:
            return "its groups may span nodes"
        return f"{self.split_groups} of {self.groups} groups split" if self.split_groups else "no group is split"


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
        return used[np.lexsort([used, *(level.group[used] for level in self.cluster.levels)])]

    def home(self, node: int) -> str:
        """What a node stands below in the drawing: its group of the innermost level that has several."""
        level = next((level for level in self.cluster.levels if level.groups > 1), None)
        return level.group_name(int(level.group[node])) if level is not None else ""


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
    return View(title, group, split, wide, count, together)


def look_of(
    cluster: Cluster, talk: Talk, layouts: Sequence[tuple[str, Assignment]], dimension: str = ""
) -> Look | None:
    """Layouts of a job beside each other, each with its title, seen by one dimension: the innermost where none is
    named. None where no dimension of that name has a group of two ranks."""
    real = [demand for demand in talk.demands if demand.size > 1]
    first = next((demand for demand in real if demand.keep_together), real[0] if real else None)
    chosen = next((demand for demand in real if demand.dimension == dimension), None) if dimension else first
    if chosen is None:
        return None
    members, together = ids_by_rank(talk)[chosen.dimension], chosen.keep_together
    views = tuple(view_of(cluster, assignment, members, title, together=together) for title, assignment in layouts)
    return Look(cluster, chosen.dimension, chosen.size, views)


def shares(look: Look, view: View, of: Ints) -> Floats:
    """By part: the share of its GPUs in use that belong to split groups, -1 where none is in use."""
    nodes = look.shown
    count = int(of.max(initial=-1)) + 1
    used = np.bincount(of, weights=(view.group[nodes] >= 0).sum(axis=1), minlength=count)
    split = np.bincount(of, weights=view.split[nodes].sum(axis=1), minlength=count)
    return np.where(used > 0, split / np.maximum(used, 1), IDLE)
