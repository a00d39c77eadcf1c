"""Steps that became far longer on all ranks, and the part of a step in which the time is.

A step may become longer by design: a longer sequence, layers that are trained from then on, a metric that is computed.
All of those cost the forward pass, too. What only the part that holds the communication takes is no work of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from topodiag.model.step_pace import Pace, says_waits
from topodiag.model.steps import PartOf, timed_parts

FAR = 3.0
"""Times as long as before that are slow, whatever the program does."""
LONGER = 1.5
"""Times as long as before that are slow where the time is in the part that holds the communication."""
MOST = 0.6
"""Share of the growth that must be in one part to name it."""
_LITTLE = 0.2
"""Share of the growth that the forward pass may take there."""


def became_slow(paces: Sequence[Pace]) -> bool:
    """Whether the steps of all ranks that print them became far longer, and stayed so, not by waiting for data."""
    return bool(paces) and all(_became_slow(pace) for pace in paces)


def grown_part(pace: Pace) -> str:
    """The name of the part of a step that holds most of what its steps became longer by; "" where none does."""
    by_part = _growth(pace)
    name, _ = max(by_part, key=by_part.__getitem__, default=("", None))
    return name if by_part and max(by_part.values()) >= MOST else ""


def _became_slow(pace: Pace) -> bool:
    if pace.series.smoothed or says_waits(pace):
        return False
    if pace.slower >= FAR:
        return True
    by_kind = {of: share for (_, of), share in _growth(pace).items()}
    shared = max(by_kind.get(PartOf.COMMUNICATION, 0.0), by_kind.get(PartOf.BACKWARD, 0.0))
    return pace.slower >= LONGER and shared >= MOST and by_kind.get(PartOf.FORWARD, 1.0) <= _LITTLE


def _growth(pace: Pace) -> dict[tuple[str, PartOf], float]:
    """By part, the share of the growth of the steps that it took; none where the steps or their parts do not say."""
    change = pace.change
    if change is None or pace.series.unit != "s" or change[1].cost <= change[0].cost:
        return {}
    before, after = change
    early, late = ([step for step in pace.series.steps if level.first <= step.number <= level.last] for level in change)
    grown = {}
    for name, of in sorted(timed_parts([*early, *late]).items()):
        low, high = (median(p.seconds for s in steps for p in s.parts if p.name == name) for steps in (early, late))
        grown[name, of] = (high - low) / (after.cost - before.cost)
    return grown
