"""How far the error counters of a node grew from capture to capture. Where they start anew, they grew by nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from topodiag.model.fleet import FactKind, NodeFact
from topodiag.model.history import Capture, Growth

COUNTED = frozenset({"errors", "times", "rows"})
"""Units of counters that stand still on a sound link; traffic always grows."""
SAME_BOOT_S = 120.0
"""The time of a boot is the capture's less its uptime: clocks that are set move it by less than this."""

Key = tuple[str, str, str]


def error_counters(facts: Sequence[NodeFact]) -> dict[Key, NodeFact]:
    """The counters that a fault makes grow, by family, part and key."""
    counters = (fact for fact in facts if fact.kind is FactKind.COUNTER and fact.unit in COUNTED)
    return {(fact.family, fact.part, fact.key): fact for fact in counters}


def same_boot(before: Capture, now: Capture) -> bool:
    """Whether both captures are known to be of one boot."""
    return before.boot_s is not None and now.boot_s is not None and abs(before.boot_s - now.boot_s) < SAME_BOOT_S


def growth(captures: Sequence[Capture]) -> tuple[Growth, ...]:
    """The growth over captures in the order of time, summed over the pairs of neighbours of one boot. A counter that
    went back was reset, or its part replaced: it starts anew. Counters that stood still are there with 0."""
    grown: dict[Key, Growth] = {}
    for before, now in pairwise(captures):
        hours = ((now.time_s or 0.0) - (before.time_s or 0.0)) / 3600
        last = error_counters(before.facts) if same_boot(before, now) and hours > 0 else {}
        for key, fact in error_counters(now.facts).items() if last else ():
            if key in last:
                _add(grown, key, fact, int(fact.value) - int(last[key].value), hours)
    return tuple(grown.values())


def _add(grown: dict[Key, Growth], key: Key, fact: NodeFact, count: int, hours: float) -> None:
    sofar = grown.get(key) or Growth(*key, 0, 0.0, 0, fact.unit)
    if count >= 0:
        sofar = replace(sofar, count=sofar.count + count, hours=sofar.hours + hours)
    grown[key] = replace(sofar, now=int(fact.value))
