"""`/sys/class/infiniband` from a tree file: RDMA devices, their ports and counters, as the kernel says them.

Files: Documentation/ABI/stable/sysfs-class-infiniband of the Linux kernel. A counter that the firmware refuses
(EINVAL on ports that it manages itself) loses only itself.

`/sys/class/net` and the kernel's tables from a tree file: interfaces, their state, addresses, routes and counters.

Files: Documentation/ABI/testing/sysfs-class-net of the Linux kernel; route flags of include/uapi/linux/route.h.

The addresses of a node in a capture: `/proc/net/fib_trie`, laid to interfaces by routes, and `/proc/net/if_inet6`.

    = proc/net/fib_trie	|-- 10.24.6.50 /32 host LOCAL
    = proc/net/if_inet6	fd000000000000000000000000000002 04 40 00 82     eth0

Formats: net/ipv4/fib_trie.c of the Linux kernel, as the collector keeps it (a leaf and its first alias in one line),
and net/ipv6/addrconf.c. The IPv4 table names no interface: the most specific route to an address does.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import to_int
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.readings import Notes, OfTree, converted, link_name
from topodiag.evidence.tree import TreeFile
from topodiag.lazy import regex
from topodiag.model.provenance import NotObserved
from topodiag.words.hosts import address_of

_NOT_A_COUNTER = "lifespan"
"""How long the kernel keeps hw_counters before it asks the device again, in milliseconds."""
_GIDS, _TYPES, _NDEVS = "gids/", "gid_attrs/types/", "gid_attrs/ndevs/"
Files = Mapping[str, TreeFile]


class SysInfiniband(OfTree):
    """RDMA devices from sysfs."""

    def read_notes(self, notes: Notes) -> None:
        for name, files in notes.below("sys/class/infiniband").items():
            first = next(iter(files.values()))
            if words.device_name(name) is None:
                notes.parsed.leave(notes.blob, first.at, name, "not a device name")
            else:
                notes.parsed.records.append(first.at)
                _read_device(notes, name, files)


def _read_device(notes: Notes, name: str, files: Files) -> None:
    links = [bus for path in ("device", "") if path in files and (bus := words.bus_id_in(files[path].link or ""))]
    bus_id = links[0] if links else None  # without the link, from where the device's own folder lies
    nic = notes.draft.nic(rdma=name, bus_id=bus_id)
    _read_identity(notes, nic, files)
    read_counters(notes, nic, files, name, "counters", "hw_counters")
    netdevs, dev_ports = _netdevs(files)
    for netdev, file in netdevs.items():
        if bus_id is not None:
            notes.take(notes.draft.netdev(netdev), "bus_id", bus_id, file)
    # Interfaces with a dot are partitions or VLANs of another one.
    own = [netdev for netdev in netdevs if "." not in netdev]
    ports = _ports(files)
    for number, below in sorted(ports.items()):
        child = nic.child("port", number)
        _read_port(notes, child, below)
        read_counters(notes, child, below, f"{name} port {number}", "counters", "hw_counters")
        numbered = [netdev for netdev in own if dev_ports.get(netdev) == number]
        single = numbered if len(numbered) == 1 else own if len(ports) == 1 and len(own) == 1 else []
        _offer_netdev(notes, child, below, {netdev: netdevs[netdev] for netdev in single})


def _read_identity(notes: Notes, nic: Entity, files: Files) -> None:
    for path, file in files.items():
        if path == "device/driver" and words.device_name(driver := link_name(file)):
            notes.take(nic, "driver", driver, file)
        elif path == "device/physfn" and file.link is not None:
            notes.take(nic, "is_vf", True, file)
        elif path in words.DEVICE_KEYS:
            _convert(notes, nic, words.DEVICE_KEYS[path], file)


def _convert(notes: Notes, entity: Entity, name: str, file: TreeFile) -> None:
    notes.convert(entity, name, words.CONVERT[name], file)


def _ports(files: Files) -> dict[int, dict[str, TreeFile]]:
    """The files of each port, with its traffic class."""
    ports: dict[int, dict[str, TreeFile]] = {}
    for path, file in files.items():
        folder, place, rest = (*path.split("/", 2), "", "")[:3]
        port = to_int(place, low=0, high=words.MAX_PORT)
        if port is not None and rest and (folder == "ports" or (folder == "tc" and rest == "traffic_class")):
            ports.setdefault(port, {})[rest] = file
    return ports


def _netdevs(files: Files) -> tuple[dict[str, TreeFile], dict[str, int]]:
    """The interfaces of the device's function, and the number of the port of those that say it."""
    netdevs: dict[str, TreeFile] = {}
    dev_ports: dict[str, int] = {}
    for path, file in files.items():
        netdev, _, rest = path.removeprefix("device/net/").partition("/")
        if path.startswith("device/net/") and words.device_name(netdev):
            netdevs.setdefault(netdev, file)
            if rest == "dev_port" and (counted := to_int(file.text, low=0, high=words.MAX_PORT)) is not None:
                dev_ports[netdev] = counted + 1  # dev_port counts from 0, ports of a device from 1
    return netdevs, dev_ports


def read_counters(notes: Notes, entity: Entity, files: Files, subject: str, *folders: str) -> None:
    """Offer the counters in these folders that have a value; what failed is one line for all of them."""
    failed: list[str] = []
    why = ""
    for path, file in files.items():
        folder, _, name = path.rpartition("/")
        if folder not in folders or name == _NOT_A_COUNTER:
            continue
        value, reason = converted(file, words.count, "count")
        if isinstance(value, int):
            notes.line(file).count(entity, name, value)
        else:
            failed.append(name)
            why = why or reason
    if failed and notes.draft.weight.sample == 0:
        named = ", ".join(failed[:4]) + (f" and {len(failed) - 4} more" if len(failed) > 4 else "")
        notes.draft.missing.append(NotObserved(f"counters of {subject}: {named}", why))


def _read_port(notes: Notes, port: Entity, files: Files) -> None:
    for path, file in files.items():
        if path in words.PORT_KEYS:
            _convert(notes, port, words.PORT_KEYS[path], file)
        if path == "rate" and (lanes := words.rate(file.text or "")[1]) is not None:
            notes.take(port, "lanes", lanes, file)
    _read_gids(notes, port, files)


def _indexed(files: Files, folder: str) -> dict[int, TreeFile]:
    """The files of a table by their places, in order."""
    numbers = [path.removeprefix(folder) for path in files if path.startswith(folder)]
    places = sorted(int(number) for number in numbers if number.isdecimal() and len(number) < 6)
    return {place: files[f"{folder}{place}"] for place in places if f"{folder}{place}" in files}


def _read_gids(notes: Notes, port: Entity, files: Files) -> None:
    """The table of GIDs, and the port's own GUID: the lower half of GID 0 on InfiniBand (IBTA 4.1.1)."""
    infiniband = "link_layer" in files and words.link_layer(files["link_layer"].text or "") == "InfiniBand"
    types = _indexed(files, _TYPES)
    for index, file in _indexed(files, _GIDS).items():
        kind = types[index].text if index in types and not infiniband else None
        if (entry := words.gid(index, file.text or "", kind or "")) is not None:
            notes.line(file).add(port, "gids", entry)
            lower = words.guid(":".join((file.text or "").split(":")[4:]))
            if infiniband and index == 0 and lower is not None:
                notes.take(port, "guid", lower, file)


def _offer_netdev(notes: Notes, port: Entity, files: Files, single: Files) -> None:
    """The port's interface: what GID 0 belongs to (Ethernet), else the one that the function has for this port."""
    of_gids = {name: file for file in _indexed(files, _NDEVS).values() if (name := words.device_name(file.text or ""))}
    for name, file in list((of_gids or single).items())[:1]:
        notes.take(port, "netdev", name, file)


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
        for name, files in notes.below("sys/class/net").items():
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
            _convert(notes, entity, _FILES[path], file)
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
    for file, line, name, address in (*_four(notes), *_six(notes)):
        if name in interfaces:
            notes.line(file, line).add(interfaces[name], "addresses", address)


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
