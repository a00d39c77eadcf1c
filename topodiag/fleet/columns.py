"""The facts of a cohort as columns: for each fact, which values there are and which nodes have them.

Nodes with equal facts of a family are one row of the table, weighted by their number: ten thousand nodes of which
thirty are odd are thirty-one rows.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from topodiag.fleet.digest import Digest, Facts, Key
from topodiag.lazy import dataclass
from topodiag.model.fleet import CLOSED

Mask = NDArray[np.bool_]
NOT_SET = "not set"
"""The value of a key that a node does not have, in a family that lists all it has."""


@dataclass(frozen=True, slots=True)
class Column:
    """One fact of a cohort: `counts` is the number of nodes by value, most first, `known` their sum."""

    family: str
    part: str
    key: str
    unit: str
    counts: dict[str, int]
    known: int


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
            for (part, key, unit), value in self.distinct[0].values:
                yield Column(self.family, part, key, unit, {value: count}, count)
            return
        tallies: dict[Key, Tally[str]] = {}
        for facts, size in zip(self.distinct, self._sizes.tolist(), strict=True):
            for fact, value in facts.values:
                tallies.setdefault(fact, Tally())[value] += size
        nodes = int(self._sizes.sum())
        for part, key, unit in sorted(tallies):
            counts = tallies[part, key, unit]
            if self.family in CLOSED and counts.total() < nodes:
                counts[NOT_SET] = nodes - counts.total()
            ordered = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
            yield Column(self.family, part, key, unit, ordered, counts.total())

    def having(self, key: Key, value: str) -> Mask:
        """Which nodes have this value."""
        default = NOT_SET if self.family in CLOSED else None
        owners = [code for code, values in enumerate(self._values) if values.get(key, default) == value]
        return np.isin(self.codes, owners)

    def source(self, key: Key, node: int) -> str:
        """Where the value of a node that has facts of the family was read, "" where that is not known."""
        facts = self.distinct[int(self.codes[node])]
        pairs = zip(facts.values, facts.sources, strict=False)  # counters have no sources here
        return next((source for (fact, _), source in pairs if fact == key), "")


def tables(nodes: Sequence[Digest]) -> list[FamilyTable]:
    """One table for each family that any of the nodes shows, in the order of the facts."""
    by_node = [{facts.family: facts for facts in node.facts} for node in nodes]
    families = dict.fromkeys(facts.family for node in nodes for facts in node.facts)
    return [FamilyTable(family, [own.get(family) for own in by_node]) for family in families]
