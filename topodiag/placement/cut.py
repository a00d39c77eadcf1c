"""Fragments cut into groups: the most groups of one size that nodes with so many free GPUs each can hold between them.

A group takes shares of at least `least` from each of its nodes. Which nodes have how many free GPUs is all that
matters, so the nodes of a region are counted by it, and the best cut of such counts is found by dynamic programming:
the node with the most free GPUs gives a share to a group, whose other shares come from nodes with no more, or nothing
at all. It is exact for as many nodes as are looked at together; a larger region is cut a few nodes at a time, and what
is left of these goes to the next.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from topodiag.placement.worth import WHOLE, worths

TOGETHER = 16
"""Nodes looked at together."""
MOST_STATES = 2_000
"""States of one search, after which the first that is found counts, and after as many again no other is looked for."""
_NOTHING = -(1 << 60)

Counts = tuple[int, ...]
"""By free GPUs, how many nodes have so many."""
Cut = tuple[tuple[int, int], ...]
"""One group: (free GPUs of the node before, share taken of it), in the order in which they are taken."""


@lru_cache(maxsize=65536)
def cuts(counts: Counts, size: int, least: int, later: int) -> tuple[Cut, ...]:
    """Groups of `size` that nodes with so many free GPUs hold between them, in an order in which they can be taken.
    What is left counts for what groups with shares of at least `later` could take of it, 0 for nothing."""
    search = _Search(counts, size, least, later)
    search.value(counts, 0, 0)
    return search.cuts(counts)


class _Search:
    def __init__(self, counts: Counts, size: int, least: int, later: int) -> None:
        kinds = len(counts)
        self.size, self.least, self.later = size, least, later
        self.worths = worths(size, least, kinds - 1)
        # What is left may not be worth as much to those after: by the weights that make least of what there is.
        after = [worth.node for worth in worths(size, later, kinds - 1)] if later else [(0,) * kinds]
        self.rest = min(after, key=lambda node: sum(map(int.__mul__, node, counts)))
        self.step = gcd(WHOLE, *self.rest)
        """Every value is a multiple of it."""
        self.known: dict[tuple[Counts, int, int], tuple[int, int, int]] = {}

    def ceiling(self, counts: Counts, need: int) -> int:
        """What the value of a state cannot exceed."""
        best = min(
            sum(map(int.__mul__, worth.node, counts)) + (WHOLE - worth.share[need] if need else 0)
            for worth in self.worths
        )  # fmt: skip
        return best // self.step * self.step

    def value(self, counts: Counts, need: int, most: int) -> int:
        """Groups made and what is left after them, a group counting WHOLE. A group that lacks `need` GPUs takes them
        from nodes with no more than `most`; below 0 where it cannot."""
        key = (counts, need, most)
        if key in self.known:
            return self.known[key][0]
        if not need:
            most = next((have for have in range(len(counts) - 1, 0, -1) if counts[have]), 0)
            if not most:
                return 0
        if len(self.known) >= 2 * MOST_STATES:
            return _NOTHING if need else sum(map(int.__mul__, self.rest, counts))
        enough = self.ceiling(counts, need) if len(self.known) < MOST_STATES else 0
        best, choice = self._best_share(counts, need, most, enough)
        if not need and best < enough:
            dropped = self.value(_without_share(counts, most, most, self.least), 0, 0) + self.rest[most]
            if dropped > best:
                best, choice = dropped, (most, 0)
        self.known[key] = (best, *choice)
        return best

    def _best_share(self, counts: Counts, need: int, most: int, enough: int) -> tuple[int, tuple[int, int]]:
        """The most that is reached when one node gives the group its next share, and (what the node had, its share);
        no better one is looked for once `enough` is reached."""
        best, choice = _NOTHING, (0, 0)
        wanted = need or self.size
        for have in range(most, self.least - 1, -1) if need else (most,):
            if not counts[have]:
                continue
            for share in range(min(have, wanted if need else wanted - self.least), self.least - 1, -1):
                left = wanted - share
                if 0 < left < self.least or best >= enough:
                    continue
                reached = self.value(_without_share(counts, have, share, self.least), left, have if left else 0)
                reached += 0 if left else WHOLE
                if reached > best:
                    best, choice = reached, (have, share)
        return best, choice

    def cuts(self, counts: Counts) -> tuple[Cut, ...]:
        pairs: list[Cut] = []
        parts: list[tuple[int, int]] = []
        need, most = 0, 0
        while (counts, need, most) in self.known:
            _, have, share = self.known[counts, need, most]
            counts = _without_share(counts, have, share or have, self.least)
            if not share:
                continue
            parts.append((have, share))
            need = (need or self.size) - share
            most = have if need else 0
            if not need:
                pairs.append(tuple(parts))
                parts = []
        return tuple(pairs)


def _without_share(counts: Counts, have: int, share: int, least: int) -> Counts:
    """The counts after a node with `have` gave a share; rests that no group can use are forgotten."""
    numbers = list(counts)
    numbers[have] -= 1
    if have - share >= least:
        numbers[have - share] += 1
    return tuple(numbers)
