"""The addresses of a node in a capture: `/proc/net/fib_trie`, laid to interfaces by routes, and `/proc/net/if_inet6`.

    = proc/net/fib_trie	|-- 10.24.6.50 /32 host LOCAL
    = proc/net/if_inet6	fd000000000000000000000000000002 04 40 00 82     eth0

Formats: net/ipv4/fib_trie.c of the Linux kernel, as the collector keeps it (a leaf and its first alias in one line),
and net/ipv6/addrconf.c. The IPv4 table names no interface: the most specific route to an address does.

The addresses of interfaces as `ip addr`, `ip -o addr`, `ip -br addr`, `ip -j addr` and `ifconfig` print them.

    inet 10.24.6.50/24 brd 10.24.6.255 scope global eth0
    2: eth0    inet 10.24.6.50/24 brd 10.24.6.255 scope global eth0
    eth0             UP             10.24.6.50/24 fe80::6abf:1%eth0/64
    inet addr:10.24.6.50  Bcast:10.24.6.255  Mask:255.255.255.0

Formats: iproute2 4.15 to 6.9 (ip/ipaddress.c, print_addrinfo); net-tools 1.60 and 2.10 (lib/inet.c).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from topodiag.evidence.network.network_records import Line, NetDevRecord
from topodiag.evidence.tree import Tree
from topodiag.lazy import dataclass, regex
from topodiag.words.hosts import address_of

TABLE, TABLE6, ROUTES = "proc/net/fib_trie", "proc/net/if_inet6", "proc/net/route"
_LEAF = regex(r"\|-- ([0-9.]{7,15}) /32 host LOCAL\s*\Z")
_ADDRESS6 = regex(r"([0-9a-f]{32}) [0-9a-f]{2} [0-9a-f]{2} ([0-9a-f]{2}) [0-9a-f]{2} {1,16}(\S{1,15})\s*\Z")
_GLOBAL = "00"
_HEX = regex(r"[0-9A-F]{8}\Z")


@dataclass(frozen=True, slots=True)
class _Route:
    """The network that an interface leads to, as numbers."""

    network: int
    mask: int
    interface: str


def read_addresses(tree: Tree, records: Mapping[str, NetDevRecord]) -> None:
    """Give the interfaces their addresses."""
    for line, name, address in (*_four(tree), *_six(tree)):
        if name in records:
            line.add(records[name].facts, "addresses", address)


def _four(tree: Tree) -> Iterator[tuple[Line, str, str]]:
    file = tree.files.get(TABLE)
    routes = sorted(_routes(tree), key=lambda route: -route.mask)
    for number, text in file.lines if file is not None else ():
        leaf = _LEAF.match(text)
        bits = _bits(leaf[1]) if leaf is not None else None
        if leaf is not None and bits is not None:
            through = next((route.interface for route in routes if bits & route.mask == route.network), "")
            yield Line(number, f"= {TABLE}\t{text}"), through, leaf[1]


def _bits(address: str) -> int | None:
    try:
        return int(ipaddress.IPv4Address(address))
    except ValueError:
        return None


def _routes(tree: Tree) -> Iterator[_Route]:
    """Interface, destination, ..., mask: hexadecimal in the machine's order, little-endian wherever GPUs are."""
    file = tree.files.get(ROUTES)
    for _, text in file.lines if file is not None else ():
        cells = text[:400].split()
        if len(cells) >= 8 and _HEX.match(cells[1]) and _HEX.match(cells[7]):
            network, mask = (int.from_bytes(bytes.fromhex(cells[at]), "little") for at in (1, 7))
            yield _Route(network, mask, cells[0])


def _six(tree: Tree) -> Iterator[tuple[Line, str, str]]:
    file = tree.files.get(TABLE6)
    for number, text in file.lines if file is not None else ():
        match = _ADDRESS6.match(text)
        if match is not None and match[2] == _GLOBAL:
            address = str(ipaddress.IPv6Address(int(match[1], 16)))
            yield Line(number, f"= {TABLE6}\t{text}"), match[3], address


_INET = regex(r"inet6?(?: addr:)? ?([0-9a-fA-F:.]{2,45})(?![\w:.])")
_ONE_LINE = regex(r"\d{1,6}: ([^\s:@]{1,15})\s{1,20}(inet6? [0-9a-fA-F:.]{2,45}/\d{1,3} .{0,400})")
_BRIEF = regex(
    r"([^\s:@]{1,15})(?:@\S{1,20})?\s{1,20}(?:UP|DOWN|UNKNOWN|LOWERLAYERDOWN|DORMANT|NOTPRESENT)\s{1,20}"
    r"([0-9a-fA-F].{1,16000})\Z"
)


def addresses_in(text: str) -> tuple[str, ...]:
    """The address of one line of a block, none for another line."""
    match = _INET.match(text)
    address = address_of(match[1]) if match else ""
    return (address,) if address else ()


def listed(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Interface and addresses of a line that stands for itself (`-o`, `-br`); None for another line."""
    if match := _ONE_LINE.match(text):
        return match[1], addresses_in(match[2])
    if match := _BRIEF.match(text):
        words = tuple(address_of(word.partition("/")[0]) for word in match[2].split())
        return (match[1], words) if all(words) else None
    return None
