"""Which nodes may be compared: those that are the same machine by their evidence, never by their names; and the same
names for their parts."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import replace

from topodiag.fleet.digest import Digest, Facts, Key, key_of
from topodiag.words.units import grouped, most_of

Traits = tuple[tuple[str, str], ...]
_PRODUCT, _GPU, _ROLE = "product", "GPU", "role"
_CARDS = ("nic", "storage network", "management network")
_NAMED = frozenset({*_CARDS, "firmware", "mtu", "pci"})
"""Families whose parts are cards and their ports."""
_SLOT, _PAIRING, _NEAREST = "bus id", "pairing", "nearest network cards"


def parted(nodes: Sequence[Digest]) -> list[tuple[Traits, list[int]]]:
    """The cohorts: what their nodes have in common, and the numbers of their nodes; the largest first. A node whose
    product or whose GPUs do not show (the driver is down) belongs to the one cohort that fits what it does show."""
    sizes = Tally(node.traits for node in nodes)
    home = {traits: _home(traits, sizes) for traits in sizes}
    members = grouped((home[node.traits], number) for number, node in enumerate(nodes))
    return sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))


def _home(traits: Traits, sizes: Mapping[Traits, int]) -> Traits:
    """The cohort of nodes with these traits: their own, or the only larger one that has what they lack."""
    mine = dict(traits)
    lacking = {name for name in (_PRODUCT, _GPU) if not mine[name]}
    if not lacking or lacking == {_PRODUCT, _GPU}:
        return traits
    lacking |= {_ROLE} if _GPU in lacking else set()
    fitting = [
        other
        for other in sizes
        if all(value == mine[name] for name, value in other if name not in lacking)
        and all(value for name, value in other if name in (_PRODUCT, _GPU))
    ]
    return fitting[0] if len(fitting) == 1 and sizes[fitting[0]] > sizes[traits] else traits


def name_of(traits: Traits) -> str:
    """`DGX H100, NVIDIA H100 80GB HBM3`; what is not known is left out, and `kind unknown` stands for nothing known."""
    by_name = dict(traits)
    words = [word for word in (by_name[_PRODUCT], by_name[_GPU]) if word]
    words += ["no GPU shown" if words else "kind unknown"] if not by_name[_GPU] else []
    words += [f"captured in {by_name['captured in']}"] if by_name["captured in"] else []
    return ", ".join(words)


def aligned(nodes: Sequence[Digest]) -> list[Digest]:
    """The nodes, with the same names for the same network cards: where one is gone, the kernel numbers those behind it
    otherwise. A node whose cards stand in other slots than those of most is read by slot: its cards get the names that
    most nodes have for these slots. Where all slots are the same, names stay: names that are exchanged are then what
    differs."""
    slots = [_slots(node) for node in nodes]
    name_at = {slot: name for name, slot in most_of(slots, ())}
    known: dict[tuple[object, ...], Facts] = {}
    renamed = []
    for node, own in zip(nodes, slots, strict=True):
        # A card in a slot that others do not have is named by it.
        names = {name: name_at.get(slot, f"{name} at {slot}") for name, slot in own}
        moved = name_at.keys() != {slot for _, slot in own} and any(old != new for old, new in names.items())
        renamed.append(_renamed(node, names, known) if moved else node)
    return renamed


def _slots(node: Digest) -> tuple[tuple[str, str], ...]:
    """(name, bus id) of each card."""
    return tuple(
        (part, value)
        for facts in node.facts
        if facts.family in _CARDS
        for (part, key, _), value in facts.values
        if key == _SLOT
    )


def _renamed(node: Digest, names: Mapping[str, str], known: dict[tuple[object, ...], Facts]) -> Digest:
    facts = []
    for fact in node.facts:
        at = (tuple(names.items()), fact)
        if at not in known:
            known[at] = _facts(fact, names)
        facts.append(known[at])
    counters, numbers = (
        tuple(replace(fact, part=_key(fact.family, key_of(fact), names)[0]) for fact in facts)
        for facts in (node.counters, node.numbers)
    )
    values = tuple((_key(family, key, names), family) for key, family in node.counted.values)
    counted = replace(node.counted, values=values)
    carried = tuple((_part(part, names), count) for part, count in node.carried)
    return replace(node, facts=tuple(facts), counters=counters, counted=counted, carried=carried, numbers=numbers)


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
