"""FLT004: a link, port or GPU that keeps coming and going."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from topodiag.checks.fleet.flaps import DROP_S, FLAP_RETURNS, FLAP_S, WINDOW_S, Drop, Flap, drops, flaps, kind_of
from topodiag.checks.fleet.places import label_of, labels
from topodiag.checks.interface import Check
from topodiag.lazy import dataclass
from topodiag.model.finding import Finding, Outcome, Where
from topodiag.model.history import FALLS, Growth, NodeHistory, spell_time
from topodiag.model.provenance import Origin
from topodiag.words.units import spell_s

MIN_FALLS = 3
"""Falls between two captures that are more than a cable that somebody moved."""


@dataclass(frozen=True, slots=True)
class Unsteady:
    """What comes and goes: by its states, and by counters alone."""

    drops: tuple[Drop, ...]
    flaps: tuple[Flap, ...]
    fallen: tuple[Growth, ...]


class ComesAndGoes(Check[NodeHistory, Unsteady]):
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

    id = "FLT004"

    def observe(self, judged: NodeHistory, peers: Sequence[NodeHistory]) -> Unsteady | Outcome:
        if judged.end_s is None and not judged.grown:
            return self.unknown(judged, "no watch of the node, and no counters of two captures of one boot")
        # A watch that ended before the last capture tells of its own time alone.
        captured_s = judged.now.time_s if judged.now is not None else None
        end_s = max(judged.end_s or 0.0, captured_s or 0.0)
        flapping = flaps(judged.states, end_s)
        known = {flap.part for flap in flapping}
        dropped = tuple(drop for drop in drops(judged.states, end_s) if drop.part not in known)
        if end_s - (judged.end_s or 0.0) <= WINDOW_S:
            known |= {state.part for state in judged.states}  # what was watched is judged by what was seen
        fallen = tuple(growth for growth in fallen_alone(judged.grown) if growth.part not in known)
        if not (flapping or dropped or fallen):
            return self.clean(judged, "no part kept coming and going")
        return Unsteady(dropped, flapping, fallen)

    def tell(self, judged: NodeHistory, observed: Unsteady) -> Iterable[Finding]:
        for flap in observed.flaps:
            times = len(flap.returns)
            first, last = flap.returns[0], flap.returns[-1]
            lengths = sorted(spell.length_s for spell in flap.returns)
            lasted = " to ".join(dict.fromkeys((spell_s(lengths[0]), spell_s(lengths[-1]))))
            yield self.finding(
                Where(nodes=(judged.host,), **labels((flap.part,))),
                "keeps falling",
                f"{label_of(flap.part)} keeps coming and going",
                observed=f"down for {spell_s(FLAP_S)} and more, then up again, {times} times, for {lasted},"
                f" the last time at {spell_time(last.end_s)}",
                expected=f"fewer than {FLAP_RETURNS} times in {spell_s(WINDOW_S)}",
                evidence=[_origin(judged, spell.time_s, f"{flap.part} {spell.state}") for spell in (first, last)],
            )
        for drop in observed.drops:
            ended = f", back since {spell_time(drop.spell.end_s)}" if drop.back else ""
            yield self.finding(
                Where(nodes=(judged.host,), **labels((drop.part,))),
                "keeps falling",
                f"{label_of(drop.part)} was up and has dropped"
                if not drop.back
                else f"{label_of(drop.part)} had dropped",
                observed=f"{drop.spell.state} since {spell_time(drop.spell.time_s)}, seen so for"
                f" {spell_s(drop.spell.length_s)}{ended}",
                expected=f"not down for {DROP_S / 60:.0f} minutes",
                evidence=[_origin(judged, drop.spell.time_s, f"{drop.part} {drop.spell.state}")],
            )
        for growth in observed.fallen:
            yield self.finding(
                Where(nodes=(judged.host,), **labels((growth.part,))),
                "fell between captures",
                f"{label_of(growth.part)} fell again and again between captures",
                observed=f"{growth.key} rose by {growth.count} in {growth.hours:.0f} hours",
                expected=f"fewer than {MIN_FALLS}, as on the links beside it",
                evidence=[Origin(judged.now.source, None, f"{growth.part} {growth.key} {growth.now}")]
                if judged.now
                else [],
            )


def fallen_alone(grown: Sequence[Growth]) -> list[Growth]:
    """Links that fell MIN_FALLS times and more while the middle one of those of their kind did not."""
    falls = [growth for growth in grown if growth.key in FALLS]
    growths: dict[str, Growth] = {}
    for growth in falls:
        beside = [
            other.count for other in falls if kind_of(other.part) == kind_of(growth.part) and other.key == growth.key
        ]
        if growth.count >= MIN_FALLS and (len(beside) < 3 or median(beside) < MIN_FALLS):
            growths.setdefault(growth.part, growth)
    return list(growths.values())


def _origin(judged: NodeHistory, time_s: float, text: str) -> Origin:
    return Origin(f"{judged.host}.watch.jsonl", None, f"{spell_time(time_s)} {text}")
