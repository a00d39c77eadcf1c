"""Copies between AMD's GPUs: pairs that are far below the others of their board. Judges nothing else."""

from __future__ import annotations

from collections import Counter
from statistics import median

from topodiag.lazy import dataclass
from topodiag.model.maker import dialect_of
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.dialect import AMD

FEWEST = 12
"""Pairs that were measured, from which on one of them can stand out: those of four GPUs, both ways."""
SLOW_SHARE, EVEN_SHARE = 0.85, 0.9
"""Of the usual pace: below it a pair is slow, and above it are all the others. Healthy MI300X and MI350X boards spread
by 1 % (TransferBench p2p, public outputs); boards that join pairs by unequal links are not even, and not judged."""
MOST_OF_ONE = 2
"""Slow pairs that one GPU may have: more are the GPU's (GPU006), not a link's."""


@dataclass(frozen=True, slots=True)
class SlowPair:
    """A direction between two GPUs, what it reached and what is usual, GB/s."""

    start: str
    end: str
    gbs: float
    usual_gbs: float
    others: int
    fact: Fact[float]


def slow_pairs(node: Node) -> tuple[SlowPair, ...]:
    """The pairs that stand out, where all others are even."""
    if dialect_of(node) is not AMD or len(node.copies) < FEWEST:
        return ()
    usual = median(fact.get(0.0) for fact in node.copies.values())
    slow = {pair: fact for pair, fact in node.copies.items() if fact.get(0.0) < SLOW_SHARE * usual}
    rest = [fact.get(0.0) for pair, fact in node.copies.items() if pair not in slow]
    of_gpu = Counter(label for pair in slow for label in pair)
    if not slow or min(rest) < EVEN_SHARE * usual or max(of_gpu.values()) > MOST_OF_ONE:
        return ()
    return tuple(SlowPair(*pair, fact.get(0.0), usual, len(rest), fact) for pair, fact in slow.items())
