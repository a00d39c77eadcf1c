"""The same names for the same network cards: where one is gone, the kernel numbers those behind it otherwise.

A node whose cards stand in other slots than those of most is read by slot: its cards get the names that most nodes have
for these slots. Where all slots are the same, names stay: that they are exchanged is then a difference of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from topodiag.fleet.digest import Digest, Facts, Key, Reading
from topodiag.words.units import most_of

_CARDS = ("nic", "storage network", "management network")
_NAMED = frozenset({*_CARDS, "firmware", "mtu", "pci"})
"""Families whose parts are cards and their ports."""
_SLOT, _PAIRING, _NEAREST = "bus id", "pairing", "nearest network cards"


def aligned(nodes: Sequence[Digest]) -> list[Digest]:
    """The nodes, with the cards of those that have others than most named by their slots."""
    slots = [_slots(node) for node in nodes]
    usual = most_of(slots, ())
    name_at = {slot: name for name, slot in usual}
    known: dict[tuple[object, ...], Facts] = {}
    return [
        node if {slot for _, slot in own} == set(name_at) else _renamed(node, _names(own, name_at), known)
        for node, own in zip(nodes, slots, strict=True)
    ]


def _slots(node: Digest) -> tuple[tuple[str, str], ...]:
    """(name, bus id) of each card."""
    return tuple(
        (part, value)
        for facts in node.facts
        if facts.family in _CARDS
        for (part, key, _), value in facts.values
        if key == _SLOT
    )


def _names(own: Sequence[tuple[str, str]], name_at: Mapping[str, str]) -> dict[str, str]:
    """The new name of each card; one in a slot that others do not have is named by it."""
    return {name: name_at.get(slot, f"{name} at {slot}") for name, slot in own}


def _renamed(node: Digest, names: Mapping[str, str], known: dict[tuple[object, ...], Facts]) -> Digest:
    if all(old == new for old, new in names.items()):
        return node
    facts = []
    for fact in node.facts:
        at = (tuple(names.items()), fact)
        if at not in known:
            known[at] = _facts(fact, names)
        facts.append(known[at])
    counters = tuple(_reading(counter, names) for counter in node.counters)
    numbers = tuple(_reading(number, names) for number in node.numbers)
    values = tuple((_key(family, key, names), family) for key, family in node.counted.values)
    counted = replace(node.counted, values=values)
    carried = tuple((_part(part, names), count) for part, count in node.carried)
    return replace(node, facts=tuple(facts), counters=counters, counted=counted, carried=carried, numbers=numbers)


def _reading(reading: Reading, names: Mapping[str, str]) -> Reading:
    return replace(reading, key=_key(reading.family, reading.key, names))


def _key(family: str, key: Key, names: Mapping[str, str]) -> Key:
    return (_part(key[0], names), *key[1:]) if family in _NAMED else key


def _part(part: str, names: Mapping[str, str]) -> str:
    card, slash, port = part.partition("/")
    return names.get(card, card) + slash + port


def _facts(facts: Facts, names: Mapping[str, str]) -> Facts:
    if facts.family == _PAIRING:
        kept = [
            (key, _nearest(value, names) if key[1] == _NEAREST else value)
            for key, value in facts.values
            if key[1] in (_NEAREST, "GPUs by path")
        ]
        return replace(facts, values=tuple(kept), sources=())
    return replace(facts, values=tuple((_key(facts.family, key, names), value) for key, value in facts.values))


def _nearest(value: str, names: Mapping[str, str]) -> str:
    cards, over, path = value.partition(" over ")
    return ",".join(names.get(card, card) for card in cards.split(",")) + over + path
