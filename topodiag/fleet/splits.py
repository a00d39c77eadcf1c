"""What a column says: equal on all nodes, a few odd ones against a majority, several populations, or no usual value."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence

from topodiag.fleet.columns import Column, Mask
from topodiag.lazy import dataclass
from topodiag.model.fleet import Association

FEWEST_NODES = 3
"""Fewer have no majority."""
MAJORITY = 0.8
ODD_SHARE = 0.05
"""A value of at most so many of the nodes is odd, where a majority has another; more are a population."""
_ODD_ALONE = 20
"""Nodes below which only one alone is odd: two of nineteen are a tenth of them."""
_SMALL_COHORT = 10
_MOST_GROUPS = 6
JACCARD = 0.8
"""Overlap of two sets of nodes from which one is said to go with the other."""
_PER_GROUP = 3
"""Nodes of an attribute's value, on average: a name of its own for every node parts them in any way."""


@dataclass(frozen=True, slots=True)
class Split:
    """Values that are `odd` against the `usual` one, and the values of the populations, the largest first. Neither:
    the column has no usual value."""

    usual: str
    outliers: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


def judge(column: Column) -> Split | None:
    """How the values of a fact divide the nodes. None where they do not: one value, or too few nodes to say."""
    known, counts = column.known, column.counts
    if known < FEWEST_NODES or len(counts) < 2:
        return None
    usual, most = next(iter(counts.items()))
    few = max(1 if known < _ODD_ALONE else 2, int(ODD_SHARE * known))
    texts = tuple(value for value, count in counts.items() if count <= few and value != usual)
    groups = tuple(value for value in counts if value not in texts)
    clear = most >= MAJORITY * known or (known < _SMALL_COHORT and most == known - 1)
    if clear:
        return Split(usual, texts, groups if len(groups) > 1 else ())
    covered = sum(counts[value] for value in groups)
    if 2 <= len(groups) <= _MOST_GROUPS and covered >= MAJORITY * known:
        return Split(usual, texts, groups)
    return Split(usual)


def associate(group: Mask, known: Mask, attributes: Mapping[str, Sequence[str | None]]) -> Association | None:
    """The attribute whose values part the nodes best as the group does, None where none does so."""
    overlaps = [_overlap(group, known, name, values) for name, values in attributes.items()]
    return max(filter(None, overlaps), key=lambda association: association.jaccard, default=None)


def _overlap(group: Mask, known: Mask, name: str, values: Sequence[str | None]) -> Association | None:
    size: Tally[str] = Tally()
    inside: Tally[str] = Tally()
    for value, is_in, counts in zip(values, group.tolist(), known.tolist(), strict=True):
        if value is not None and counts:
            size[value] += 1
            inside[value] += is_in
    if not 2 <= len(size) <= int(known.sum()) // _PER_GROUP:
        return None
    mine = tuple(sorted(value for value in size if 2 * inside[value] > size[value]))
    if not mine or len(mine) == len(size):
        return None
    both = sum(inside[value] for value in mine)
    either = int(group.sum()) + sum(size[value] - inside[value] for value in mine)
    jaccard = both / either
    return Association(name, mine, jaccard) if jaccard >= JACCARD else None
