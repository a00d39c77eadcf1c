"""The declared layout of a training job, and the groups of ranks that it makes.

The convention is Megatron's (megatron/core/parallel_state.py, RankGenerator): the first dimension of the order varies
fastest. Experts divide the data and context dimensions: expert groups come from a second grid without a context
dimension, whose data dimension is what the experts leave.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from topodiag.model.errors import TopodiagError
from topodiag.model.job import Ints, Role

_DIMENSIONS = ("tp", "cp", "ep", "dp", "pp")
_LARGEST = 1 << 24
"""No job has more ranks; keeps a mistyped size from filling the memory."""

_ROLES = {"tp": Role.TP, "cp": Role.CP, "dp": Role.DP, "dp-cp": Role.DP, "pp": Role.PP, "ep": Role.EP,
          "expert-dp": Role.DP}  # fmt: skip


class LayoutError(TopodiagError):
    """A layout that is none, or that does not make the number of ranks that the job has."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of the dimensions; `dp` 0 is what the others leave. `order`: the first varies fastest."""

    tp: int = 1
    pp: int = 1
    dp: int = 0
    cp: int = 1
    ep: int = 1
    order: str = "-".join(_DIMENSIONS)

    def for_world(self, world_size: int) -> Layout:
        """The same with its data dimension filled in. Raises LayoutError when it does not make that many ranks."""
        sizes = {"tp": self.tp, "cp": self.cp, "pp": self.pp, "ep": self.ep}
        for name, size in {**sizes, "dp": self.dp or 1}.items():
            if not 1 <= size <= _LARGEST:
                raise LayoutError(f"{name} of the layout is {size}", hint="sizes are 1 or more")
        model = self.tp * self.cp * self.pp
        dp = self.dp or world_size // model
        if dp < 1 or model * dp != world_size:
            made = f"tp {self.tp} x cp {self.cp} x pp {self.pp}" + (f" x dp {self.dp}" if self.dp else "")
            says = f"makes {model * dp} ranks" if self.dp else "does not divide the ranks"
            raise LayoutError(f"the layout {made} {says}, and the job has {world_size}", hint="correct the layout")
        if (dp * self.cp) % self.ep:
            raise LayoutError(
                f"ep {self.ep} of the layout does not divide dp {dp} x cp {self.cp}", hint="correct the layout"
            )
        self._order()
        return Layout(self.tp, self.pp, dp, self.cp, self.ep, self.order)

    def _order(self) -> tuple[str, ...]:
        """The dimensions, fastest first; those left out have size 1."""
        names = tuple(self.order.lower().split("-"))
        unknown = [name for name in names if name not in _DIMENSIONS]
        left_out = [name for name in _DIMENSIONS if name not in names]
        wanted = [name for name in left_out if name != "dp" and getattr(self, name) > 1]
        if unknown or wanted or len(set(names)) != len(names) or ("dp" in left_out and self.dp > 1):
            raise LayoutError(
                f"the order {self.order[:80]} does not name each dimension of the layout once",
                hint="as tp-cp-ep-dp-pp, fastest first",
            )
        return names + tuple(left_out)

    def groups(self, world_size: int) -> dict[str, Ints]:
        """By dimension, or dimensions together, one row of ascending world ranks per group; none of size 1."""
        whole = self.for_world(world_size)
        order = whole._order()
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
        self._families = layout.groups(world_size)
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
