"""The groups of ranks that a layout makes, all of them, and what a set of ranks is in it.

Expert groups come from a second grid without a context dimension, whose data dimension is what the experts leave
(Megatron, as layout.py).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from topodiag.model.connections import Ints
from topodiag.model.job import Role
from topodiag.model.layout import Layout

_ROLES = {"tp": Role.TP, "cp": Role.CP, "dp": Role.DP, "dp-cp": Role.DP, "pp": Role.PP, "ep": Role.EP,
          "expert-dp": Role.DP}  # fmt: skip


def groups_of(layout: Layout, world_size: int) -> dict[str, Ints]:
    """By dimension, or dimensions together, one row of ascending world ranks per group; none of size 1."""
    whole = layout.for_world(world_size)
    order = whole.names()
    dense = {"tp": whole.tp, "cp": whole.cp, "ep": 1, "dp": whole.dp, "pp": whole.pp}
    shared = whole.dp * whole.cp // whole.ep
    expert = {"tp": whole.tp, "cp": 1, "ep": whole.ep, "dp": shared, "pp": whole.pp}
    grids: list[tuple[dict[str, int], tuple[str, ...]]] = [
        (dense, ("tp", "cp", "dp", "dp-cp", "pp", "tp-cp", "tp-dp", "tp-dp-cp", "tp-pp"))
    ]
    if whole.ep > 1:
        grids.append((expert, ("ep", "expert-dp", "tp-ep", "tp-ep-pp")))
    made = {}
    for sizes, names in grids:
        for name in names:
            together = tuple(name.removeprefix("expert-").split("-"))
            if all(sizes[each] > 1 for each in together):
                made[name] = _groups(sizes, order, together)
    if whole.pp > 2:
        made["pipeline ends"] = made["pp"][:, [0, -1]]  # they share the embedding
    return made


def _groups(sizes: dict[str, int], order: tuple[str, ...], together: tuple[str, ...]) -> Ints:
    """Ranks that differ in the given dimensions only, one row per group."""
    slowest_first = order[::-1]
    total = int(np.prod([sizes[name] for name in slowest_first]))
    grid = np.arange(total, dtype=np.int64).reshape([sizes[name] for name in slowest_first])
    inside = [axis for axis, name in enumerate(slowest_first) if name in together]
    outside = [axis for axis, name in enumerate(slowest_first) if name not in together]
    members = int(np.prod([sizes[name] for name in together]))
    rows: Ints = np.sort(grid.transpose([*outside, *inside]).reshape(-1, members), axis=1)
    return rows


class LayoutGroups:
    """Looks up what a set of ranks is in a layout."""

    def __init__(self, layout: Layout, world_size: int) -> None:
        self._families = groups_of(layout, world_size)
        self._by_members: dict[bytes, list[str]] = {}
        for name, rows in self._families.items():
            for row in rows:
                self._by_members.setdefault(row.tobytes(), []).append(name)
        self._world_size = world_size

    @staticmethod
    def role(name: str) -> Role:
        return _ROLES.get(name, Role.OTHER)

    @property
    def role_of_all(self) -> Role | None:
        """The role of a dimension that holds all ranks by itself."""
        names = [name for name, rows in self._families.items() if len(rows) == 1 and name in _ROLES]
        return _ROLES[names[0]] if names else None

    def matching(self, ranks: Ints) -> list[str]:
        """The dimensions that have a group of these members. -1 in `ranks` is a member that is not known; then the
        known ones must stand at their place in the group."""
        known = np.flatnonzero(ranks >= 0)
        if not known.size:
            return []
        if known.size == ranks.size:
            return self._by_members.get(np.sort(ranks).astype(np.int64).tobytes(), [])
        return [name for name, rows in self._families.items() if _holds(rows, ranks, known)]


def _holds(rows: Ints, ranks: Ints, known: npt.NDArray[np.intp]) -> bool:
    if rows.shape[1] != ranks.size:
        return False
    return bool((rows[:, known] == ranks[known]).all(axis=1).any())
