"""What changed between two captures of one node: facts beside facts, each part beside the same part by its serial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from topodiag.checks.fleet.flaps import TRAINING_S
from topodiag.lazy import dataclass, regex
from topodiag.model.fleet import CLOSED, FactKind, NodeFact
from topodiag.model.history import Capture

ABSENT = "absent"
"""The value of a fact that a node does not have, in families where everything is listed."""
NOISE = 0.1
"""A quantity that moved by less is the same: file systems are sized from the memory that a kernel leaves."""
_SERIALS = {"uuid": "gpu", "node GUID": "nic"}
"""Identities that only one part has, with the family of the part."""
_TRAINED = frozenset({
    "state", "physical state", "links", "rate", "lanes", "width", "generation", "speed", "line rate", "fabric state",
    "fabric status",
})  # fmt: skip
"""Facts that a boot brings up link by link."""
_COMPARED = frozenset({FactKind.CATEGORY, FactKind.NUMBER})

_COUNTED = regex(r"([0-9]{1,4}) ([a-z]{1,20})")

Key = tuple[str, str, str]
"""Family, part, key."""


@dataclass(frozen=True, slots=True)
class FactChange:
    """One fact that is another one now, for the parts that changed alike. `source` is where the new value stands."""

    family: str
    key: str
    before: str
    after: str
    parts: tuple[str, ...]
    unit: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed. `replaced` are parts with another serial in the same place, `renamed` parts that only have another
    name (before, now). `another`: no part is the same, so that nothing was compared. `training`: the node had just
    booted, and states of links were left out. `compared`: facts that stand in both captures."""

    changes: tuple[FactChange, ...] = ()
    replaced: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    another: bool = False
    training: bool = False
    compared: int = 0


def changes_between(before: Capture, now: Capture) -> Changes:
    """What changed from one capture to a later one. A fact that only one of them holds is unknown in the other one, and
    no change."""
    old_serials, new_serials = _serials(before.facts), _serials(now.facts)
    if old_serials and new_serials and not set(old_serials.values()) & set(new_serials.values()):
        return Changes(another=True)
    renamed = _renamed(old_serials, new_serials)
    replaced = _replaced(old_serials, new_serials, renamed)
    training = any(map(_just_booted, (before, now)))
    old, new = _facts(before.facts, renamed), _facts(now.facts, {})
    # A part that has another name is named otherwise by its neighbours, too.
    skipped = frozenset({"pairing"}) if renamed else frozenset[str]()
    listed = _listed(before.facts) & _listed(now.facts)
    pairs = [
        (key, old.get(key), new.get(key))
        for key in sorted(old.keys() | new.keys())
        if key[0] not in skipped
        and not (training and key[2] in _TRAINED)
        and (key[0] in listed or (key in old and key in new))
    ]
    return Changes(_changed(pairs), replaced, tuple(sorted(renamed.items())), training=training, compared=len(pairs))


def _just_booted(capture: Capture) -> bool:
    return capture.time_s is not None and capture.boot_s is not None and capture.time_s - capture.boot_s < TRAINING_S


def _changed(pairs: Iterable[tuple[Key, NodeFact | None, NodeFact | None]]) -> tuple[FactChange, ...]:
    """The facts that differ; parts that changed alike stand together."""
    node_facts: dict[tuple[str, str, str, str], list[NodeFact]] = {}
    for (family, _, key), was, now in pairs:
        if _differ(was, now):
            alike = node_facts.setdefault((family, key, _value(was), _value(now)), [])
            alike += [node_fact for node_fact in (now, was) if node_fact is not None][:1]
    return tuple(
        FactChange(family, key, was, now, tuple(f.part for f in facts if f.part), facts[0].unit, facts[0].source)
        for (family, key, was, now), facts in node_facts.items()
    )


def same_machine(before: Sequence[NodeFact], now: Sequence[NodeFact]) -> bool | None:
    """Whether two captures share a GPU or a network card; None where one of them names none."""
    old, new = set(_serials(before).values()), set(_serials(now).values())
    return bool(old & new) if old and new else None


def _serials(facts: Iterable[NodeFact]) -> dict[str, str]:
    """The serial of each part."""
    return {fact.part: str(fact.value) for fact in facts if _SERIALS.get(fact.key) == fact.family}


def _renamed(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Parts whose serial stands at another name now, by their old name. A serial at two names tells nothing."""
    places = _places(new)
    known = _places(old)
    return {
        names[0]: places[serial][0]
        for serial, names in known.items()
        if len(names) == 1 and len(places.get(serial, ())) == 1 and places[serial][0] != names[0]
    }


def _places(serials: Mapping[str, str]) -> dict[str, list[str]]:
    places: dict[str, list[str]] = {}
    for part, serial in serials.items():
        places.setdefault(serial, []).append(part)
    return places


def _replaced(old: Mapping[str, str], new: Mapping[str, str], renamed: Mapping[str, str]) -> tuple[str, ...]:
    """Parts with a serial that the node did not have, where another one was that it has no more."""
    texts = {renamed.get(part, part) for part, serial in old.items() if serial not in set(new.values())}
    come = {part for part, serial in new.items() if serial not in set(old.values())}
    return tuple(sorted(texts & come))


def _facts(facts: Iterable[NodeFact], renamed: Mapping[str, str]) -> dict[Key, NodeFact]:
    """The facts that may be compared, at the names that their parts have now."""
    node_facts: dict[Key, NodeFact] = {}
    for fact in facts:
        if fact.kind in _COMPARED:
            device, slash, rest = fact.part.partition("/")
            part = renamed.get(device, device) + slash + rest
            node_facts[fact.family, part, fact.key] = fact if part == fact.part else replace(fact, part=part)
    return node_facts


def _listed(facts: Iterable[NodeFact]) -> frozenset[str]:
    """The families of CLOSED that a capture has."""
    return frozenset({fact.family for fact in facts}) & CLOSED


def _differ(was: NodeFact | None, now: NodeFact | None) -> bool:
    if was is None or now is None or was.kind is not FactKind.NUMBER:
        return _value(was) != _value(now)
    try:
        before, after = float(was.value), float(now.value)
    except ValueError:
        return was.value != now.value
    return abs(after - before) > NOISE * max(abs(before), abs(after))


def _value(fact: NodeFact | None) -> str:
    if fact is None:
        return ABSENT
    text = str(fact.value)
    # A link without traffic goes to sleep, and wakes with the first packet.
    return awake(text) if (fact.family, fact.key) == ("nvlink", "links") else text


def awake(links: str) -> str:
    """`18 active` for `17 active, 1 sleep`: the states of a GPU's links with those that sleep among the active ones."""
    counts: Counter[str] = Counter()
    for part in links.split(", "):
        match = _COUNTED.fullmatch(part)
        if match is None:
            return links
        counts["active" if match[2] == "sleep" else match[2]] += int(match[1])
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
