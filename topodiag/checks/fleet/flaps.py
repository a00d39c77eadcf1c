"""Drops and flaps, by the definitions of gpud's InfiniBand store (store/scan_drops.go, store/scan_flaps.go).

A drop is a part that has been down for 4 minutes. A flap is a part that was down for 25 s and came back, three times.
What an administrator switched off, what a boot has not trained yet, what was never up, and what most parts of the node
did at the same moment (a driver that was loaded anew, a switch that was served) counts for neither.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from topodiag.lazy import dataclass
from topodiag.model.history import PartStates, Spell

DROP_S = 240.0
"""Down for this long is a drop; 3 minutes are not (gpud, defaultIbPortDropThreshold)."""
FLAP_S = 25.0
"""Down for this long, then up, is one return (defaultIbPortFlapDownIntervalThreshold)."""
FLAP_RETURNS = 3
"""Returns that make a flap (defaultIbPortFlapBackToActiveThreshold)."""
WINDOW_S = 5 * 86400.0
"""Returns count for this long (defaultRetentionPeriod)."""
STICKY_S = 600.0
"""A drop is told for this long after the part came back (dropStickyWindow)."""
STALE_S = 86400.0
"""A drop is told for this long after the last sample: later nobody knows whether the part is still down."""
TRAINING_S = 300.0
"""Links train for this long after a boot (NVSentinel, issue 1701: 214 of 288 nodes were flagged meanwhile)."""
TOGETHER_S = 60.0
"""Parts that went down within this time of each other went down together."""


@dataclass(frozen=True, slots=True)
class Drop:
    """A part that is down, or was until a moment ago, and since when."""

    part: str
    spell: Spell
    back: bool


@dataclass(frozen=True, slots=True)
class Flap:
    """A part that came back again and again: the spells in which it was down."""

    part: str
    returns: tuple[Spell, ...]


def drops(parts: Sequence[PartStates], end_s: float) -> tuple[Drop, ...]:
    """The parts that are down at `end_s` (Unix time) for long enough, or came back less than STICKY_S before. What was
    last sampled STALE_S before is not known."""
    falls = []
    shared = _shared_times(parts)
    for part in parts:
        spells = merged(part.spells)
        for number, spell in enumerate(spells):
            last = number + 1 == len(spells)
            if not last and end_s - spells[number + 1].time_s > STICKY_S:
                continue
            if last and end_s - spell.end_s > STALE_S:
                continue
            was_up = any(earlier.up for earlier in spells[:number])
            if not was_up or not spell.down or spell.fallen or spell.length_s - _trained(spells, number) < DROP_S:
                continue
            if last or (spells[number + 1].up and not _is_shared(part.part, spell, shared)):
                falls.append(Drop(part.part, spell, back=not last))
    return tuple(falls)


def flaps(parts: Sequence[PartStates], end_s: float) -> tuple[Flap, ...]:
    """The parts that came back often enough in the WINDOW_S before `end_s` (Unix time)."""
    repeats = []
    shared = _shared_times(parts)
    for part in parts:
        spells = merged(part.spells)
        returns = [
            spell
            for number, spell in enumerate(spells[:-1])
            if spell.down
            and spells[number + 1].up
            and spells[number + 1].boot == spell.boot
            and spell.length_s - _trained(spells, number) >= FLAP_S
            and end_s - spell.end_s <= WINDOW_S
            and not _is_shared(part.part, spell, shared)
        ]
        if len(returns) >= FLAP_RETURNS:
            repeats.append(Flap(part.part, tuple(returns)))
    return tuple(repeats)


def merged(spells: Sequence[Spell]) -> list[Spell]:
    """Spells with those that follow each other in one boot and are all down (DOWN, INIT, ARMED), or all up, as one."""
    joined: list[Spell] = []
    for spell in spells:
        last = joined[-1] if joined else None
        if last is not None and last.boot == spell.boot and (last.up, last.down) == (spell.up, spell.down):
            joined[-1] = replace(last, last_s=spell.last_s, fallen=last.fallen + spell.fallen)
        else:
            joined.append(spell)
    return joined


def _trained(spells: Sequence[Spell], number: int) -> float:
    """Seconds of a spell that a boot takes to train its links: only of the first spell of that boot."""
    spell = spells[number]
    if number and spells[number - 1].boot == spell.boot:
        return 0.0
    return max(0.0, min(spell.last_s, TRAINING_S) - spell.first_s)


def kind_of(part: str) -> str:
    """Parts of one kind may go down together for a reason that is none of them: the GPU of an NVLink, the node."""
    if part.startswith("gpu") and part[3:4].isdigit():
        return part.partition("/")[0] if "/" in part else "gpu"
    return "port" if "/" in part else "interface"


def _shared_times(parts: Sequence[PartStates]) -> dict[str, list[float]]:
    """By kind of part, the times at which most parts of that kind that had been up went down, ascending."""
    went: dict[str, list[tuple[float, str]]] = {}
    counts: Counter[str] = Counter()
    for part in parts:
        kind = kind_of(part.part)
        spells = merged(part.spells)
        counts[kind] += any(spell.up for spell in spells)
        went.setdefault(kind, []).extend(
            (spell.time_s, part.part) for before, spell in pairwise(spells) if before.up and spell.down
        )
    return {kind: _times_of_most(sorted(times), counts[kind]) for kind, times in went.items()}


def _times_of_most(went: Sequence[tuple[float, str]], total: int) -> list[float]:
    """The times within TOGETHER_S of which more than half of the parts went down, and more than one."""
    near: Counter[str] = Counter()
    times: list[float] = []
    low = high = 0
    for time, _ in went:
        while high < len(went) and went[high][0] <= time + TOGETHER_S:
            near[went[high][1]] += 1
            high += 1
        while went[low][0] < time - TOGETHER_S:
            near[went[low][1]] -= 1
            if not near[went[low][1]]:
                del near[went[low][1]]
            low += 1
        if len(near) > max(1, total // 2):
            times.append(time)
    return times


def _is_shared(part: str, spell: Spell, shared: dict[str, list[float]]) -> bool:
    times = shared.get(kind_of(part), [])
    place = bisect_left(times, spell.time_s - TOGETHER_S)
    return place < len(times) and times[place] <= spell.time_s + TOGETHER_S
