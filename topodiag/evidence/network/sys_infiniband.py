"""`/sys/class/infiniband` from a tree file: RDMA devices, their ports and counters, as the kernel says them.

Files: Documentation/ABI/stable/sysfs-class-infiniband of the Linux kernel. A counter that the firmware refuses
(EINVAL on ports that it manages itself) loses only itself.
"""

from __future__ import annotations

from topodiag.evidence.interface import Blob, Parsed, to_int
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import (
    MAX_PORT,
    Cell,
    Line,
    PortRecord,
    RdmaRecord,
    RdmaSource,
    by_device,
    carry_over,
    leave_bad,
    presence,
    put_generation,
    read_file,
)
from topodiag.evidence.pasted_files import shows
from topodiag.evidence.tree import TreeFile, read_tree
from topodiag.lazy import regex

_ROOT = "sys/class/infiniband"
_PORT = regex(r"ports/([0-9]{1,3})/(.+)\Z")
_INDEXED = regex(r"(gids|gid_attrs/types|gid_attrs/ndevs)/([0-9]{1,5})\Z")
_COUNTER = regex(r"(?:hw_)?counters/([A-Za-z0-9_.-]{1,80})\Z")
_CLASS = regex(r"tc/([0-9]{1,3})/traffic_class\Z")
_GLOBAL = regex(r"(?:Global )?tclass=([0-9]{1,3})\b")
_NETDEV = regex(r"device/net/([^/]+)(?:/(dev_port))?")

_NOT_A_COUNTER = "lifespan"
"""How long the kernel keeps hw_counters before it asks the device again, in milliseconds."""

Files = dict[str, TreeFile]


def _numa(text: str) -> int | None:
    return to_int(text, low=-1, high=65535)


def _traffic_class(text: str) -> int | None:
    match = _GLOBAL.match(text)
    return to_int(match[1], low=0, high=255) if match else None


class SysInfiniband(RdmaSource):
    """RDMA devices from sysfs."""

    kind = "sys-infiniband"
    trust = 80
    measured = regex(
        r"= sys/class/infiniband/[^/\t]{1,64}/(?:ports/[0-9]{1,3}/)?(?:hw_)?counters/[A-Za-z0-9_.-]{1,80}\t"
        r"(?P<numbers>[0-9]{1,18})\Z"
    )

    def recognises(self, head: str) -> bool:
        return shows(head, "sys/class/infiniband/")

    def parse(self, blob: Blob) -> Parsed[RdmaRecord]:
        tree_parsed: Parsed[TreeFile] = Parsed()
        tree = read_tree(blob, tree_parsed)
        parsed: Parsed[RdmaRecord] = Parsed()
        carry_over(parsed, tree_parsed)
        for name, files in by_device(tree, _ROOT).items():
            first = next(iter(files.values()))
            if words.device_name(name) is None:
                parsed.leave(blob, first.at, name, "not a device name")
            else:
                parsed.records.append(_device(blob, parsed, name, files))
        return parsed


def _device(blob: Blob, parsed: Parsed[RdmaRecord], name: str, files: Files) -> RdmaRecord:
    record = RdmaRecord(name, next(iter(files.values())).at, _bus_id(files))
    port_files: dict[int, Files] = {}
    dev_ports: dict[str, int] = {}
    for path, file in files.items():
        port, counter, netdev = _PORT.match(path), _COUNTER.match(path), _NETDEV.match(path)
        if port and int(port[1]) <= MAX_PORT:
            port_files.setdefault(int(port[1]), {})[port[2]] = file
        elif counter and counter[1] != _NOT_A_COUNTER:
            record.counters[counter[1]] = read_file(file, words.count, "count")
        elif (tclass := _CLASS.match(path)) is not None and int(tclass[1]) <= MAX_PORT:
            port_files.setdefault(int(tclass[1]), {})["traffic_class"] = file
        elif netdev and words.device_name(netdev[1]):
            record.netdevs.setdefault(netdev[1], presence(file, netdev[1]))
            number = to_int(file.text, low=0, high=MAX_PORT) if netdev[2] else None
            if number is not None:
                dev_ports[netdev[1]] = number + 1  # dev_port counts from 0, ports of a device from 1
        elif path == "device/numa_node":
            record.facts["numa"] = read_file(file, _numa, "numa")
        elif path in words.DEVICE_KEYS:
            field = words.DEVICE_KEYS[path]
            record.facts[field] = read_file(file, words.CONVERT[field], field)
            leave_bad(blob, parsed, file, record.facts[field])
    _links(record, files)
    for number, below in sorted(port_files.items()):
        port_record = record.port(number, next(iter(below.values())).at)
        _read_port(blob, parsed, port_record, below)
    for port_record in record.ports.values():
        cell = _netdev(record, port_record, port_files[port_record.number], dev_ports)
        if cell is not None:
            port_record.facts["netdev"] = cell
    return record


def _bus_id(files: Files) -> str | None:
    """From the `device` link; without it from where the device's own folder lies."""
    for path in ("device", ""):
        file = files.get(path)
        bus_id = words.bus_id_in(file.link) if file is not None and file.link is not None else None
        if bus_id is not None:
            return bus_id
    return None


def _links(record: RdmaRecord, files: Files) -> None:
    driver, parent = files.get("device/driver"), files.get("device/physfn")
    name = driver.link.rstrip("/").rpartition("/")[2] if driver is not None and driver.link else ""
    if driver is not None and words.device_name(name):
        record.facts["driver"] = presence(driver, name)
    if parent is not None and parent.link is not None:
        record.facts["is_vf"] = presence(parent, True)


def _read_port(blob: Blob, parsed: Parsed[RdmaRecord], port: PortRecord, files: Files) -> None:
    for path, file in files.items():
        counter = _COUNTER.match(path)
        if path in words.PORT_KEYS:
            field = words.PORT_KEYS[path]
            port.facts[field] = read_file(file, words.CONVERT[field], field)
            leave_bad(blob, parsed, file, port.facts[field])
        elif path == "traffic_class":
            port.facts[path] = read_file(file, _traffic_class, path)
        elif path == "rate":
            _read_rate(blob, parsed, port, file)
        elif counter and counter[1] != _NOT_A_COUNTER:
            port.counters[counter[1]] = read_file(file, words.count, "count")
    _read_gids(port, files)


def _read_rate(blob: Blob, parsed: Parsed[RdmaRecord], port: PortRecord, file: TreeFile) -> None:
    rate = words.rate(file.text or "")
    read = read_file(file, lambda _: rate.gbps if rate else None, "rate")
    port.facts["rate_gbps"] = read
    leave_bad(blob, parsed, file, read)
    if rate is not None:
        put_generation(Line(read.line, read.text), port.facts, rate)


def _indexed(files: Files) -> dict[str, dict[int, TreeFile]]:
    tree_files: dict[str, dict[int, TreeFile]] = {"gids": {}, "gid_attrs/types": {}, "gid_attrs/ndevs": {}}
    for path, file in files.items():
        match = _INDEXED.match(path)
        if match:
            tree_files[match[1]][int(match[2])] = file
    return tree_files


def _read_gids(port: PortRecord, files: Files) -> None:
    """The table of GIDs, and the port's own GUID: the lower half of GID 0 on InfiniBand (IBTA 4.1.1)."""
    tables = _indexed(files)
    infiniband = port.facts.get("link_layer", Cell(None, 0, "")).value == "InfiniBand"
    entries: list[str] = []
    first: TreeFile | None = None
    for index, file in sorted(tables["gids"].items()):
        kind = tables["gid_attrs/types"].get(index)
        words_of_kind = (kind.text or "") if kind is not None and not infiniband else ""
        entry = words.gid(index, file.text or "", words_of_kind)
        if entry is not None:
            entries.append(entry)
            first = first or file
            lower = words.guid(":".join((file.text or "").split(":")[4:]))
            if infiniband and index == 0 and lower is not None:
                port.facts["guid"] = presence(file, lower)
    if first is not None:
        port.facts["gids"] = presence(first, tuple(entries))


def _netdev(record: RdmaRecord, port: PortRecord, files: Files, dev_ports: dict[str, int]) -> Cell | None:
    """The port's interface: what GID 0 belongs to (Ethernet), else what the function has for this port alone."""
    for _, file in sorted(_indexed(files)["gid_attrs/ndevs"].items()):
        name = words.device_name(file.text or "")
        if name is not None:
            return presence(file, name)
    # Interfaces with a dot are partitions or VLANs of another one.
    own = {name: read for name, read in record.netdevs.items() if "." not in name}
    numbered = [name for name in own if dev_ports.get(name) == port.number]
    if len(numbered) == 1:
        return own[numbered[0]]
    if len(record.ports) == 1 and len(own) == 1:
        return next(iter(own.values()))
    return None
