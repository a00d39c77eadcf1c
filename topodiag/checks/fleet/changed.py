"""What a node's capture shows changed since the last good one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from topodiag.checks.fleet.flapping import TRAINING_S
from topodiag.checks.fleet.places import where_of
from topodiag.checks.interface import Advice, Check
from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Finding, Outcome, Severity
from topodiag.model.fleet import CLOSED, FactKind, NodeFact
from topodiag.model.history import Capture, NodeHistory
from topodiag.model.provenance import Origin
from topodiag.words.own_data import own_data
from topodiag.words.states import GOOD
from topodiag.words.units import grouped

ABSENT = "absent"
"""The value of a fact that a node does not have, in families where everything is listed."""
NOISE = 0.1
"""A quantity that moved by less is the same: file systems are sized from the memory that a kernel leaves."""
_SERIALS = {"uuid": "gpu", "node GUID": "nic"}
"""Identities that only one part has, with the family of the part."""
_DATA = own_data("checks/fleet/changed")
_COMPARED = frozenset({FactKind.CATEGORY, FactKind.NUMBER})

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
        and not (training and key[2] in _DATA["trained"])
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
    return {
        names[0]: places[serial][0]
        for serial, names in _places(old).items()
        if len(names) == 1 and len(places.get(serial, ())) == 1 and places[serial][0] != names[0]
    }


def _places(serials: Mapping[str, str]) -> dict[str, list[str]]:
    return grouped((serial, part) for part, serial in serials.items())


def _replaced(old: Mapping[str, str], new: Mapping[str, str], renamed: Mapping[str, str]) -> tuple[str, ...]:
    """Parts with a serial that the node did not have, where another one was that it has no more."""
    texts = {renamed.get(part, part) for part, serial in old.items() if serial not in set(new.values())}
    return tuple(sorted(texts & {part for part, serial in new.items() if serial not in set(old.values())}))


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
        count, _, state = part.partition(" ")
        if not count.isdecimal() or not state.isalpha():
            return links
        counts["active" if state == "sleep" else state] += int(count)
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))


MAX_TOLD = 40
"""Changes of one node that are told one by one: a new image changes hundreds of facts."""
MAX_VALUE = 80
_LINKS = frozenset({"pci", "nvlink", "nic"})
"""Families whose changes alter the paths that the bandwidths of links make: those then follow, and are notes."""
_NUMBER = regex(r"-?[0-9]{1,18}(?:\.[0-9]{1,9})?")


class ChangedSinceGood(Check[NodeHistory], id="FLT003"):
    """FLT003: changed since the last good capture of this node

    What it finds
        Facts of a node that are otherwise than in its last capture without an error, or in the capture given: lanes,
        links, states, firmware, drivers, settings, and parts that were replaced or are numbered otherwise.

    Why it matters
        A node that worked and works no more has changed. What changed is the shortest list of suspects.

    Evidence it reads
        Two captures of one node: `topodiag scan --since BUNDLE`, or a store of them: `topodiag fleet history STORE`.
        Parts are matched by serial number (GPU UUID, node GUID of a network card), not by name.

    When it stays silent
        The first capture of a node: unknown. Serial numbers, addresses, clocks, uptime and counters differ between any
        two captures. A fact that only one capture holds: not known in the other one. States and widths of links
        within 5 minutes of a boot, while links train. A machine of which no GPU and no network card is the same is
        another machine: that alone is said. A quantity that moved by less than 10 %. Paths that change together with a
        link are notes beside the link.

    How to confirm
        topodiag scan --since BEFORE.tar.gz NOW.tar.gz -v

    How to fix
        A change that nobody made is a fault: reseat or replace the part. One that somebody made and that costs: take it
        back, or make it on all nodes.

    References
        Documentation of topodiag, history of a fleet.
    """

    def observe(self, judged: NodeHistory, peers: Sequence[NodeHistory]) -> Outcome:
        if judged.now is None:
            return self.unknown(judged, "no capture of the node")
        if judged.before is None:
            return self.unknown(judged, "no earlier capture of the node to compare with")
        changes = changes_between(judged.before, judged.now)
        if not (changes.changes or changes.replaced or changes.renamed or changes.another):
            compared = changes.compared + judged.same
            if not compared:
                return self.unknown(judged, "the two captures have no fact in common")
            later = "; states of links were left out, the node had just booted" if changes.training else ""
            why = f"{compared} facts are as in the {judged.basis} of {judged.before.day}{later}"
            return self.clean(judged, why)
        return self.with_findings(judged, self._told(judged, judged.before, judged.now, changes))

    def _told(self, judged: NodeHistory, before: Capture, now: Capture, changes: Changes) -> Iterator[Finding]:
        if changes.another:
            words = "this is another machine under the same name"
            yield self._note(judged, before, words, "no GPU and no network card is the same")
            return
        for part in changes.replaced:
            yield self._note(judged, before, "a part was replaced", "another serial number in the same place", (part,))
        if changes.renamed:
            renames = ", ".join(f"{old} is {new}" for old, new in changes.renamed[:8])
            yield self._note(judged, before, "parts are numbered otherwise", renames)
        linked = any(change.family in _LINKS for change in changes.changes)
        pairs = sorted(((severity_of(change, linked), change) for change in changes.changes), key=lambda pair: -pair[0])
        for severity, change in pairs[:MAX_TOLD]:
            yield self._change(judged, before, now, change, severity)
        if len(pairs) > MAX_TOLD:
            words = f"{len(pairs) - MAX_TOLD} more facts changed"
            yield self._note(judged, before, words, "the changes in full: --format json of both captures")

    def _change(self, judged: NodeHistory, before: Capture, now: Capture, change: FactChange, how: Severity) -> Finding:
        # The family where the key alone says little.
        label = change.key if change.key.lower().startswith(change.family) else f"{change.family}: {change.key}"
        was, after = _short(change.before, change.unit), _short(change.after, change.unit)
        return self.finding(
            where_of(judged.host, change.parts),
            Advice(how),
            f"{label} changed from {was} to {after}",
            observed=after,
            expected=f"{was}, as in the {judged.basis}",
            cost="" if how is Severity.INFO else "it may cost bandwidth or stability",
            fix=() if how is Severity.INFO else ("find out who changed it; if nobody did, the part is at fault",),
            evidence=[
                Origin(before.source, None, f"{before.day}: {change.key} {was}"),
                Origin(change.source or now.source, None, f"{now.day}: {change.key} {after}"),
            ],
        )

    def _note(self, judged: NodeHistory, before: Capture, words: str, seen: str, parts: Sequence[str] = ()) -> Finding:
        return self.finding(
            where_of(judged.host, parts),
            Advice(Severity.INFO),
            words,
            observed=seen,
            expected=f"the parts of the {judged.basis}",
            evidence=[Origin(before.source, None, before.day)],
        )


def severity_of(change: FactChange, linked: bool) -> Severity:
    """A warning where the change is for the worse, or nobody can say, in hardware or in limits; a note otherwise.
    `linked`: links changed as well."""
    follows = linked and change.family == "pairing" and change.key.endswith("by path")
    if follows or change.family in _DATA["software"] or change.after.lower() in GOOD:
        return Severity.INFO
    numbers = _NUMBER.match(change.before), _NUMBER.match(change.after)
    more_is_better = change.key in _DATA["more_is_better"] or change.key.endswith(" network cards")
    if more_is_better and numbers[0] is not None and numbers[1] is not None:
        before, after = float(numbers[0][0]), float(numbers[1][0])
        # Limits have -1 for "unlimited".
        if before >= 0 and (after > before or after < 0):
            return Severity.INFO
    return Severity.WARNING


def _short(value: str, unit: str) -> str:
    text = value if len(value) <= MAX_VALUE else value[: MAX_VALUE - 1] + "…"
    return f"{text} {unit}".rstrip()
