"""The groups of ranks that a layout makes, all of them, and what a set of ranks is in it.

Expert groups come from a second grid without a context dimension, whose data dimension is what the experts leave
(Megatron, as layout.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import numpy.typing as npt

from topodiag.model.connections import Ints
from topodiag.model.layout import BY_NAME, COPIES, Divides, Layout, Role, that_divide
from topodiag.words.units import grouped


def _families() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(of the dense grid, of the grid of experts) the dimensions, alone and together, that frameworks make groups of.
    Together they are named the slowest first, as `dp-cp`, but after the tensor dimension, as `tp-dp-cp`."""
    copies = [copy.name for copy in COPIES]
    together = [some for count in range(2, len(copies) + 1) for some in combinations(reversed(copies), count)]
    repeated = [*copies, *("-".join(some) for some in together)]
    kinds = (Divides.TENSORS, Divides.LAYERS, Divides.EXPERTS)
    tensors, layers, experts = ([dimension.name for dimension in that_divide(what)] for what in kinds)
    dense = [*tensors, *repeated, *layers]
    dense += [f"{tensor}-{other}" for tensor in tensors for other in (*repeated, *layers)]
    expert = [*experts, _EXPERT_DATA, *(f"{tensor}-{name}" for tensor in tensors for name in experts)]
    expert += [f"{tensor}-{name}-{layer}" for tensor in tensors for name in experts for layer in layers]
    return tuple(dense), tuple(expert)


_EXPERT_DATA = "expert-dp"
_DENSE, _EXPERT = _families()


def _role(name: str) -> Role:
    """The role of a family; what repeats the weights over the data dimension and others is data parallelism."""
    together = name.removeprefix("expert-").split("-")
    parts = [BY_NAME[dimension] for dimension in together]
    if len(parts) == 1:
        return parts[0].role
    return Role.DP if "dp" in together and all(part.repeats_weights for part in parts) else Role.OTHER


_ROLES = {name: role for name in (*_DENSE, *_EXPERT) if (role := _role(name)) is not Role.OTHER}


def groups_of(layout: Layout, world_size: int) -> dict[str, Ints]:
    """By dimension, or dimensions together, one row of ascending world ranks per group; none of size 1."""
    whole = layout.for_world(world_size)
    order = whole.names()
    dense = {**whole.sizes, "ep": 1}
    # Experts lie in a grid of their own, where data parallelism is what they leave of the copies of the weights.
    left = {copy.name: 1 for copy in COPIES} | {"dp": whole.copies // whole.ep}
    grids = [(dense, _DENSE)]
    if whole.ep > 1:
        grids.append(({**whole.all_sizes, **left}, _EXPERT))
    groups = {}
    for sizes, names in grids:
        for name in names:
            together = tuple(name.removeprefix("expert-").split("-"))
            if all(sizes[dimension] > 1 for dimension in together):
                groups[name] = _groups(sizes, order, together)
    if whole.pp > 2:
        groups["pipeline ends"] = groups["pp"][:, [0, -1]]  # they share the embedding
    return groups


def replicas_of(families: Mapping[str, Ints], layout: Layout) -> Ints | None:
    """Of `groups_of`, the groups whose ranks hold the same dense weights; None where nothing repeats them."""
    names = [copy.name for copy in reversed(COPIES) if layout.sizes[copy.name] > 1]
    return families["-".join(names)] if names else None


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
        self._by_members = grouped((row.tobytes(), name) for name, rows in self._families.items() for row in rows)
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
    return rows.shape[1] == ranks.size and bool((rows[:, known] == ranks[known]).all(axis=1).any())
