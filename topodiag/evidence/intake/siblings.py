"""Texts that differ from a sibling's in identities alone: what was made of one is made of the other by exchanging them.

Host names, UUIDs, GUIDs and MAC addresses are opaque to the sources, which copy them and no more. That a source does so
with a text is not taken on trust: its reading of one node must have foretold that of a second to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from ipaddress import ip_address
from typing import Any

from topodiag.evidence.draft import Body, Entity, NodeDraft, Offer, PairOffer
from topodiag.evidence.intake.text_read import TextRead
from topodiag.model.provenance import Origin

_HEX = "[0-9a-f]"
_IDENTITY = (
    rf"(?<![0-9A-Za-z])(?:{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}|{_HEX}{{4}}(?::{_HEX}{{4}}){{3}}"
    rf"|{_HEX}{{2}}(?::{_HEX}{{2}}){{5}}|(?:0x)?{_HEX}{{16}})(?![0-9A-Za-z])"
)
_SHORT_ADDRESS = re.compile(
    rf"(?<![0-9A-Za-z:])({_HEX}{{1,4}}::{_HEX}{{1,4}}(?::{_HEX}{{1,4}}){{0,5}})(?![0-9A-Za-z:])"
)
_LEAST_DIGITS = 5
"""Different digits of an identity: those with fewer mean something, as all zeros, `fe80:0000:0000:0000` or all ones."""
_LEAST_HOST = 4
_DIGIT = re.compile(_HEX)


@lru_cache(maxsize=256)
def _pattern(host: str) -> re.Pattern[str]:
    """Identities in a text of this host."""
    own = rf"|{re.escape(host)}" if len(host) >= _LEAST_HOST else ""
    return re.compile(f"({_IDENTITY}{own})", re.ASCII)


def _plain(token: str) -> str:
    """The digits of an identity, however it is written."""
    return token.removeprefix("0x").replace(":", "").replace("-", "")


def _form(token: str) -> str:
    """How an identity is written."""
    digits = token.removeprefix("0x")
    return token[: len(token) - len(digits)] + _DIGIT.sub("h", digits)


def _means_something(token: str, host: str) -> bool:
    return token != host and len(set(_plain(token))) < _LEAST_DIGITS


@dataclass(frozen=True, slots=True)
class Likeness:
    """What a text shares with its siblings, and the identities that it does not."""

    shared: str
    """A digest of the text without its identities, of how they are written and which of them are equal."""
    host: str
    names: tuple[str, ...]
    """Each identity once, in the order of the text."""


def likeness_of(data: bytes, host: str) -> Likeness | None:
    """None for a text without identities."""
    pieces = _pattern(host).split(data.decode("latin-1"))
    order: dict[str, int] = {}
    rest = pieces[0::2]
    for token in pieces[1::2]:
        if _means_something(token, host):
            rest.append(token)
            continue
        plain = host if token == host else _plain(token)
        number = order.setdefault(plain, len(order))
        rest.append(f"{number} {'host' if token == host else _form(token)}")
    if not order:
        return None
    return Likeness(sha256("\0".join(rest).encode("latin-1")).hexdigest(), host, tuple(order))


class Exchange:
    """One text's identities for another's, where both have the same place in their texts."""

    def __init__(self, old: Likeness, new: Likeness) -> None:
        self._names: Mapping[str, str] = dict(zip(old.names, new.names, strict=True))
        self._host = old.host
        self._pattern = _pattern(old.host)

    def text(self, text: str) -> str:
        if "::" not in text:
            return self._pattern.sub(self._other, text)
        pieces = _SHORT_ADDRESS.split(text)
        return "".join(
            self._address(piece) if place % 2 else self._pattern.sub(self._other, piece)
            for place, piece in enumerate(pieces)
        )

    def _address(self, address: str) -> str:
        """A GID as tools shorten it: its second half is a GUID."""
        try:
            digits = ip_address(address).packed.hex()
        except ValueError:
            return address
        other = "".join(self._names.get(half, half) for half in (digits[:16], digits[16:]))
        return address if other == digits else str(ip_address(bytes.fromhex(other)))

    def _other(self, match: re.Match[str]) -> str:
        token = match[0]
        if token == self._host:
            return self._names.get(token, token)
        other = self._names.get(_plain(token))
        if other is None:
            return token
        digits = iter(other)
        body = token.removeprefix("0x")
        return token[: len(token) - len(body)] + _DIGIT.sub(lambda _: next(digits), body)

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        return tuple(map(self.value, value)) if isinstance(value, tuple) else value

    def offer(self, offer: Offer) -> Offer:
        value, text = self.value(offer.value), self.text(offer.origin.text)
        if value == offer.value and text == offer.origin.text:
            return offer
        origin = Origin(offer.origin.source, offer.origin.line, text, offer.origin.command)
        return Offer(value, origin, offer.trust, offer.sample, offer.why)

    def offers(self, offers: Mapping[str, list[Offer]]) -> dict[str, list[Offer]]:
        return {name: list(map(self.offer, several)) for name, several in offers.items()}


@dataclass(frozen=True, slots=True)
class Template:
    """A reading from which those of siblings are made, and the bodies in it that differ between them, by identity."""

    made: TextRead
    likeness: Likeness
    varying: frozenset[int]

    def of_sibling(self, likeness: Likeness, digest: str) -> TextRead:
        """What the source makes of a sibling's text with this likeness and sha256."""
        exchange = Exchange(self.likeness, likeness)
        old, part = self.made.part, NodeDraft()
        twins: dict[int, Entity] = {}
        for kind, entity in old.all_entities():
            twins[id(entity)] = twin = self._twin(entity, exchange, part)
            part.adopt(kind, twin)
        part.singles = {kind: self._twin(entity, exchange, part) for kind, entity in old.singles.items()}
        part.pairs = [
            PairOffer(each.table, twins[id(each.a.root)], twins[id(each.b.root)], exchange.offer(each.offer))
            for each in old.pairs
        ]  # fmt: skip
        part.missing, part.acs_lines = old.missing, old.acs_lines
        return replace(self.made, part=part, item=replace(self.made.item, sha256=digest))

    def _twin(self, entity: Entity, exchange: Exchange, draft: NodeDraft) -> Entity:
        body = entity.body
        if id(body) not in self.varying:
            return entity
        return Entity(
            draft,
            Body(
                {name: exchange.value(key) for name, key in body.keys.items()},
                exchange.offers(body.offers),
                exchange.offers(body.counters),
                {place: self._twin(child, exchange, draft) for place, child in body.children.items()},
            ),
        )


def template_of(first: TextRead, old: Likeness, second: TextRead, new: Likeness) -> Template | None:
    """A template for siblings of both; None where the first reading does not foretell the second."""
    one, two = first.part, second.part
    alone = (one.events, one.processes, one.settings, one.conf_lines, one.nccl_file)
    same = (first.unread, first.told, first.spoke, one.missing, one.acs_lines) == (
        second.unread, second.told, second.spoke, two.missing, two.acs_lines)  # fmt: skip
    if any(alone) or not same or replace(first.item, sha256=second.item.sha256) != second.item:
        return None
    exchange = Exchange(old, new)
    ours, theirs = list(one.all_entities()), list(two.all_entities())
    varying: set[int] = set()
    equal = (
        [kind for kind, _ in ours] == [kind for kind, _ in theirs]
        and all(_foretold(a, b, exchange, varying) for (_, a), (_, b) in zip(ours, theirs, strict=True))
        and list(one.singles) == list(two.singles)
        and all(_foretold(one.singles[kind], two.singles[kind], exchange, varying) for kind in one.singles)
        and list(_numbered(one, exchange)) == list(_numbered(two, None))
    )
    return Template(first, old, frozenset(varying)) if equal else None


def _numbered(draft: NodeDraft, exchange: Exchange | None) -> Iterator[tuple[str, int, int, Offer]]:
    """The pairs with the places of their ends."""
    place = {id(entity): number for number, (_, entity) in enumerate(draft.all_entities())}
    for each in draft.pairs:
        offer = each.offer if exchange is None else exchange.offer(each.offer)
        yield each.table, place[id(each.a.root)], place[id(each.b.root)], offer


def _foretold(one: Entity, two: Entity, exchange: Exchange, varying: set[int]) -> bool:
    """Whether one is the other but for identities; adds the bodies that have some to `varying`."""
    mine, theirs = one.body, two.body
    keys = {name: exchange.value(key) for name, key in mine.keys.items()}
    offers, counters = exchange.offers(mine.offers), exchange.offers(mine.counters)
    if (list(keys.items()), offers, counters) != (list(theirs.keys.items()), theirs.offers, theirs.counters):
        return False
    if list(mine.children) != list(theirs.children):
        return False
    if not all(_foretold(child, theirs.children[at], exchange, varying) for at, child in mine.children.items()):
        return False
    within = any(id(child.body) in varying for child in mine.children.values())
    if within or keys != mine.keys or offers != mine.offers or counters != mine.counters:
        varying.add(id(mine))
    return True
