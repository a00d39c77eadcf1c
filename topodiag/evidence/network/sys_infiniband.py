"""`/sys/class/infiniband` from a tree file: RDMA devices, their ports and counters, as the kernel says them.

Files: Documentation/ABI/stable/sysfs-class-infiniband of the Linux kernel. A counter that the firmware refuses
(EINVAL on ports that it manages itself) loses only itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import to_int, whole
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.readings import Notes, OfTree, converted, link_name
from topodiag.evidence.tree import TreeFile
from topodiag.model.provenance import NotObserved

_ROOT = "sys/class/infiniband"
_NOT_A_COUNTER = "lifespan"
"""How long the kernel keeps hw_counters before it asks the device again, in milliseconds."""
_GIDS, _TYPES, _NDEVS = "gids/", "gid_attrs/types/", "gid_attrs/ndevs/"
Files = Mapping[str, TreeFile]


def _traffic_class(text: str) -> int | None:
    """`Global tclass=106`."""
    return to_int(text.removeprefix("Global ").removeprefix("tclass="), low=0, high=255) if "tclass=" in text else None


class SysInfiniband(OfTree):
    """RDMA devices from sysfs."""

    def read_notes(self, notes: Notes) -> None:
        for name, files in notes.below(_ROOT).items():
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
        if path == "device/numa_node":
            notes.convert(nic, "numa", whole(-1, 65535), file)
        elif path == "device/driver" and words.device_name(driver := link_name(file)):
            notes.take(nic, "driver", driver, file)
        elif path == "device/physfn" and file.link is not None:
            notes.take(nic, "is_vf", True, file)
        elif path in words.DEVICE_KEYS:
            field = words.DEVICE_KEYS[path]
            notes.convert(nic, field, words.CONVERT[field], file)


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
            notes.count(entity, name, value, file)
        else:
            failed.append(name)
            why = why or reason
    if failed and notes.draft.weight.sample == 0:
        named = ", ".join(failed[:4]) + (f" and {len(failed) - 4} more" if len(failed) > 4 else "")
        notes.draft.missing.append(NotObserved(f"counters of {subject}: {named}", why))


def _read_port(notes: Notes, port: Entity, files: Files) -> None:
    for path, file in files.items():
        if path in words.PORT_KEYS:
            field = words.PORT_KEYS[path]
            notes.convert(port, field, words.CONVERT[field], file)
        elif path == "traffic_class":
            notes.convert(port, path, _traffic_class, file)
        elif path == "rate":
            notes.convert(port, "rate_gbps", words.gbps, file)
            if (lanes := words.rate(file.text or "")[1]) is not None:
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
    entries: dict[str, TreeFile] = {}
    for index, file in _indexed(files, _GIDS).items():
        kind = types[index].text if index in types and not infiniband else None
        if (entry := words.gid(index, file.text or "", kind or "")) is not None:
            entries[entry] = file
            lower = words.guid(":".join((file.text or "").split(":")[4:]))
            if infiniband and index == 0 and lower is not None:
                notes.take(port, "guid", lower, file)
    if entries:
        notes.take(port, "gids", tuple(entries), next(iter(entries.values())))


def _offer_netdev(notes: Notes, port: Entity, files: Files, single: Files) -> None:
    """The port's interface: what GID 0 belongs to (Ethernet), else the one that the function has for this port."""
    of_gids = {name: file for file in _indexed(files, _NDEVS).values() if (name := words.device_name(file.text or ""))}
    for name, file in list((of_gids or single).items())[:1]:
        notes.take(port, "netdev", name, file)
