"""The parts of a node that vary between siblings: found once, then replaced without a look at the others; and the
identities in its texts (host name, UUIDs, GUIDs, MAC addresses and GIDs), and their exchange for another node's.

Identities are opaque to the sources, which copy them and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from ipaddress import IPv6Address, ip_address
from typing import Any

from topodiag.lazy import dataclass, regex
from topodiag.model.node import Node
from topodiag.model.provenance import MAX_QUOTE, Fact, Origin
from topodiag.words.own_data import patterns

_LIKE = patterns("fleet/identities", "identities")
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


def cut(text: str, host: str) -> list[str]:
    """The text with a sign for its host, cut at its identities, which stand at the odd places."""
    if len(host) >= LEAST_HOST:
        text = text.replace(host, _HOST)
    if "::" not in text:
        return _LIKE["identity"].split(text)
    texts: list[str] = []
    for place, piece in enumerate(_LIKE["short_address"].split(text)):
        texts += [piece] if place % 2 else _LIKE["identity"].split(piece)
    return texts


@dataclass(frozen=True, slots=True)
class Identities:
    """The host of a capture and its other identities, each once, in the order of its texts."""

    host: str
    names: tuple[str, ...]

    @property
    def opposite(self) -> Identities:
        """Those of a sibling of which every identity is another."""
        return Identities(f"{self.host}{_HOST}", tuple(name.translate(_TURNED) for name in self.names))


class Exchange:
    """One text's identities for another's, where both have the same place in their texts."""

    def __init__(self, old: Identities, new: Identities) -> None:
        self._names: Mapping[str, str] = dict(zip(old.names, new.names, strict=True))
        self._hosts = old.host, new.host
        self._tokens: dict[str, str] = {}

    def joined(self, pieces: list[str]) -> str:
        """The text that was cut so, with the other's identities."""
        texts = pieces.copy()
        texts[1::2] = map(self._substitute, pieces[1::2])
        return "".join(texts).replace(_HOST, self._hosts[1])

    def _substitute(self, token: str) -> str:
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
        mapped = IPv6Address(bytes.fromhex("".join(other)))
        return f"::ffff:{mapped.ipv4_mapped}" if "." in address and mapped.ipv4_mapped else str(mapped)

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


Place = tuple[str, int | None]
"""A text of a capture, and a line in it."""
_NUMBER = regex(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Measured:
    """The numbers of a line as they are written there, and the sibling's."""

    old: str
    new: str


class UnlikeError(Exception):
    """A part of a node does not follow from its line as it should."""


def _parts_of(thing: Any) -> Iterable[tuple[Any, Any]]:
    """What a part of a node holds, each by its place in it: that of a set by itself. None of a value without parts."""
    if isinstance(thing, Fact):
        return ("value", thing.value), ("origin", thing.origin)
    if isinstance(thing, tuple):
        return enumerate(thing)
    if isinstance(thing, frozenset):
        return ((part, part) for part in thing)
    if isinstance(thing, dict):
        return thing.items()
    # as `dataclasses.fields` finds them, which is slow
    return ((name, getattr(thing, name)) for name in getattr(thing, "__dataclass_fields__", ()))


def _fact(fact: Fact[Any], numbers: Mapping[Place, Measured], of: Callable[[Any], Any]) -> Fact[Any]:
    """The sibling's fact; `of` gives the sibling's part for a part. Raises UnlikeError for a fact that is no copy of a
    number of its line, or of which of them is not clear."""
    origin = fact.origin
    measured = numbers.get((origin.source, origin.line)) if origin is not None else None
    if origin is None or measured is None:
        return Fact(of(fact.value), of(origin), fact.why)
    quote = _quoted(origin.text, measured)
    return Fact(_copied(fact.value, measured), Origin(origin.source, origin.line, quote, origin.command), fact.why)


def _copied(value: Any, measured: Measured) -> Any:
    """The sibling's number that stands where this value was copied from."""
    kind = type(value)
    if kind not in (int, float):
        raise UnlikeError
    pairs = zip(_NUMBER.findall(measured.old), _NUMBER.findall(measured.new), strict=True)
    values = {kind(new) for old, new in pairs if (kind is float or "." not in old) and kind(old) == value}
    if len(values) != 1:
        raise UnlikeError
    return values.pop()


def _quoted(text: str, measured: Measured) -> str:
    """The quoted line with the sibling's numbers."""
    if len(text) < MAX_QUOTE and text.endswith(measured.old):
        return text.removesuffix(measured.old) + measured.new
    if len(text) < MAX_QUOTE and text.count(measured.old) == 1:
        return text.replace(measured.old, measured.new)
    raise UnlikeError


class Varying:
    """Which parts of a node vary: those that hold identities, and the facts of some lines."""

    def __init__(self, node: Node, opposite: Exchange, host: str, measured: frozenset[Place]) -> None:
        """Raises UnlikeError where a part varies that cannot be replaced."""
        self._node, self._opposite, self._host, self._measured = node, opposite, host, measured
        self._texts: dict[str, list[str] | None] = {}
        self._held: dict[int, tuple[Any, ...]] = {}
        self._holds(node)
        self._parts = {item: places for item, places in self._held.items() if places}

    def _holds(self, thing: Any) -> bool:
        """Whether a part varies, or holds one that does."""
        if isinstance(thing, str):
            if thing not in self._texts:
                pieces = cut(thing, self._host)
                self._texts[thing] = pieces if self._opposite.joined(pieces) != thing else None
            return self._texts[thing] is not None
        held = self._held.get(id(thing))
        if held is None:
            held = self._held[id(thing)] = self._which(thing)
        return bool(held)

    def _which(self, thing: Any) -> tuple[Any, ...]:
        """The places at which a part holds what varies. All are looked at."""
        origin = thing.origin if isinstance(thing, Fact) else thing
        if isinstance(origin, Origin) and (origin.source, origin.line) in self._measured:
            if origin is thing:
                raise UnlikeError
            return ("value",) if thing.value is not None else ()
        if isinstance(thing, dict) and any(map(self._holds, thing)):
            raise UnlikeError
        return tuple(place for place, part in _parts_of(thing) if self._holds(part))

    def replaced(self, by: Exchange, numbers: Mapping[Place, Measured], host: str, time: Fact[str]) -> Node:
        """The node with a sibling's identities and numbers in the places of all that varies."""

        def of(thing: Any) -> Any:
            if isinstance(thing, str):
                pieces = self._texts.get(thing)
                return thing if pieces is None else by.joined(pieces)
            places = self._parts.get(id(thing))
            if places is None:
                return thing
            if isinstance(thing, Fact):
                return _fact(thing, numbers, of)
            if isinstance(thing, dict):
                return thing | {key: of(thing[key]) for key in places}
            if isinstance(thing, tuple):
                items = list(thing)
                for place in places:
                    items[place] = of(items[place])
                return tuple(items)
            if isinstance(thing, frozenset):
                return thing.difference(places) | {of(part) for part in places}
            return replace(thing, **{name: of(getattr(thing, name)) for name in places})

        node: Node = of(self._node)
        return replace(node, host=host, time=time)
