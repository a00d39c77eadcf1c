"""Texts that differ from a sibling's in identities alone: what was made of one is made of the other by exchanging them.

Host names, UUIDs, GUIDs and MAC addresses are opaque to the sources, which copy them and no more. That a source does so
with a text is not taken on trust: its reading of one node must have foretold that of a second to the letter.

What one source made of one text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from hashlib import sha256
from ipaddress import IPv6Address, ip_address
from typing import Any

from topodiag.evidence.draft import Body, Entity, NodeDraft, Offer, PairOffer
from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Input
from topodiag.model.provenance import Origin
from topodiag.model.result import UnreadLine
from topodiag.model.topics import Topic


@dataclass(frozen=True, slots=True)
class TextRead:
    """What it offers, and the account of it. `spoke`: it is evidence of its kind."""

    part: NodeDraft
    item: Input
    unread: tuple[UnreadLine, ...] = ()
    told: frozenset[Topic] = field(default=frozenset())
    spoke: bool = False


_HEX = "[0-9a-f]"
# A UUID, a GUID in three forms, a MAC address. All but one begin with two digits, which are quick to search for.
IDENTITY = regex(
    rf"(\b(?:0x{_HEX}{{16}}|{_HEX}{{2}}(?:(?::{_HEX}{{2}}){{5}}|{_HEX}{{2}}(?::{_HEX}{{4}}){{3}}"
    rf"|{_HEX}{{6}}(?:(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}|{_HEX}{{8}})))\b)",
    re.ASCII,
)
_GROUP = rf"{_HEX}{{1,4}}"
SHORT_ADDRESS = regex(
    r"(?<![0-9A-Za-z:.])(::ffff:[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z:.])"
    rf"|(?:{_GROUP})?::{_GROUP}(?::{_GROUP}){{0,5}}(?![0-9A-Za-z:.]))"
)
_IPV4 = "0000ffff"
"""The first half of the digits of an IPv4 address in the lower half of a GID: the second is an identity by itself."""
_LEAST_DIGITS = 5
"""Different digits of an identity: those with fewer mean something, as all zeros, `fe80:0000:0000:0000` or all ones."""
LEAST_HOST = 4
_HOST = "\1"
"""Stands for the host."""
_FORM = str.maketrans(dict.fromkeys("0123456789abcdef", "h"))
_TURNED = str.maketrans("0123456789abcdef", "fedcba9876543210")


def plain(token: str) -> str:
    """The digits of an identity, however it is written."""
    return token.removeprefix("0x").replace(":", "").replace("-", "")


def form_of(token: str) -> str:
    """How an identity is written."""
    return token.translate(_FORM)


def digits_of(token: str) -> tuple[str, ...]:
    """The digits of an identity, however it is written; of a short address those of its halves, none where it is no
    address."""
    if "::" not in token:
        return (plain(token),)
    try:
        digits = ip_address(token).packed.hex()
    except ValueError:
        return ()
    return digits[:16], digits[16:]


def means_something(digits: str) -> bool:
    return len(set(digits)) < _LEAST_DIGITS and not digits.startswith(_IPV4)


def without_host(text: str, host: str) -> str:
    """The text with a sign for its host."""
    return text.replace(host, _HOST) if len(host) >= LEAST_HOST else text


def cut(text: str, host: str) -> list[str]:
    """The text with a sign for its host, cut at its identities, which stand at the odd places."""
    text = without_host(text, host)
    if "::" not in text:
        return IDENTITY.split(text)
    made: list[str] = []
    for place, piece in enumerate(SHORT_ADDRESS.split(text)):
        made += [piece] if place % 2 else IDENTITY.split(piece)
    return made


@dataclass(frozen=True, slots=True)
class Likeness:
    """What a text shares with its siblings, and the identities that it does not."""

    shared: str
    """A digest of the text without its identities, of how they are written and which of them are equal."""
    host: str
    names: tuple[str, ...]
    """Each identity once, in the order of the text."""

    def is_of_another(self, other: Likeness) -> bool:
        """Whether the other text is of another machine: most of its identities are others."""
        differ = sum(mine != theirs for mine, theirs in zip(self.names, other.names, strict=True))
        return 2 * differ > len(self.names) or (not self.names and self.host != other.host)

    @property
    def opposite(self) -> Likeness:
        """A sibling of which every identity is another."""
        return Likeness(self.shared, f"{self.host}{_HOST}", tuple(name.translate(_TURNED) for name in self.names))


def likeness_of(data: bytes, host: str) -> Likeness | None:
    """None for a text without identities."""
    text = data.decode("latin-1")
    hidden = without_host(text, host)
    if _HOST in text:
        return None
    pieces = IDENTITY.split(hidden)
    order: dict[str, int] = {}
    rest = pieces[0::2]
    for token in pieces[1::2]:
        if means_something(plain(token)):
            rest.append(token)
        else:
            rest.append(f"{order.setdefault(plain(token), len(order))} {form_of(token)}")
    if not order and hidden == text:
        return None
    return Likeness(sha256("\0".join(rest).encode("latin-1")).hexdigest(), host, tuple(order))


class Exchange:
    """One text's identities for another's, where both have the same place in their texts."""

    def __init__(self, old: Likeness, new: Likeness) -> None:
        self._names: Mapping[str, str] = dict(zip(old.names, new.names, strict=True))
        self._hosts = old.host, new.host
        self._tokens: dict[str, str] = {}

    def text(self, text: str) -> str:
        return self.joined(cut(text, self._hosts[0]))

    def joined(self, pieces: list[str]) -> str:
        """The text that was cut so, with the other's identities."""
        made = pieces.copy()
        made[1::2] = map(self._other, pieces[1::2])
        return "".join(made).replace(_HOST, self._hosts[1])

    def _other(self, token: str) -> str:
        other = self._tokens.get(token)
        if other is None:
            other = self._tokens[token] = self._address(token) if "::" in token else self._written(token)
        return other

    def _address(self, address: str) -> str:
        """A GID as tools shorten it: its second half is a GUID, or an IPv4 address."""
        digits = digits_of(address)
        other = tuple(self._names.get(half, half) for half in digits)
        if other == digits:
            return address
        made = IPv6Address(bytes.fromhex("".join(other)))
        return f"::ffff:{made.ipv4_mapped}" if "." in address and made.ipv4_mapped else str(made)

    def _written(self, token: str) -> str:
        """The other's identity in the form of this one."""
        other = self._names.get(plain(token))
        if other is None:
            return token
        digits = iter(other)
        body = token.removeprefix("0x")
        return token[: len(token) - len(body)] + "".join(
            next(digits) if sign == "h" else sign for sign in body.translate(_FORM)
        )

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        return tuple(map(self.value, value)) if isinstance(value, tuple) else value

    def offer(self, offer: Offer) -> Offer:
        """Itself where it holds no identity."""
        value, text = self.value(offer.value), self.text(offer.origin.text)
        if value == offer.value and text == offer.origin.text:
            return offer
        origin = Origin(offer.origin.source, offer.origin.line, text, offer.origin.command)
        return Offer(value, origin, offer.trust, offer.sample, offer.why)


@dataclass(frozen=True, slots=True)
class Template:
    """A reading from which those of siblings are made, and the `id`s of the bodies and offers in it that hold
    identities."""

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
            PairOffer(pair.table, twins[id(pair.a.root)], twins[id(pair.b.root)], self._offer(pair.offer, exchange))
            for pair in old.pairs
        ]
        part.missing, part.acs_lines = old.missing, old.acs_lines
        return replace(self.made, part=part, item=replace(self.made.item, sha256=digest))

    def _twin(self, entity: Entity, exchange: Exchange, draft: NodeDraft) -> Entity:
        body = entity.body
        if id(body) not in self.varying:
            return entity
        return Entity(
            draft.weight,
            Body(
                {name: exchange.value(key) for name, key in body.keys.items()},
                {name: [self._offer(each, exchange) for each in several] for name, several in body.offers.items()},
                {name: [self._offer(each, exchange) for each in several] for name, several in body.counters.items()},
                {place: self._twin(child, exchange, draft) for place, child in body.children.items()},
            ),
        )

    def _offer(self, offer: Offer, exchange: Exchange) -> Offer:
        return exchange.offer(offer) if id(offer) in self.varying else offer


def template_of(first: TextRead, old: Likeness, second: TextRead, new: Likeness) -> Template | None:
    """A template for siblings of both; None where the first reading does not foretell the second."""
    one, two = first.part, second.part
    alone = (one.events, one.processes, one.settings, one.conf_lines, one.nccl_file)
    same = (first.unread, first.told, first.spoke, one.missing, one.acs_lines) == (
        second.unread, second.told, second.spoke, two.missing, two.acs_lines)  # fmt: skip
    if any(alone) or not same or replace(first.item, sha256=second.item.sha256) != second.item:
        return None
    foretold = Template(first, old, _holding_identities(one, Exchange(old, old.opposite)))
    return foretold if _equal(foretold.of_sibling(new, "").part, two) else None


def _holding_identities(draft: NodeDraft, opposite: Exchange) -> frozenset[int]:
    """The `id`s of bodies and offers that another identity changes."""
    found: set[int] = set()

    def mark(offers: Iterable[Offer]) -> bool:
        held = {id(each) for each in offers if opposite.offer(each) is not each}
        found.update(held)
        return bool(held)

    def look(entity: Entity) -> bool:
        body = entity.body
        held = [look(child) for child in body.children.values()]
        held += [mark(offers) for offers in (*body.offers.values(), *body.counters.values())]
        held.append(any(opposite.value(key) != key for key in body.keys.values()))
        if any(held):
            found.add(id(body))
        return any(held)

    for entity in (*draft.singles.values(), *(entity for _, entity in draft.all_entities())):
        look(entity)
    mark(pair.offer for pair in draft.pairs)
    return frozenset(found)


def _equal(one: NodeDraft, two: NodeDraft) -> bool:
    """Whether two drafts hold the same entities in the same order, and the same pairs."""
    shown = [list(map(_shown, (*each.singles.items(), *each.all_entities()))) for each in (one, two)]
    return shown[0] == shown[1] and list(_numbered(one)) == list(_numbered(two))


def _shown(named: tuple[Any, Entity]) -> list[object]:
    """All that an entity holds, in its order."""
    name, entity = named
    body = entity.body
    parts = (body.keys, body.offers, body.counters)
    return [name, *(list(part.items()) for part in parts), *map(_shown, body.children.items())]


def _numbered(draft: NodeDraft) -> Iterator[tuple[str, int, int, Offer]]:
    """The pairs with the places of their ends."""
    place = {id(entity): number for number, (_, entity) in enumerate(draft.all_entities())}
    return ((pair.table, place[id(pair.a.root)], place[id(pair.b.root)], pair.offer) for pair in draft.pairs)
