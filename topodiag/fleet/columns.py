"""The facts of a cohort as columns: for each fact, which values there are, which nodes have them, and what that says:
equal on all nodes, a few odd ones against a majority, several populations, or no usual value.

Nodes with equal facts of a family are one row of its table, weighted by their number: ten thousand nodes of which
thirty are odd are thirty-one rows.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from topodiag.fleet.digest import Digest, Facts, Key
from topodiag.lazy import dataclass
from topodiag.model.fleet import CLOSED, Association

Mask = NDArray[np.bool_]
NOT_SET = "not set"
"""The value of a key that a node does not have, in a family that lists all it has."""
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
"""Nodes that share a value of an attribute, on average, at least: where each has its own, any group fits it."""


class FamilyTable:
    """The facts of one family of a cohort. `codes` says by node which of `distinct` it has, -1 for none."""

    def __init__(self, family: str, rows: Sequence[Facts | None]) -> None:
        self.family = family
        codes: dict[Facts, int] = {}
        by_node = [codes.setdefault(facts, len(codes)) if facts is not None else -1 for facts in rows]
        self.codes, self.distinct = np.asarray(by_node, np.int32), list(codes)
        self._sizes = np.bincount(self.codes[self.codes >= 0], minlength=len(self.distinct))
        self._values = [dict(facts.values) for facts in self.distinct]

    def columns(self) -> Iterator[Column]:
        """Each fact, in the order of its part and key."""
        if len(self.distinct) == 1:
            count = int(self._sizes[0])
            for key, value in self.distinct[0].values:
                yield Column(self, key, {value: count}, count)
            return
        tallies: dict[Key, Tally[str]] = {}
        for facts, size in zip(self.distinct, self._sizes.tolist(), strict=True):
            for key, value in facts.values:
                tallies.setdefault(key, Tally())[value] += size
        nodes = int(self._sizes.sum())
        for key, counts in sorted(tallies.items()):
            if self.family in CLOSED and counts.total() < nodes:
                counts[NOT_SET] = nodes - counts.total()
            ordered = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
            yield Column(self, key, ordered, counts.total())

    def having(self, key: Key, value: str) -> Mask:
        """Which nodes have this value."""
        default = NOT_SET if self.family in CLOSED else None
        owners = [code for code, values in enumerate(self._values) if values.get(key, default) == value]
        return np.isin(self.codes, owners)


@dataclass(frozen=True, slots=True)
class Column:
    """One fact of a cohort: `counts` is the number of nodes by value, most first, `known` their sum."""

    table: FamilyTable
    name: Key
    counts: dict[str, int]
    known: int

    @property
    def fact(self) -> tuple[str, str, str]:
        """Family, key and unit: the same for all parts."""
        return self.table.family, *self.name[1:]

    def having(self, value: str) -> Mask:
        """Which nodes have this value."""
        return self.table.having(self.name, value)

    def source(self, node: int) -> str:
        """Where the value of a node that has facts of the family was read, "" where that is not known."""
        facts = self.table.distinct[int(self.table.codes[node])]
        pairs = zip(facts.values, facts.sources, strict=False)  # those of cards that were named anew have none
        return next((source for (name, _), source in pairs if name == self.name), "")


def columns(nodes: Sequence[Digest]) -> Iterator[Column]:
    """Every fact of each family that any of the nodes shows, in the order of the facts."""
    by_node = [{facts.family: facts for facts in node.facts} for node in nodes]
    for family in dict.fromkeys(facts.family for node in nodes for facts in node.facts):
        yield from FamilyTable(family, [own.get(family) for own in by_node]).columns()


@dataclass(frozen=True, slots=True)
class Split:
    """Values that are `outliers` beside the `usual` one, and those of the populations (`groups`), the largest first.
    Neither: the column has no usual value."""

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
