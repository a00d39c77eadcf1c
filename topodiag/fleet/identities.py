"""The identities in a text: host name, UUIDs, GUIDs, MAC addresses and GIDs, and their exchange for another node's.

They are opaque to the sources, which copy them and no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address

from topodiag.lazy import dataclass
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
