"""All events of a case on one axis of time: the zone and the skew of each clock, what happened when, and which events
belong to the failure.

A clock is that of one host in one kind of source: NCCL prints local time without a zone, the kernel's messages count
from boot, bundles and Kubernetes write UTC. What must coincide ties them: the end of init, one event told twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Finding
from topodiag.model.result import Case, Clock, Identity, Moment, Result, Timeline
from topodiag.verdict.moments import LOG, RAS, ClockedEvent, said_by

MOST_MOMENTS = 2000
"""Moments kept: the first ones, and of each kind at each place at least one."""
BEFORE_S, AFTER_S = 600.0, 300.0
"""An event counts for a failure from ten minutes before to five after it (join of RSC, arXiv 2410.21680)."""
BURST_S = 180.0
"""Seconds within which equal events of one place are one burst (NVSentinel's health events analyser: 3 minutes)."""
_NUMBERS = regex(r"0x[0-9a-f]{1,16}|[0-9a-f:.]{0,40}\d[0-9a-f:.<>]{0,40}")
_QUARTER_S = 900
_MOST_ZONE_S = 14 * 3600
_ZONE_WITHIN_S = 60.0
"""Seconds by which two prints of one event may differ beyond whole quarters of an hour, and still show a zone."""
_UNTIED_S = 300.0
"""The uncertainty of a clock that nothing ties: hosts of a cluster are kept by NTP, mostly."""


Zones = dict[tuple[str, str], tuple[float, str]]
"""By source and host, the seconds that its unmarked clock is ahead of UTC, and how that is known."""


def timeline(case: Case, identity: Identity) -> Timeline:
    """What happened when, in order, and how far each clock can be trusted. Never raises. Times of one host's clock are
    taken back by its skew, so that a host whose clock runs ahead changes no order of causes."""
    moments = said_by(case, identity)
    skews = _skews(case, identity)
    zones = _zones(moments)
    clocks = _clocks(moments, zones, skews)
    placed = [_placed(moment, clocks.get((moment.source, moment.host)), zones, skews) for moment in moments]
    return Timeline(_shown(_folded(placed)), tuple(clocks[key] for key in sorted(clocks)))


# --- clocks -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Skew:
    """Seconds that a host's clock is ahead of its job's axis, and how far that can be off."""

    ahead_s: float
    within_s: float
    how: str


def _skews(case: Case, identity: Identity) -> dict[str, _Skew]:
    """By host, from the end of init of the largest communicator of its job."""
    if not case.jobs:
        return {}
    from topodiag.checks.shared.job.text import BARRIER_S, clocks_of  # noqa: PLC0415 - numpy, which only jobs need

    skews: dict[str, _Skew] = {}
    for job in case.jobs:
        ahead = clocks_of(job).ahead_s
        for host, seconds in ahead.items():
            how = f"Init COMPLETE of {len(ahead)} hosts, which a barrier ends"
            skews.setdefault(identity.name(host), _Skew(seconds, BARRIER_S, how))
    return skews


def _clocks(moments: Sequence[ClockedEvent], zones: Zones, skews: Mapping[str, _Skew]) -> dict[tuple[str, str], Clock]:
    """One clock for each source of each host, those with a zone of their own first."""
    clocks: dict[tuple[str, str], Clock] = {}
    for moment in moments:
        key = (moment.source, moment.host)
        if key in clocks or moment.time is None:
            continue
        zone_s, why = zones.get(key, (None, ""))
        zone = "+00:00" if moment.utc else _offset(zone_s) if zone_s is not None else ""
        skew = None if moment.source == RAS else skews.get(moment.host)  # a host tells of others by its own clock
        how = [why] if why else []
        if skew is not None:
            how.append(skew.how)
        elif moment.utc:
            how.append("its times carry a time zone")
        ahead_s, within_s = (skew.ahead_s, skew.within_s) if skew is not None else (None, None)
        clocks[key] = Clock(*key, zone, ahead_s, within_s, "; ".join(how) or "no event links it to other clocks")
    return clocks


def _zones(moments: Sequence[ClockedEvent]) -> Zones:
    """The zones of unmarked clocks: from one event that such a clock and one of UTC on the same host tell, their
    difference rounded to a quarter of an hour."""
    zones: Zones = {}
    for key, several in _differences(moments).items():
        zone, first = several[0]
        if all(other == zone for other, _ in several):
            zones[key] = (zone, f"`{first.what[:60]}` is in it and in the {first.source} of the same host")
    # The processes of one job share the zone of their image: what one host shows holds for the hosts that show none.
    logs = {zone for (source, _), (zone, _) in zones.items() if source == LOG}
    if len(logs) == 1:
        zone = logs.pop()
        for moment in moments:
            if moment.source == LOG:
                zones.setdefault((LOG, moment.host), (zone, "the zone of the same job's log on another host"))
    return zones


def _differences(moments: Sequence[ClockedEvent]) -> dict[tuple[str, str], list[tuple[float, ClockedEvent]]]:
    """By source and host of an unmarked clock, each whole zone that it is apart from the event that a clock of UTC
    tells as well."""
    utc: dict[tuple[str, str], list[tuple[float, ClockedEvent]]] = defaultdict(list)
    unmarked: list[tuple[float, ClockedEvent]] = []
    for moment in moments:
        if moment.time is not None and moment.same:
            (utc[moment.host, moment.same] if moment.utc else unmarked).append((moment.time, moment))
    pairs: dict[tuple[str, str], list[tuple[float, ClockedEvent]]] = defaultdict(list)
    for time, moment in unmarked:
        for other_time, other in utc.get((moment.host, moment.same), ())[:8]:
            gap_s = time - other_time
            zone = float(round(gap_s / _QUARTER_S) * _QUARTER_S)
            if abs(gap_s) <= _MOST_ZONE_S and abs(gap_s - zone) <= _ZONE_WITHIN_S:
                pairs[moment.source, moment.host].append((zone, other))
    return pairs


def _offset(zone_s: float) -> str:
    hours, rest = divmod(int(abs(zone_s)), 3600)
    return f"{'-' if zone_s < 0 else '+'}{hours:02d}:{rest // 60:02d}"


# --- moments ------------------------------------------------------------------------------------------------------


def _placed(moment: ClockedEvent, clock: Clock | None, zones: Zones, skews: Mapping[str, _Skew]) -> Moment:
    """The event on the case's axis: UTC where a zone is known, its zone taken for UTC where none is."""
    time, within = moment.time, moment.within_s
    if time is not None and clock is not None:
        time -= 0.0 if moment.utc else zones.get((moment.source, moment.host), (0.0, ""))[0]
        time -= clock.skew_s or 0.0
        within = max(within, clock.within_s if clock.within_s is not None else _UNTIED_S if skews else 0.0)
    return Moment(time, moment.what, moment.host, moment.rank, moment.stamp, within, moment.origin, moment.count)


def _folded(moments: Iterable[Moment]) -> list[Moment]:
    """Moments in order. Those that say the same of one host within a burst are one, the first, with their number."""
    folded: list[Moment] = []
    last: dict[tuple[str, str], int] = {}
    for moment in sorted(moments, key=_key):
        # Ranks of one host say the same of other addresses and pointers; two devices of the kernel's are two.
        key = (_NUMBERS.sub("#", moment.what) if moment.rank >= 0 else moment.what, moment.host)
        at = last.get(key)
        if at is not None and _is_burst(folded[at], moment):
            folded[at] = replace(folded[at], count=folded[at].count + moment.count)
        else:
            last[key] = len(folded)
            folded.append(moment)
    return folded


def _is_burst(first: Moment, other: Moment) -> bool:
    if first.time is None or other.time is None:
        return first.time is other.time
    return other.time - first.time <= BURST_S


def _shown(moments: Sequence[Moment]) -> tuple[Moment, ...]:
    """All of them, or where they are too many the first of each kind and place, then the earliest of the rest."""
    if len(moments) <= MOST_MOMENTS:
        return tuple(moments)
    first: dict[tuple[str, str], int] = {}
    for at, moment in enumerate(moments):
        first.setdefault((moment.what, moment.host), at)
    order = dict.fromkeys((*first.values(), *range(len(moments))))
    return tuple(moments[at] for at in sorted(list(order)[:MOST_MOMENTS]))


def _key(moment: Moment) -> tuple[object, ...]:
    """Those without a time stand last; equal times in an order that no reader of files decides."""
    known = moment.time is not None
    return (not known, moment.time if known else 0.0, moment.what, moment.host, moment.rank, moment.stamp)


# --- around a failure -----------------------------------------------------------------------------------------------


def around_first_error(result: Result) -> list[Moment]:
    """Events in the window round the first cause, in order, without those that only frame a job. Where its own lines
    have no time, the first of what follows from it is taken."""
    verdict = result.verdict
    if verdict is None or not verdict.causes:
        return []
    first = verdict.causes[0]
    timed = [(moment.time, moment) for moment in result.timeline.moments if moment.time is not None]
    below = [consequence.finding for consequence in first.consequences]
    begin = next(filter(None, (_begins(timed, group) for group in ([first.finding], below))), None)
    if begin is None:
        return []
    return [moment for time, moment in timed if begin - BEFORE_S <= time <= begin + AFTER_S and not moment.frames]


def _begins(timed: Sequence[tuple[float, Moment]], findings: Sequence[Finding]) -> float | None:
    """The time of the first event that stands in the evidence of these findings."""
    lines = {(line.source, line.line) for finding in findings for line in finding.evidence}
    times = [(time, moment.origin) for time, moment in timed if moment.origin is not None]
    return min((time for time, origin in times if (origin.source, origin.line) in lines), default=None)
