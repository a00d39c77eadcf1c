"""`/sys/class/net` and the kernel's tables from a tree file: interfaces, their state, addresses, routes and counters.

Files: Documentation/ABI/testing/sysfs-class-net of the Linux kernel; route flags of include/uapi/linux/route.h.

The addresses of a node in a capture: `/proc/net/fib_trie`, laid to interfaces by routes, and `/proc/net/if_inet6`.

    = proc/net/fib_trie	|-- 10.24.6.50 /32 host LOCAL
    = proc/net/if_inet6	fd000000000000000000000000000002 04 40 00 82     eth0

Formats: net/ipv4/fib_trie.c of the Linux kernel, as the collector keeps it (a leaf and its first alias in one line),
and net/ipv6/addrconf.c. The IPv4 table names no interface: the most specific route to an address does.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import to_int, whole
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.sys_infiniband import Files, read_counters
from topodiag.evidence.page import MOST_OF_A_LIST
from topodiag.evidence.readings import Notes, OfTree, link_name
from topodiag.evidence.tree import TreeFile
from topodiag.lazy import regex
from topodiag.words.hosts import address_of

_ROOT = "sys/class/net"
_ROUTE = "proc/net/route"
_ROUTE6 = "proc/net/ipv6_route"
_BONDING = "proc/net/bonding/"
_CARRIER = ("carrier_changes", "carrier_up_count", "carrier_down_count")
_RTF_UP = 0x0001
_RTF_REJECT = 0x0200


_FILES = {"operstate": "operstate", "carrier": "carrier", "speed": "speed_mbps", "type": "kind", "mtu": "mtu"}
_LINKS = {"master": "master", "device/driver": "driver"}


class SysNet(OfTree):
    """Interfaces from sysfs and /proc/net."""

    def read_notes(self, notes: Notes) -> None:
        interfaces: dict[str, Entity] = {}
        bonded: set[str] = set()
        for name, files in notes.below(_ROOT).items():
            first = next(iter(files.values()))
            if "" in files and files[""].lines:
                continue  # a file between the interfaces: bonding_masters
            if words.device_name(name) is None:
                notes.parsed.leave(notes.blob, first.at, name, "not an interface's name")
                continue
            notes.parsed.records.append(first.at)
            interfaces[name] = notes.draft.netdev(name)
            _read_interface(notes, interfaces[name], name, files)
            bonded |= {name} if "master" in files else set()
        _read_bonds(notes, {name: entity for name, entity in interfaces.items() if name not in bonded})
        _read_routes(notes, interfaces)
        _read_addresses(notes, interfaces)


def _read_interface(notes: Notes, entity: Entity, name: str, files: Files) -> None:
    counters = {path: file for path, file in files.items() if "/" in path or path in _CARRIER}
    read_counters(notes, entity, counters, name, "statistics", "")
    for path, file in files.items():
        if path in _FILES:
            notes.convert(entity, _FILES[path], words.CONVERT.get(_FILES[path], whole(1, 2**31)), file)
        elif path in _LINKS and words.device_name(target := link_name(file)):
            notes.take(entity, _LINKS[path], target, file)
    # A virtio interface's device is `virtio0`: the PCI function is further up the interface's own path.
    for path in ("device", "") if "device" in files and files["device"].link is not None else ():
        if path in files and (bus_id := words.bus_id_in(files[path].link or "")) is not None:
            notes.take(entity, "bus_id", bus_id, files[path])
            return


def _read_bonds(notes: Notes, interfaces: dict[str, Entity]) -> None:
    """Members of bonds, from the bonding driver's own file, where sysfs did not say it."""
    for path in [path for path in notes.files if path.startswith(_BONDING)]:
        bond = words.device_name(path.removeprefix(_BONDING))
        for file, line in notes.lines_of(path):
            key, _, member = line[1].partition(":")
            if key.strip() == "Slave Interface" and bond and member.strip() in interfaces:
                notes.take(interfaces[member.strip()], "master", bond, file, line)


def _read_routes(notes: Notes, interfaces: dict[str, Entity]) -> None:
    """Which interfaces carry a default route; the others do not, when the IPv4 table was there to be read."""
    others = dict(interfaces)
    for path, column, is_default in ((_ROUTE, 0, _default4), (_ROUTE6, -1, _default6)):
        for file, line in notes.lines_of(path):
            cells = line[1][:400].split()
            if cells and cells[column] in others and is_default(cells):
                notes.take(others.pop(cells[column]), "default_route", True, file, line)
    table, table6 = notes.files.get(_ROUTE), notes.files.get(_ROUTE6)
    if table is None:
        return
    for entity in others.values():
        if table.error is not None:
            notes.miss(entity, "default_route", table.error[:80], table)
        elif table.lines and (table6 is None or table6.error is None):
            notes.take(entity, "default_route", False, table, (table.lines[0][0], "no default"))


def _flags(text: str) -> bool:
    """Whether a route of these flags is up and leads somewhere."""
    value = to_int(f"0x{text}", low=0)
    return value is not None and bool(value & _RTF_UP) and not value & _RTF_REJECT


def _default4(cells: list[str]) -> bool:
    """Columns: interface, destination, gateway, flags, refcount, use, metric, mask (net/ipv4/fib_trie.c)."""
    return len(cells) >= 8 and cells[1] == "00000000" and cells[7] == "00000000" and _flags(cells[3])


def _default6(cells: list[str]) -> bool:
    """Columns: destination and its length, source and its length, gateway, metric, two counts, flags, interface."""
    return len(cells) >= 10 and cells[0] == "0" * 32 and cells[1] == "00" and _flags(cells[8]) and cells[9] != "lo"


_GLOBAL = "00"
"""The scope."""
_TABLE, _TABLE6 = "proc/net/fib_trie", "proc/net/if_inet6"
_HEX = regex(r"[0-9A-F]{8}\Z")


def _read_addresses(notes: Notes, interfaces: dict[str, Entity]) -> None:
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
    for file, line in notes.lines_of(_TABLE):
        leaf, _, rest = line[1].removeprefix("|-- ").partition(" ")
        if rest.strip() == "/32 host LOCAL" and ":" not in leaf and address_of(leaf):
            bits = int(ipaddress.IPv4Address(leaf))
            yield file, line, next((name for network, mask, name in routes if bits & mask == network), ""), leaf


def _six(notes: Notes) -> _Found:
    for file, line in notes.lines_of(_TABLE6):
        address, _, _, scope, _, name, *_ = *line[1].split(), "", "", "", "", "", ""
        own = address_of(":".join(address[at : at + 4] for at in range(0, len(address), 4)))
        if own and scope == _GLOBAL:
            yield file, line, name, own


def _routes(notes: Notes) -> Iterator[tuple[int, int, str]]:
    """Network, mask and interface: hexadecimal in the machine's order, little-endian wherever GPUs are."""
    for _, (_, text) in notes.lines_of(_ROUTE):
        cells = text[:400].split()
        if len(cells) >= 8 and _HEX.match(cells[1]) and _HEX.match(cells[7]):
            network, mask = (int.from_bytes(bytes.fromhex(cells[at]), "little") for at in (1, 7))
            yield network, mask, cells[0]
