"""What a store of captures answers: what changed since a node's last good capture, what comes and goes, which counters
rise, which nodes keep failing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from topodiag.checks.fleet.flapping import WINDOW_S
from topodiag.checks.fleet.growth import growth
from topodiag.fleet.history.store import Store, values
from topodiag.lazy import dataclass
from topodiag.model.finding import Finding, Severity
from topodiag.model.fleet import FactKind, NodeFact
from topodiag.model.history import (
    FALLS,
    Capture,
    Growth,
    NodeFailures,
    NodeHistory,
    PartStates,
    RisingCounter,
    Spell,
    Track,
    spell_time,
)
from topodiag.words.units import grouped

DAY_S = 86400.0
GROWTH_DAYS = 30
"""Counters are followed over so many days before a node's last capture."""
FAILING_DAYS = 90
FAILING_TIMES = 3
"""Failures that were new within FAILING_DAYS and make a node one that keeps failing: the same one that is not repaired
is one failure."""
COMMON = 0.05
"""A counter that rises on more than this share of its parts is the fleet's way of working, not a part's fault."""
MIN_SIBLINGS = 20
"""Parts below which nobody can say what is common."""
TRACKS = 64
"""Nodes whose course is kept to be drawn."""

Told = Callable[[str], bool]
"""Whether a host is asked about."""


@dataclass(frozen=True, slots=True)
class Row:
    """One capture without its facts: the names of its blocks, and how many facts they hold."""

    capture: Capture
    blocks: frozenset[str]
    facts: int


def rows_by_host(store: Store, is_asked: Told) -> dict[str, list[Row]]:
    """The captures of each host in the order of time; those without a time come first."""
    by_host: dict[str, list[Row]] = defaultdict(list)
    for capture, host, time_s, boot_s, source, blocks, errors, facts in values(store.table("captures")):
        if is_asked(host):
            held = Capture(capture, host, time_s, boot_s, source, tuple(errors or ()))
            by_host[host].append(Row(held, frozenset(blocks or ()), facts))
    for rows in by_host.values():
        rows.sort(key=lambda row: (row.capture.time_s or 0.0, row.capture.id))
    return dict(by_host)


def histories(store: Store, rows: Mapping[str, Sequence[Row]], is_asked: Told) -> list[NodeHistory]:
    """The history of each host that has a capture or was watched: its last capture beside the last good one before it,
    its counters, the states of its links."""
    pairs = {host: _pair(of_host) for host, of_host in rows.items()}
    wanted: set[str] = set()
    for now, before, _ in pairs.values():
        if before is not None:
            wanted |= now.blocks ^ before.blocks
    facts = _facts(store, wanted)
    grown = _grown(store, rows)
    states = _states(store, is_asked)
    node_histories = []
    for host in sorted(set(rows) | set(states)):
        parts, end_s = states.get(host, ((), None))
        history = NodeHistory(host, states=parts, end_s=end_s, grown=grown.get(host, ()))
        if host in pairs:
            now, before, basis = pairs[host]
            held = _with_facts(before, now.blocks, facts) if before is not None else None
            there = _with_facts(now, before.blocks if before is not None else now.blocks, facts)
            same = now.facts - len(there.facts)
            history = replace(history, now=there, before=held, basis=basis, same=max(0, same) if before else 0)
        node_histories.append(history)
    return node_histories


def failing(rows: Mapping[str, Sequence[Row]]) -> tuple[NodeFailures, ...]:
    """The nodes that keep failing, the worst first."""
    failures = []
    for host, of_host in rows.items():
        last = of_host[-1].capture.time_s
        recent = [
            row.capture for row in of_host if last is None or (row.capture.time_s or 0) >= last - FAILING_DAYS * DAY_S
        ]
        before: frozenset[str] = frozenset()
        times = 0
        seen: Counter[str] = Counter()
        for capture in recent:
            errors = frozenset(capture.errors)
            times += len({error.split(" ")[0] for error in errors - before})
            seen.update(errors)
            before = errors
        if times >= FAILING_TIMES:
            bad = [capture for capture in recent if capture.errors]
            failures.append(
                NodeFailures(host, times, len(bad), tuple(seen.most_common(5)), bad[0].day[:10], bad[-1].day[:10])
            )
    return tuple(sorted(failures, key=lambda failure: (-failure.times, failure.host)))


def rising(histories: Iterable[NodeHistory]) -> tuple[tuple[RisingCounter, ...], tuple[tuple[str, int, int], ...]]:
    """Counters that rise on few of the parts that have them, the rarest first; and those that rise on many, with how
    many of how many parts."""
    by_key: dict[str, list[tuple[str, Growth]]] = defaultdict(list)
    totals: Counter[str] = Counter()
    for history in histories:
        for one in history.grown:
            totals[one.key] += 1
            if one.count > 0:
                by_key[one.key].append((history.host, one))
    risen: list[RisingCounter] = []
    common = []
    for key, pairs in sorted(by_key.items()):
        if len(pairs) > COMMON * totals[key] and totals[key] >= MIN_SIBLINGS:
            common.append((key, len(pairs), totals[key]))
            continue
        risen += [
            RisingCounter(host, one.part, key, one.count, one.hours, len(pairs), totals[key]) for host, one in pairs
        ]
    risen.sort(key=lambda it: (it.parts / it.total, -it.count / max(it.hours, 1.0), it.host, it.part))
    return tuple(risen), tuple(sorted(common, key=lambda row: -row[1]))


def worst_hosts(findings: Iterable[Finding]) -> list[str]:
    """The nodes of findings that are more than a note, the worst first."""
    worst = sorted(
        (finding for finding in findings if finding.severity > Severity.INFO), key=lambda finding: -finding.severity
    )
    return [host for finding in worst for host in finding.where.nodes]


def tracks(
    hosts: Iterable[str], rows: Mapping[str, Sequence[Row]], histories: Iterable[NodeHistory]
) -> tuple[Track, ...]:
    """These nodes over time, each once: all captures with a time, and the parts that were up and went down."""
    by_host = {history.host: history for history in histories}
    listed = []
    for host in list(dict.fromkeys(hosts))[:TRACKS]:
        held = [row.capture for row in rows.get(host, ())]
        states = by_host[host].states if host in by_host else ()
        fallen = [part for part in states if any(s.down for s in part.spells) and any(s.up for s in part.spells)]
        captured = tuple((capture.time_s, capture.errors) for capture in held if capture.time_s is not None)
        listed.append(Track(host, captured, tuple(fallen)))
    return tuple(listed)


def _pair(rows: Sequence[Row]) -> tuple[Row, Row | None, str]:
    """The last capture, and the one that it is held against."""
    now = rows[-1]
    earlier = rows[:-1]
    good = next((row for row in reversed(earlier) if not row.capture.errors), None)
    if good is not None:
        return now, good, "last good capture"
    return now, earlier[-1] if earlier else None, "capture before, none was good"


def _facts(store: Store, wanted: Collection[str]) -> dict[str, list[NodeFact]]:
    """The facts of some blocks, by the block."""
    if not wanted:
        return {}
    names = ("block", "family", "part", "key", "value", "kind", "unit", "source")
    return grouped(
        (block, NodeFact(family, part, key, value, FactKind(kind), unit, source))
        for block, family, part, key, value, kind, unit, source in values(store.blocks(wanted), *names)
    )


def _with_facts(row: Row, other: frozenset[str], facts: Mapping[str, Sequence[NodeFact]]) -> Capture:
    """The capture with the facts of the blocks that the other one has not."""
    node_facts = [fact for name in sorted(row.blocks - other) for fact in facts.get(name, ())]
    return replace(row.capture, facts=tuple(node_facts))


def _grown(store: Store, rows: Mapping[str, Sequence[Row]]) -> dict[str, tuple[Growth, ...]]:
    """The growth of the counters of each host over its captures of the last days. Of counters that stood still only
    those of falls are there, which are compared with each other."""
    recent: dict[str, Capture] = {}
    for of_host in rows.values():
        last = of_host[-1].capture.time_s
        for row in of_host:
            time_s = row.capture.time_s
            if last is not None and time_s is not None and time_s >= last - GROWTH_DAYS * DAY_S:
                recent[row.capture.id] = row.capture
    if len(recent) < 2:
        return {}
    since = spell_time(min(capture.time_s or 0.0 for capture in recent.values()))[:10]
    table = store.table("counters", since=since)
    wanted = pc.is_in(table["capture"].cast(pa.string()), value_set=pa.array(sorted(recent), pa.string()))
    table = table.filter(wanted)
    if not table.num_rows:
        return {}
    names = ("capture", "family", "part", "key", "unit", "value")
    by_capture = grouped(
        (capture, NodeFact(family, part, key, value, FactKind.COUNTER, unit))
        for capture, family, part, key, unit, value in values(_moving(table), *names)
    )
    in_order = sorted(recent.values(), key=lambda capture: (capture.time_s or 0.0, capture.id))
    by_host = grouped((held.host, replace(held, facts=tuple(by_capture.get(held.id, ())))) for held in in_order)
    return {host: growth(captures) for host, captures in by_host.items()}


def _moving(table: pa.Table) -> pa.Table:
    """The rows of counters that have more than one value, and of all counters of falls."""
    keys = ["host", "family", "part", "key"]
    plain = pa.table({name: table[name].cast(pa.string()) for name in keys} | {"value": table["value"]})
    ranges = plain.group_by(keys).aggregate([("value", "min"), ("value", "max")])
    falls = pc.is_in(ranges["key"], value_set=pa.array(sorted(FALLS)))
    kept = ranges.filter(pc.or_(pc.not_equal(ranges["value_min"], ranges["value_max"]), falls)).select(keys)
    rows = plain.append_column("capture", table["capture"].cast(pa.string()))
    rows = rows.append_column("unit", table["unit"].cast(pa.string()))
    return rows.join(kept, keys, join_type="left semi")


def _states(store: Store, is_asked: Told) -> dict[str, tuple[tuple[PartStates, ...], float | None]]:
    """The states of each host that was watched, in the order of time, of its last days. A file that was added again
    with more lines has the same spells, only longer."""
    longest: dict[tuple[str, str, str, float], Spell] = {}
    for host, part, state, boot, first_s, last_s, time_s, fallen in values(store.table("spells")):
        if is_asked(host):
            key = (host, part, boot, first_s)
            held = longest.get(key)
            if held is None or last_s > held.last_s:
                longest[key] = Spell(state, boot, first_s, last_s, time_s, fallen)
    ends: dict[str, float] = {}
    by_part: dict[str, dict[str, list[Spell]]] = defaultdict(lambda: defaultdict(list))
    for (host, part, _, _), spell in longest.items():
        ends[host] = max(ends.get(host, 0.0), spell.end_s)
        by_part[host][part].append(spell)
    states_of: dict[str, tuple[tuple[PartStates, ...], float | None]] = {}
    for host, parts in by_part.items():
        states = (PartStates(part, _recent(spells, ends[host])) for part, spells in sorted(parts.items()))
        states_of[host] = (tuple(states), ends[host])
    return states_of


def _recent(spells: Sequence[Spell], end_s: float) -> tuple[Spell, ...]:
    """The spells of the window in the order of time, and the last one before it in which the part was up: whether it
    ever was is asked, too."""
    ordered = sorted(spells, key=lambda spell: spell.time_s)
    was_up = [spell for spell in ordered if spell.end_s < end_s - WINDOW_S and spell.up][-1:]
    return tuple(spell for spell in ordered if spell.end_s >= end_s - WINDOW_S or spell in was_up)
