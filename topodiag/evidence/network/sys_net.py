"""`/sys/class/net` and the kernel's tables from a tree file: interfaces, their state, addresses, routes and counters.

Files: Documentation/ABI/testing/sysfs-class-net of the Linux kernel; route flags of include/uapi/linux/route.h.
"""

from __future__ import annotations

from topodiag.evidence.interface import Blob, Parsed, to_int
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.local_addresses import read_addresses
from topodiag.evidence.network.network_records import (
    Cell,
    NetDevRecord,
    NetDevSource,
    by_device,
    carry_over,
    leave_bad,
    presence,
    read_file,
)
from topodiag.evidence.pasted_files import shows
from topodiag.evidence.tree import Tree, TreeFile, read_tree
from topodiag.lazy import regex
from topodiag.model.provenance import MAX_QUOTE

_ROOT = "sys/class/net"
_ROUTE = "proc/net/route"
_ROUTE6 = "proc/net/ipv6_route"
_BONDING = "proc/net/bonding"
_COUNTER = regex(r"(?:statistics/([A-Za-z0-9_.-]{1,80})|(carrier_changes|carrier_(?:up|down)_count))\Z")

_RTF_UP = 0x0001
_RTF_REJECT = 0x0200

Files = dict[str, TreeFile]


def _mtu(text: str) -> int | None:
    return to_int(text, low=1, high=2**31)


_FILES = {"operstate": "operstate", "carrier": "carrier", "speed": "speed_mbps", "type": "kind"}
_LINKS = {"master": "master", "device/driver": "driver"}


class SysNet(NetDevSource):
    """Interfaces from sysfs and /proc/net."""

    kind = "sys-net"
    trust = 80
    measured = regex(r"= sys/class/net/[^/\t]{1,64}/statistics/[A-Za-z0-9_.-]{1,80}\t(?P<numbers>[0-9]{1,18})\Z")

    def recognises(self, head: str) -> bool:
        return shows(head, "sys/class/net/")

    def parse(self, blob: Blob) -> Parsed[NetDevRecord]:
        tree_parsed: Parsed[TreeFile] = Parsed()
        tree = read_tree(blob, tree_parsed)
        parsed: Parsed[NetDevRecord] = Parsed()
        carry_over(parsed, tree_parsed)
        records: dict[str, NetDevRecord] = {}
        for name, files in by_device(tree, _ROOT).items():
            first = next(iter(files.values()))
            if "" in files and files[""].lines:
                continue  # a file between the interfaces: bonding_masters
            if words.device_name(name) is None:
                parsed.leave(blob, first.at, name, "not an interface's name")
                continue
            records[name] = NetDevRecord(name, first.at)
            _read_interface(blob, parsed, records[name], files)
        _read_bonds(tree, records)
        _read_routes(tree, records)
        read_addresses(tree, records)
        parsed.records.extend(records.values())
        return parsed


def _read_interface(blob: Blob, parsed: Parsed[NetDevRecord], record: NetDevRecord, files: Files) -> None:
    for path, file in files.items():
        counter = _COUNTER.match(path)
        if counter:
            record.counters[counter[1] or counter[2]] = read_file(file, words.count, "count")
        elif path in _FILES or path == "mtu":
            field = _FILES.get(path, path)
            record.facts[field] = read_file(file, words.CONVERT.get(field, _mtu), field.replace("_", " "))
            leave_bad(blob, parsed, file, record.facts[field])
        elif path in _LINKS and file.link is not None:
            target = words.device_name(file.link.rstrip("/").rpartition("/")[2])
            if target is not None:
                record.facts[_LINKS[path]] = presence(file, target)
    device = files.get("device")
    if device is None or device.link is None:
        return
    # A virtio interface's device is `virtio0`: the PCI function is further up the interface's own path.
    for place in (device, files.get("")):
        bus_id = words.bus_id_in(place.link) if place is not None and place.link is not None else None
        if place is not None and bus_id is not None:
            record.facts["bus_id"] = presence(place, bus_id)
            return


def _read_bonds(tree: Tree, records: dict[str, NetDevRecord]) -> None:
    """Members of bonds, from the bonding driver's own file, where sysfs did not say it."""
    for bond, files in by_device(tree, _BONDING).items():
        for file in files.values():
            for number, text in file.lines:
                key, _, member = text.partition(":")
                record = records.get(member.strip())
                if key.strip() == "Slave Interface" and record is not None and words.device_name(bond):
                    record.facts.setdefault("master", Cell(bond, number, f"= {file.path}\t{text}"[:MAX_QUOTE]))


def _read_routes(tree: Tree, records: dict[str, NetDevRecord]) -> None:
    """Which interfaces carry a default route; the others do not, when the IPv4 table was there to be read."""
    table, table6 = tree.files.get(_ROUTE), tree.files.get(_ROUTE6)
    for file, column, is_default in ((table, 0, _default4), (table6, -1, _default6)):
        for number, text in file.lines if file is not None else ():
            cells = text[:400].split()
            record = records.get(cells[column]) if cells else None
            if record is not None and file is not None and is_default(cells):
                record.facts.setdefault("default_route", Cell(True, number, f"= {file.path}\t{text}"[:MAX_QUOTE]))
    if table is None:
        return
    for record in records.values():
        if table.error is not None:
            record.facts.setdefault("default_route", Cell(None, table.at, f"! {table.path}", table.error[:80]))
        elif table.lines and (table6 is None or table6.error is None):
            record.facts.setdefault("default_route", Cell(False, table.lines[0][0], f"= {table.path}: no default"))


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
