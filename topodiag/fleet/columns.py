"""The facts of a cohort as columns: for each fact, which values there are, which nodes have them, and what that says:
equal on all nodes, a few odd ones against a majority, several populations, or no usual value; and when a number is far
from those of its siblings, by robust statistics that a few sick nodes do not move.

Nodes with equal facts of a family are one row of its table, weighted by their number: ten thousand nodes of which
thirty are odd are thirty-one rows.

Of numbers, ten siblings and more: the modified z-score, 0.6745 (x - median) / MAD (Iglewicz and Hoaglin, 1993), and far
beyond what nine tenths of the siblings have. Four to nine: the range of the others. Fewer have no rule. A difference
below the noise of what measured it is none, at any number of deviations.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from topodiag.fleet.digest import Digest, Facts, Key
from topodiag.lazy import dataclass
from topodiag.model.fleet import CLOSED, Association, How

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


Floats = NDArray[np.float64]

MANY = 10
"""Siblings for which deviations say something; Azure's node checks warn below that."""
FEWEST = 4
MOST_Z = 3.5
"""Iglewicz and Hoaglin's limit."""
_TAIL = 4.5
"""How much farther than nine tenths of its siblings a number is that is odd: rates that were measured have heavy tails,
of which 3.5 deviations name some nodes in a thousand on a healthy fleet (benchmarks/fleet_statistics.py)."""
_BEYOND = 1.5
"""Of the range of the others, for a few siblings."""
NOISE = {"bytes": 0.02, "GB/s": 0.03, "TFLOPS": 0.02, "us": 0.10}
"""Share of the median that repeated measurements differ by: sizes of memory differ with what the kernel reserves,
nccl-tests by 2 to 3 %, matrix products by 1 to 2 %, latencies by 5 to 10 %."""
_OTHER_NOISE = 0.05
_ODD_SHARE = 0.05
"""Of numbers of which most are equal, as for categories."""


@dataclass(frozen=True, slots=True)
class Far:
    """Which of the values are far away, by which rule, and how far: in deviations or as a ratio to the median."""

    mask: NDArray[np.bool_]
    distance: Floats
    median: float
    how: How


def far(values: Floats, unit: str) -> Far | None:
    """The odd ones among values of siblings. None where there are too few for any rule."""
    if len(values) < FEWEST:
        return None
    median = float(np.median(values))
    floor = max(NOISE.get(unit, _OTHER_NOISE) * abs(median), 1e-12)
    away = np.abs(values - median)
    if len(values) < MANY:
        return _among_few(values, median, floor)
    spread = float(np.median(away))
    if spread == 0:  # most are equal: a category, but for the noise
        outliers = away > floor
        few = outliers.sum() <= max(1, int(_ODD_SHARE * len(values)))
        return Far(outliers & few, values / median if median else values, median, How.UNLIKE)
    z = 0.6745 * (values - median) / spread
    # The deviation of few values is itself uncertain: the limit is twice as far for ten, and near 3.5 for hundreds.
    limit = max(MOST_Z * (1 + MANY / len(values)), _TAIL * float(np.quantile(np.abs(z), 0.9, method="lower")))
    return Far((np.abs(z) > limit) & (away > floor), z, median, How.FAR)


def _among_few(values: Floats, median: float, floor: float) -> Far:
    """Farther from the others than one and a half times their range, and beyond the noise."""
    outliers = np.zeros(len(values), bool)
    for at in range(len(values)):
        others = np.delete(values, at)
        low, high = others.min(), others.max()
        beyond = max(low - values[at], values[at] - high)
        outliers[at] = beyond > _BEYOND * (high - low) + floor
    if outliers.sum() > 1:  # no majority stands against them
        outliers[:] = False
    return Far(outliers, values / median if median else values, median, How.RATIO)


LEAST_EVENTS = 20
"""Of a counter: below that many, chance decides."""
_TIMES = 10.0
"""How much faster than nine tenths of its siblings a counter rises that is odd."""
LEAST_HOURS = 1.0


_NONE_SEEN = 3.0
"""Events that may have been to come where none was seen: the limit of 95 % (the rule of three)."""


def rises_faster(counts: Floats, hours: Floats, carried: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Which counters rise far faster than those of their siblings, and all rates, per hour. Counters of siblings that
    all rise are the site's; one that alone is not zero is its own. `carried` are the bytes of the same parts, NaN where
    they are not known: a counter that is high because its part carried more is not odd."""
    rates = counts / np.maximum(hours, LEAST_HOURS)
    usual = float(np.quantile(rates, 0.9, method="lower"))
    faster = (counts >= LEAST_EVENTS) & (rates > _TIMES * usual)
    if faster.any():
        faster &= ~_by_traffic(counts, carried)
    return faster, rates


def _by_traffic(counts: Floats, carried: Floats) -> NDArray[np.bool_]:
    """Which counters are high for what was carried alone. Siblings that carried next to nothing do not say what is
    usual."""
    known = carried > 0
    explained = np.zeros(len(counts), bool)
    if known.sum() < FEWEST:
        return explained
    usual = float(np.quantile(counts[known] / carried[known], 0.9, method="lower"))
    others = carried[known].sum() - carried
    with np.errstate(divide="ignore", invalid="ignore"):
        explained[known] = (counts / carried <= _TIMES * np.maximum(usual, _NONE_SEEN / others))[known]
    return explained
