"""The addresses of a node in a capture: `/proc/net/fib_trie`, laid to interfaces by routes, and `/proc/net/if_inet6`.

    = proc/net/fib_trie	|-- 10.24.6.50 /32 host LOCAL
    = proc/net/if_inet6	fd000000000000000000000000000002 04 40 00 82     eth0

Formats: net/ipv4/fib_trie.c of the Linux kernel, as the collector keeps it (a leaf and its first alias in one line),
and net/ipv6/addrconf.c. The IPv4 table names no interface: the most specific route to an address does.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from topodiag.evidence.draft import Entity
from topodiag.evidence.page import MOST_OF_A_LIST
from topodiag.evidence.readings import Notes
from topodiag.evidence.tree import TreeFile
from topodiag.lazy import regex
from topodiag.words.hosts import address_of

_GLOBAL = "00"
"""The scope."""
TABLE, TABLE6, ROUTES = "proc/net/fib_trie", "proc/net/if_inet6", "proc/net/route"
_HEX = regex(r"[0-9A-F]{8}\Z")


def read_addresses(notes: Notes, interfaces: Mapping[str, Entity]) -> None:
    """Give the interfaces their addresses, as lists with the line of the first."""
    lists: dict[str, list[str]] = {}
    first: dict[str, tuple[TreeFile, tuple[int, str]]] = {}
    for file, line, name, address in (*_four(notes), *_six(notes)):
        first.setdefault(name, (file, line))
        lists.setdefault(name, []).append(address)
    for name in [name for name in lists if name in interfaces]:
        addresses = tuple(dict.fromkeys(lists[name]))[:MOST_OF_A_LIST]
        notes.take(interfaces[name], "addresses", addresses, *first[name])


_Found = Iterator[tuple[TreeFile, tuple[int, str], str, str]]
"""Where an address stands, its interface, and the address."""


def _four(notes: Notes) -> _Found:
    routes = sorted(_routes(notes), key=lambda route: -route[1])
    for file, line in notes.lines(TABLE):
        leaf, _, rest = line[1].removeprefix("|-- ").partition(" ")
        if rest.strip() == "/32 host LOCAL" and ":" not in leaf and address_of(leaf):
            bits = int(ipaddress.IPv4Address(leaf))
            yield file, line, next((name for network, mask, name in routes if bits & mask == network), ""), leaf


def _six(notes: Notes) -> _Found:
    for file, line in notes.lines(TABLE6):
        address, _, _, scope, _, name, *_ = *line[1].split(), "", "", "", "", "", ""
        own = address_of(":".join(address[at : at + 4] for at in range(0, len(address), 4)))
        if own and scope == _GLOBAL:
            yield file, line, name, own


def _routes(notes: Notes) -> Iterator[tuple[int, int, str]]:
    """Network, mask and interface: hexadecimal in the machine's order, little-endian wherever GPUs are."""
    for _, (_, text) in notes.lines(ROUTES):
        cells = text[:400].split()
        if len(cells) >= 8 and _HEX.match(cells[1]) and _HEX.match(cells[7]):
            network, mask = (int.from_bytes(bytes.fromhex(cells[at]), "little") for at in (1, 7))
            yield network, mask, cells[0]
