"""How far the error counters of a node grew from capture to capture. Where they start anew, they grew by nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from topodiag.model.fleet import FactKind, NodeFact
from topodiag.model.history import Capture, Growth

COUNTED = frozenset({"errors", "times", "rows"})
"""Units of counters that stand still on a sound link; traffic always grows."""
SAME_BOOT_S = 120.0
"""The time of a boot is the capture's less its uptime: clocks that are set move it by less than this."""

Key = tuple[str, str, str]


def error_counters(facts: Sequence[NodeFact]) -> dict[Key, NodeFact]:
    """The counters that a fault makes grow, by family, part and key."""
    return {
        (fact.family, fact.part, fact.key): fact
        for fact in facts
        if fact.kind is FactKind.COUNTER and fact.unit in COUNTED
    }


def same_boot(before: Capture, now: Capture) -> bool:
    """Whether both captures are known to be of one boot."""
    return before.boot_s is not None and now.boot_s is not None and abs(before.boot_s - now.boot_s) < SAME_BOOT_S


def growth(captures: Sequence[Capture]) -> tuple[Growth, ...]:
    """The growth over captures in the order of time, summed over the pairs of neighbours of one boot. A counter that
    went back was reset, or its part replaced: it starts anew. Counters that stood still are there with 0."""
    grown: dict[Key, Growth] = {}
    last: Mapping[Key, NodeFact] = {}
    for number, capture in enumerate(captures):
        counters = error_counters(capture.facts)
        before = captures[number - 1] if number else None
        if before is not None and same_boot(before, capture):
            hours = ((capture.time_s or 0.0) - (before.time_s or 0.0)) / 3600
            for key, fact in counters.items():
                if key in last and hours > 0:
                    _add(grown, key, fact, int(fact.value) - int(last[key].value), hours)
        last = counters
    return tuple(grown.values())


def _add(grown: dict[Key, Growth], key: Key, fact: NodeFact, count: int, hours: float) -> None:
    sofar = grown.get(key) or Growth(*key, 0, 0.0, 0, fact.unit)
    if count >= 0:
        sofar = replace(sofar, count=sofar.count + count, hours=sofar.hours + hours)
    grown[key] = replace(sofar, now=int(fact.value))
