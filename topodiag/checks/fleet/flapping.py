"""What comes and goes without any capture showing it gone, by the history of one node: a link, a NIC, a GPU."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from topodiag.checks.fleet.places import label_of, where_of
from topodiag.checks.interface import Check
from topodiag.lazy import dataclass
from topodiag.model.finding import Finding, Outcome
from topodiag.model.history import FALLS, Growth, NodeHistory, PartStates, Spell, spell_time
from topodiag.model.provenance import Origin
from topodiag.words.units import spell_s

DROP_S = 240.0
"""Down for this long is a drop; 3 minutes are not (gpud, defaultIbPortDropThreshold)."""
FLAP_S = 25.0
"""Down for this long, then up, is one return (defaultIbPortFlapDownIntervalThreshold)."""
FLAP_RETURNS = 3
"""Returns that make a flap (defaultIbPortFlapBackToActiveThreshold)."""
WINDOW_S = 5 * 86400.0
"""Returns count for this long (defaultRetentionPeriod)."""
STICKY_S = 600.0
"""How long a drop is reported after the part came back (dropStickyWindow)."""
STALE_S = 86400.0
"""How long a drop is reported after the last sample. Later, nobody knows whether the part is still down."""
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


def flaps(parts: Sequence[PartStates], end_s: float) -> dict[str, list[Spell]]:
    """The parts that came back often enough in the WINDOW_S before `end_s` (Unix time), with the spells in which they
    were down."""
    repeats = {}
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
            repeats[part.part] = returns
    return repeats


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
        falls = (spell for before, spell in pairwise(spells) if before.up and spell.down)
        went.setdefault(kind, []).extend((spell.time_s, part.part) for spell in falls)
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


MIN_FALLS = 3
"""Falls between two captures that are more than a cable that somebody moved."""


class ComesAndGoes(Check[NodeHistory], id="FLT004"):
    """FLT004: a link, port or GPU keeps coming and going

    What it finds
        A drop: a part that was up and has been down for 4 minutes or more. A flap: a part that was down for 25 s or
        more and came back, three times within five days. Without a watch: a link whose own counter says that it fell
        three times or more between two captures of one boot, while those beside it did not.

    Why it matters
        Each fall stops or delays the job that uses the link. A link that is up while somebody looks passes every check
        that looks at one moment.

    Evidence it reads
        HOST.watch.jsonl of `topodiag watch`; counters link_downed and carrier_down_count of two captures and more.

    When it stays silent
        A part that was down once and came back. A part that was never up: nothing is plugged in. A port that an
        administrator switched off. The first 5 minutes after a boot, and a part that came back by a reboot. Parts that
        went down together with most others of their kind: the node or the switch was served. A drop that ended more
        than 10 minutes ago. Counters that went back: reset, or another part. No watch and one capture: unknown.

    How to confirm
        topodiag watch DIR                              then, later
        topodiag fleet history DIR

    How to fix
        Reseat or replace the cable or transceiver, then the card, then the port of the switch. Keep the node out of the
        queue until then.

    References
        gpud, components/accelerator/nvidia/infiniband/store/scan_drops.go and scan_flaps.go: the definitions.
        NVSentinel issue 1701: links that train after a boot.
    """

    def observe(self, judged: NodeHistory, peers: Sequence[NodeHistory]) -> Outcome:
        if judged.end_s is None and not judged.grown:
            return self.unknown(judged, "no watch of the node, and no counters of two captures of one boot")
        # A watch that ended before the last capture tells of its own time alone.
        captured_s = judged.now.time_s if judged.now is not None else None
        end_s = max(judged.end_s or 0.0, captured_s or 0.0)
        flapping = flaps(judged.states, end_s)
        known = set(flapping)
        dropped = [drop for drop in drops(judged.states, end_s) if drop.part not in known]
        if end_s - (judged.end_s or 0.0) <= WINDOW_S:
            known |= {state.part for state in judged.states}  # their states decide, and not the counters
        fallen = [growth for growth in fallen_alone(judged.grown) if growth.part not in known]
        findings = [
            *(self._flapping(judged, *flap) for flap in flapping.items()),
            *(self._dropped(judged, drop) for drop in dropped),
            *(self._fallen(judged, growth) for growth in fallen),
        ]
        return self.any_of(judged, findings, clean="no part kept coming and going")

    def _flapping(self, judged: NodeHistory, part: str, returns: Sequence[Spell]) -> Finding:
        first, last = returns[0], returns[-1]
        lengths = sorted(spell.length_s for spell in returns)
        lasted = " to ".join(dict.fromkeys((spell_s(lengths[0]), spell_s(lengths[-1]))))
        return self.finding(
            where_of(judged.host, (part,)),
            "keeps falling",
            f"{label_of(part)} keeps coming and going",
            observed=f"down for {spell_s(FLAP_S)} and more, then up again, {len(returns)} times, for {lasted}, the last"
            f" time at {spell_time(last.end_s)}",
            expected=f"fewer than {FLAP_RETURNS} times in {spell_s(WINDOW_S)}",
            evidence=[_origin(judged, spell.time_s, f"{part} {spell.state}") for spell in (first, last)],
        )

    def _dropped(self, judged: NodeHistory, drop: Drop) -> Finding:
        ended = f", back since {spell_time(drop.spell.end_s)}" if drop.back else ""
        return self.finding(
            where_of(judged.host, (drop.part,)),
            "keeps falling",
            f"{label_of(drop.part)} {'had dropped' if drop.back else 'was up and has dropped'}",
            observed=f"{drop.spell.state} since {spell_time(drop.spell.time_s)}, seen so for"
            f" {spell_s(drop.spell.length_s)}{ended}",
            expected=f"not down for {DROP_S / 60:.0f} minutes",
            evidence=[_origin(judged, drop.spell.time_s, f"{drop.part} {drop.spell.state}")],
        )

    def _fallen(self, judged: NodeHistory, growth: Growth) -> Finding:
        """By counters alone."""
        capture = f"{growth.part} {growth.key} {growth.now}"
        return self.finding(
            where_of(judged.host, (growth.part,)),
            self.advice("fell between captures", MIN_FALLS=MIN_FALLS),
            f"{label_of(growth.part)} fell again and again between captures",
            observed=f"{growth.key} rose by {growth.count} in {growth.hours:.0f} hours",
            evidence=[Origin(judged.now.source, None, capture)] if judged.now else [],
        )


def fallen_alone(grown: Sequence[Growth]) -> list[Growth]:
    """Links that fell MIN_FALLS times and more while the middle one of those of their kind did not."""
    falls = [growth for growth in grown if growth.key in FALLS]
    growths: dict[str, Growth] = {}
    for growth in falls:
        kind = kind_of(growth.part), growth.key
        beside = [other.count for other in falls if (kind_of(other.part), other.key) == kind]
        if growth.count >= MIN_FALLS and (len(beside) < 3 or median(beside) < MIN_FALLS):
            growths.setdefault(growth.part, growth)
    return list(growths.values())


def _origin(judged: NodeHistory, time_s: float, text: str) -> Origin:
    return Origin(f"{judged.host}.watch.jsonl", None, f"{spell_time(time_s)} {text}")
