"""Jobs for tests: a healthy run of H100 nodes as its logs show it, and hooks to make one thing wrong."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from topodiag.evidence.nccl_log.grammar.ends import facts_of
from topodiag.evidence.nccl_log.rebuild.events import classify
from topodiag.model.connections import Connections
from topodiag.model.finding import Confidence
from topodiag.model.job import Channels, Communicator, Event, GivenSetting, Hca, Job, Message, Process, Rank
from topodiag.model.layout import Role
from topodiag.model.nccl_enums import PathType
from topodiag.model.nccl_view import Graph, NcclSystem, SystemDevice, SystemLink
from topodiag.model.provenance import Origin

ALL_SUBSYSTEMS = frozenset({"INIT", "ENV", "NET", "GRAPH", "TUNING", "COLL"})
INTRA, INTER = "P2P/CUMEM", "NET/IB/GDRDMA"

Row = Mapping[str, Any]


def origin(text: str, line: int = 1, source: str = "job.log") -> Origin:
    return Origin(source, line, text)


def bus_id(gpu: int) -> str:
    return f"0000:{0x10 * (gpu + 1):02x}:00.0"


@cache
def _hca(index: int) -> Hca:
    return Hca(index, f"mlx5_{index}", 1, "IB", 400_000, True,
               origin(f"NET/IB : Using [{index}]mlx5_{index}:1/IB", 10))  # fmt: skip


def hca(index: int, **changes: Any) -> Hca:
    return replace(_hca(index), **changes) if changes else _hca(index)


def given(name: str, value: str, how: str = "environment") -> GivenSetting:
    return GivenSetting(name, value, how, origin(f"{name} set by {how} to {value}.", 20))


def message(kind: str, text: str, count: int = 1) -> Message:
    return Message(kind, text, origin(text, 30), count, facts_of(text, kind))


def event(kind: str, text: str, host: str = "n0", **changes: Any) -> Event:
    """An event with what its line says, but where `details` say something else."""
    named = {name: value for name, value in classify(changes.get("level", "WARN"), text)[2] if name != "fault"}
    details = {**named, **changes.pop("details", {})}
    return replace(Event(kind, text, host, origin=origin(text, 40), details=details), **changes)


def connections(rows: Iterable[Row], hosts: Sequence[str], gpus_per_host: int) -> Connections:
    """Columns from rows of `rank`, `peer`, `via`, and what differs from the defaults; ranks fill hosts in order."""
    records = [dict(row) for row in rows]
    vias = list(dict.fromkeys(row["via"] for row in records))

    def column(name: str, default: Callable[[dict[str, Any]], int]) -> np.ndarray[Any, Any]:
        return np.array([row[name] if name in row else default(row) for row in records], np.int64)

    return Connections(
        comm=column("comm", lambda row: 0),
        rank=column("rank", lambda row: 0),
        peer=column("peer", lambda row: 0),
        world=column("world", lambda row: row["rank"]),
        world_peer=column("world_peer", lambda row: row["peer"]),
        host=column("host", lambda row: row["rank"] // gpus_per_host),
        peer_host=column("peer_host", lambda row: row["peer"] // gpus_per_host),
        printed_by=column("printed_by", lambda row: row["peer"] if row.get("direction") == 2 else row["rank"]),
        channels=np.array([row.get("channels", 0xFFFF) for row in records], np.uint64),
        conn=column("conn", lambda row: 0),
        direction=column("direction", lambda row: 0),
        via=np.array([vias.index(row["via"]) for row in records], np.int64),
        net_dev=column("net_dev", lambda row: -1),
        proxy=column("proxy", lambda row: -1),
        count=column("count", lambda row: 1),
        file=column("file", lambda row: 0),
        line=np.array([row.get("line", 100 + at) for at, row in enumerate(records)], np.int64),
        vias=tuple(vias),
        hosts=tuple(hosts),
        files=("job.log",),
    )


def healthy_rows(hosts: int, gpus_per_host: int, nics: int, via: str = INTER) -> list[dict[str, Any]]:
    """Rings over every GPU of a node, and to the same GPU of the next node over its own NIC."""
    rows: list[dict[str, Any]] = []
    for host in range(hosts):
        for gpu in range(gpus_per_host):
            rank = host * gpus_per_host + gpu
            if gpus_per_host > 1:
                beside = host * gpus_per_host + (gpu + 1) % gpus_per_host
                rows.append({"rank": rank, "peer": beside, "via": INTRA})
            if hosts > 1:
                across = (rank + gpus_per_host) % (hosts * gpus_per_host)
                dev = gpu * nics // gpus_per_host if nics else 0
                rows.append({"rank": rank, "peer": across, "via": via, "net_dev": dev, "direction": 1})
                rows.append({"rank": rank, "peer": across, "via": via, "net_dev": dev, "direction": 2})
    return rows


def system(host: int = 0, gpus: int = 8, nics: int = 8, nvlink_gbs: float = 370.8, nic_gbs: float = 50.0) -> NcclSystem:
    """As `_system`, built once; each call gets tables of its own, whose entries nobody changes."""
    nccl_system = _system(host, gpus, nics, nvlink_gbs, nic_gbs)
    return replace(nccl_system, devices=dict(nccl_system.devices), paths=dict(nccl_system.paths))


@cache
def _system(host: int, gpus: int, nics: int, nvlink_gbs: float, nic_gbs: float) -> NcclSystem:
    """An NVSwitch node: two CPUs, a PCIe switch per GPU with its NIC, every GPU on the NVSwitches; links as printed."""
    devices: dict[str, SystemDevice] = {}
    links: list[SystemLink] = []
    paths: dict[tuple[str, str], PathType] = {}

    def add(device: SystemDevice) -> str:
        devices[device.name] = device
        return device.name

    cpus = [add(SystemDevice("CPU", f"0-{number}", numbers=(1, 1, 4))) for number in range(2)]
    links.append(SystemLink(cpus[0], cpus[1], "SYS", 22.0))
    links.append(SystemLink(cpus[1], cpus[0], "SYS", 22.0))
    if nvlink_gbs:
        add(SystemDevice("NVS", "0-0"))
    socket_of: dict[str, int] = {}
    for slot in range(max(gpus, nics)):
        at = 0 if slot < max(gpus, nics) / 2 else 1
        switch = add(SystemDevice("PCI", f"0-{0x10 * (slot + 1):x}0000", parent=cpus[at]))
        links.append(SystemLink(cpus[at], switch, "PCI", 48.0))
        if slot < gpus:
            gpu = add(SystemDevice("GPU", f"0-{0x10 * (slot + 1):x}000", switch, rank=host * gpus + slot))
            links.append(SystemLink(switch, gpu, "PCI", 48.0))
            if nvlink_gbs:
                links.append(SystemLink(gpu, "NVS/0-0", "NVL", nvlink_gbs))
            socket_of[gpu] = slot
        if slot < nics:
            nic = add(SystemDevice("NIC", f"0-{0x10 * (slot + 1):x}001", switch))
            links.append(SystemLink(switch, nic, "PCI", 48.0))
            net = add(SystemDevice("NET", f"0-{slot}", nic, speed_gbs=nic_gbs, port=1, guid=f"{slot:x}"))
            links.append(SystemLink(nic, net, "NET", nic_gbs))
            socket_of[net] = slot
    half = max(gpus, nics) / 2
    for a, slot in socket_of.items():
        for b, other in socket_of.items():
            side = (slot < half) == (other < half)
            over_pci = PathType.PIX if slot == other else PathType.PHB if side else PathType.SYS
            over_nvlink = nvlink_gbs and a.startswith("GPU") and b.startswith("GPU")
            paths[(a, b)] = PathType.LOC if a == b else PathType.NVL if over_nvlink else over_pci
    printed = origin(f"=== System : maxBw {max(nvlink_gbs, 48.0)} totalBw {max(nvlink_gbs, 48.0)} ===", 50)
    return NcclSystem(max(nvlink_gbs, 48.0), max(nvlink_gbs, 48.0), devices, tuple(links), paths, printed)


def merged(first: int = 16, ports: int = 2) -> Callable[[int, int, Process], Process]:
    """Processes of NCCL 2.27 and later whose NICs of `job` have so many ports each, which NCCL merges: the virtual NIC
    `first` and the following ones take their place in connections."""

    def made(rank: int, host: int, process: Process) -> Process:
        own = [
            tuple(replace(each, index=number, name=f"mlx5_{number}", speed_mbps=(each.speed_mbps or 0) // ports)
                  for number in range(each.index * ports, each.index * ports + ports))
            for each in process.hcas
        ]  # fmt: skip
        nics = tuple(
            replace(each, index=first + each.index, name="+".join(port.name for port in several))
            for each, several in zip(process.hcas, own, strict=True)
        )
        return replace(process, hcas=tuple(port for several in own for port in several), vnics=nics)

    return made


def renumbered(first: int = 16) -> dict[str, Any]:
    """Parts of `job` for `merged`: connections and prints with the numbers of the virtual NICs."""

    def printed(host: int, system: NcclSystem) -> NcclSystem:
        def name(device: str) -> str:
            return f"NET/0-{int(device[6:], 16) + first:x}" if device.startswith("NET/") else device

        devices = {
            name(key): replace(device, id=name(key).partition("/")[2]) if device.kind == "NET" else device
            for key, device in system.devices.items()
        }
        links = tuple(replace(link, a=name(link.a), b=name(link.b)) for link in system.links)
        paths = {(name(a), name(b)): path for (a, b), path in system.paths.items()}
        return replace(system, devices=devices, links=links, paths=paths)

    rows = [
        row | {"net_dev": int(str(row["net_dev"])) + first} if "net_dev" in row else row
        for row in healthy_rows(2, 8, 8)
    ]
    return {"rows": rows, "systems": printed, "process": merged(first)}


def graph(**changes: Any) -> Graph:
    made = Graph(4, 0, 16, 20.0, 20.0, "NVL", "PIX", True,
                 origin=origin("Pattern 4, crossNic 0, nChannels 16, bw 20.000000/20.000000", 60))  # fmt: skip
    return replace(made, **changes)


def job(
    hosts: int = 2,
    gpus_per_host: int = 8,
    *,
    nics: int = 8,
    rows: Iterable[Row] | None = None,
    via: str = INTER,
    process: Callable[[int, int, Process], Process] | None = None,
    world: Callable[[Communicator], Communicator] | None = None,
    communicators: Sequence[Communicator] = (),
    systems: Callable[[int, NcclSystem], NcclSystem | None] | None = None,
    graphs: Callable[[int, tuple[Graph, ...]], tuple[Graph, ...]] | None = None,
    settings: Mapping[str, str] | None = None,
    messages: Sequence[Message] = (),
    events: Sequence[Event] = (),
    subsystems: frozenset[str] = ALL_SUBSYSTEMS,
    **changes: Any,
) -> Job:
    """A healthy job: `hosts` nodes `n0`, `n1` .. of NVSwitch H100s, one process per GPU, `nics` IB NICs of 400 Gb/s.

    Hooks: `process(rank, host, process)` may replace a process; `world(communicator)` the world communicator;
    `systems(host, system)` and `graphs(host, graphs)` what NCCL printed of a host. `rows` replaces all connections (see
    `healthy_rows`), `via` only the transport between nodes. `settings` and `messages` go to every process.
    `communicators` follow the world. Other keywords replace fields of the job.
    """
    names = tuple(f"n{number}" for number in range(hosts))
    size = hosts * gpus_per_host
    network = "Socket" if via.startswith("NET/Socket") else "IB"
    processes: list[Process] = []
    ranks: list[Rank] = []
    hcas = tuple(hca(number) for number in range(nics))
    given_settings = {name: given(name, value) for name, value in (settings or {}).items()}
    for rank in range(size):
        host, gpu = divmod(rank, gpus_per_host)
        made = Process(
            names[host],
            1000 + rank,
            versions={"nccl": "2.23.4", "driver": "12040"},
            network=network,
            hcas=hcas,
            bootstrap=f"eth0:10.0.0.{host + 1}<0>",
            settings=dict(given_settings),
            messages=tuple(messages),
            origin=origin("NCCL version 2.23.4", 5),
        )
        processes.append(process(rank, host, made) if process else made)
        ranks.append(Rank(rank, names[host], 1000 + rank, gpu, gpu, bus_id(gpu), rank, origin("Init START", 6)))
    lines = list(rows) if rows is not None else healthy_rows(hosts, gpus_per_host, nics, via)
    conns = connections(lines, names, gpus_per_host)
    printed: dict[str, NcclSystem] = {}
    table: dict[str, tuple[Graph, ...]] = {}
    for number, name in enumerate(names):
        view: NcclSystem | None = system(number, gpus_per_host, nics)
        if systems and view is not None:
            view = systems(number, view)
        if view is not None:
            printed[name] = view
        searched = (graph(), graph(pattern=1))
        table[name] = graphs(number, searched) if graphs else searched
    counted: dict[str, int] = {}
    for at in range(len(conns)):
        counted[conns.label(at)] = counted.get(conns.label(at), 0) + 1
    root = Communicator(
        0,
        size,
        np.arange(size, dtype=np.int64),
        role=Role.WORLD,
        role_sure=Confidence.HIGH,
        nodes=hosts,
        hosts=names,
        started=np.ones(size, bool),
        completed=np.ones(size, bool),
        init_s=np.full(size, 1.5),
        network=network,
        channels=Channels(16, 0, 16 if gpus_per_host > 1 else 0, 16, 2),
        transports=counted,
        systems=printed,
        graphs=table,
        origin=origin("Init COMPLETE", 90),
    )
    made_job = Job(
        "job",
        size,
        tuple(ranks),
        tuple(processes),
        (world(root) if world else root, *communicators),
        conns,
        names,
        nccl_versions=("2.23.4",),
        events=tuple(events),
        subsystems=subsystems,
        files=("job.log",),
    )
    return replace(made_job, **changes)


Given = dict[str, Any]
"""A job as a row of a table tells it: keywords of `job`."""


def pcie(host: int, system: NcclSystem) -> NcclSystem:
    """What NCCL prints of a node without NVLinks."""
    return _system(host, 8, 8, 0.0, 50.0)


def unprinted(host: int, system: NcclSystem) -> None:
    """A node of which NCCL printed no system."""


def of_first(count: int, **changes: Any) -> Callable[[Communicator], Communicator]:
    """The world as the logs of its first ranks tell of it."""

    def told(world: Communicator) -> Communicator:
        return replace(world, ranks=np.where(np.arange(world.nranks) < count, world.ranks, -1), **changes)

    return told


_HOOKS: dict[str, Any] = {
    "of_first": of_first,
    "pcie": pcie,
    "unprinted": unprinted,
    "system": lambda **changes: lambda host, _: system(host, **changes),
    "healthy": healthy_rows,
}


def of_row(given: Given, **hooks: Any) -> Job:
    """The job of a row. Hooks and connections stand there by name, or in a list with the arguments that make one, the
    last of which may be a table of keywords; messages and events as their kind, their text and what else an event has.
    """
    parts = dict(given)
    for part in ("process", "world", "systems", "graphs", "rows"):
        if given.get(part):
            parts[part] = _hook(given[part], _HOOKS | hooks)
    parts["messages"] = [message(*each) for each in given.get("messages", ())]
    parts["events"] = [event(kind, text, **(more[0] if more else {})) for kind, text, *more in given.get("events", ())]
    for part, kind in (("subsystems", frozenset), ("nccl_versions", tuple)):
        if part in given:
            parts[part] = kind(given[part])
    return job(**parts)


def _hook(told: str | list[Any], hooks: Mapping[str, Any]) -> Any:
    if isinstance(told, str):
        return hooks[told]
    name, *arguments = told
    named = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
    return hooks[name](*arguments, **named)
