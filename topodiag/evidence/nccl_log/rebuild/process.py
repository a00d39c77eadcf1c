"""What a process said of itself: versions, network, HCAs, settings, and the texts that checks read; its network
devices, ports as NCCL lists them and the virtual NICs that it makes of them. The wordings stand in process.toml.

Settings that commands, traces of shells and dumps of the environment give to the processes whose lines follow them. A
file is read as the shell that wrote it: what it exports holds until it unsets it, what stands in a command holds for
that program. Where the lines leave open which value a process met, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from topodiag.evidence.assignments import COMMANDED, stated_in
from topodiag.evidence.nccl_log.grammar.ends import facts_of
from topodiag.evidence.nccl_log.grammar.spoken import COMMAND
from topodiag.evidence.nccl_log.rebuild.frame import Frame, in_pieces
from topodiag.evidence.nccl_log.rebuild.members import Processes
from topodiag.evidence.nccl_log.tables.facts import Table
from topodiag.lazy import dataclass, regex
from topodiag.model.connections import unique_rows
from topodiag.model.devices import ports_of
from topodiag.model.job import GivenSetting, Hca, Message, Process
from topodiag.model.provenance import MAX_QUOTE, Origin
from topodiag.words.own_data import own_data

Text = tuple[str, str, Origin | None, int]
"""Kind, text, place, count."""

OF_DEVICES = frozenset({"hca", "gdr hca", "virtual nic"})
"""Kinds that tell more of the devices in a list, whose place stands for theirs. A large job has a line for each device
of each rank: they are not kept as messages."""

GDR_OFF = "GPU Direct RDMA Disabled"
"""Of a device this is a verdict, and its line the evidence."""

_TABLES = own_data("evidence/nccl_log/rebuild/process")
_LIKE = {name: regex(pattern) for table in ("devices", "own") for name, pattern in _TABLES[table].items()}
_VERSIONED = {kind: (component, regex(pattern)) for kind, (component, pattern) in _TABLES["versions"].items()}


def devices_of(texts: Sequence[Text]) -> tuple[tuple[Hca, ...], tuple[Hca, ...]]:
    """The RDMA ports of the first list that is whole, or of the first, with what other lines say of each, and the
    virtual NICs made of them."""
    listed = _listed(texts)
    named = sorted(_numbered(texts, listed).values(), key=lambda nic: (-len(ports_of(nic.name)), nic.index))
    gdr = {port: nic for nic in named if nic.gdr is not None for port in ports_of(nic.name)}
    if not listed[0] and any(kind == "no hca" for kind, *_ in texts):
        return (), ()
    if not listed[0]:  # an excerpt without the list: what is said of each device stands for it
        ports = tuple(nic if nic.name == port else replace(nic, index=-1, name=port) for port, nic in gdr.items())
        return ports, _virtual(ports, named)
    long = (_LIKE["hca_long"].search(text) for kind, text, *_ in texts if kind == "hca")
    speeds = {match[2]: int(match[5]) for match in long if match is not None}
    none = Hca(-1, "")
    ports = tuple(
        Hca(hca.index, hca.name, hca.port, hca.link_layer, speeds.get(hca.name),
            gdr.get(hca.name, none).gdr, listed[1], gdr.get(hca.name, none).gdr_origin)
        for hca in _hcas(listed[0])
    )  # fmt: skip
    return ports, _virtual(ports, named)


def _listed(texts: Sequence[Text]) -> tuple[str, Origin | None]:
    """The first list of ports with its end, `; OOB` (NCCL src/transport/net_ib.cc), else the first; "" without any."""
    lists = [(text, origin) for kind, text, origin, _ in texts if kind == "hcas"]
    return next((words for words in lists if ";" in words[0]), lists[0] if lists else ("", None))


def _numbered(texts: Sequence[Text], listed: tuple[str, Origin | None]) -> dict[tuple[int, str], Hca]:
    """The devices that lines give a number, and what such lines say of them."""
    hcas = {(nic.index, nic.name): replace(nic, origin=listed[1]) for nic in _virtual_nics(listed[0])}
    for kind, text, origin, _ in texts:
        if kind == "virtual nic" and (match := _LIKE["virtual"].search(text)) is not None:
            nic = Hca(int(match[1]), match[2], speed_mbps=int(match[3]), origin=origin)
            hcas.setdefault((nic.index, nic.name), nic)
        elif kind == "gdr hca" and (match := _LIKE["gdr_hca"].search(text)) is not None:
            on = match[1] == "Enabled"
            nic = hcas.get((int(match[2]), match[3])) or Hca(int(match[2]), match[3], origin=origin)
            hcas[nic.index, nic.name] = replace(nic, gdr=on, gdr_origin=None if on else origin)
    return hcas


def _virtual(ports: Sequence[Hca], named: Sequence[Hca]) -> tuple[Hca, ...]:
    """The devices in use that are not ports under their own numbers. NCCL lists each port first, and then the virtual
    NIC that it is part of under a higher number; 2.24 to 2.26 also one of a single port (src/graph/topo.cc)."""
    used: dict[str, Hca] = {}
    for nic in sorted(named, key=lambda nic: (len(ports_of(nic.name)), nic.index)):
        used |= dict.fromkeys(ports_of(nic.name), nic)
    listed = {(port.index, port.name) for port in ports}
    return tuple(dict.fromkeys(_of_ports(nic, ports) for nic in used.values() if (nic.index, nic.name) not in listed))


def _of_ports(nic: Hca, ports: Sequence[Hca]) -> Hca:
    """A virtual NIC: as its first port, and as fast as all of them together where no line says how fast."""
    own = [port for port in ports if port.name in ports_of(nic.name)]
    speeds = [port.speed_mbps for port in own if port.speed_mbps is not None]
    speed = nic.speed_mbps or (sum(speeds) if speeds and len(speeds) == len(own) else None)
    return replace(own[0] if own else nic, index=nic.index, name=nic.name, speed_mbps=speed)


@lru_cache(maxsize=4096)
def _hcas(text: str) -> tuple[Hca, ...]:
    """`[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB ib0:10.0.0.1<0>`, the ports of merged `[0]={[0] mlx5_0:1/IB, ..}`."""
    matches = _LIKE["hca"].finditer(text.partition("; OOB")[0].partition(" ;")[0])
    return tuple(Hca(int(match[1]), match[2], int(match[3] or 1), (match[4] or "").strip("/")) for match in matches)


@lru_cache(maxsize=4096)
def _virtual_nics(text: str) -> tuple[Hca, ...]:
    """The virtual NICs of a list up to 2.23, which has the ports of one adapter in braces."""
    return tuple(
        Hca(int(match[1]), "+".join(port.name for port in _hcas(match[2]))) for match in _LIKE["joined"].finditer(text)
    )


_OWN = frozenset({"bootstrap", "hcas", "sockets", "ras"})
"""Kinds of lines with addresses of the process itself, as `Bootstrap: Using eth0:10.1.2.3<0>`."""
_MINUS_ONE = "18446744073709551615"


def process_of(host: str, pid: int, texts: Sequence[Text], commanded: Mapping[str, GivenSetting]) -> Process:
    """`commanded` are the settings that commands give it: what NCCL prints of its environment is all that it read."""
    versions: dict[str, str] = {}
    settings: dict[str, GivenSetting] = {}
    network = bootstrap = ""
    addresses: dict[str, None] = {}
    for kind, text, origin, _ in texts:
        if kind in _OWN:
            addresses.update(dict.fromkeys(_addresses(text)))
        if kind in _VERSIONED:
            _take_version(versions, *_version(kind, text))
        elif kind in {"network", "assigned"}:
            network = network or network_named(text)
        elif kind == "bootstrap" and not bootstrap:
            bootstrap = _bootstrap(text)
        elif (given := _given(kind, text, origin)) is not None:
            settings.setdefault(given.name, given)
    if not any(given.how == "environment" for given in settings.values()):
        settings = {**commanded, **settings}
    if not network and {kind for kind, *_ in texts} >= {"no hca", "sockets"}:
        network = "Socket"  # NCCL lists interfaces for data only when it found no RDMA device
    ports, virtual = devices_of(texts)
    messages = tuple(Message(*text, facts_of(text[1], text[0])) for text in texts if text[0] not in OF_DEVICES)
    return Process(
        host, pid, versions, network, ports, virtual, bootstrap, settings, messages, texts[0][2] if texts else None,
        addresses=tuple(addresses), hcas_cut=";" not in (_listed(texts)[0] or ";"),
    )  # fmt: skip


def _take_version(versions: dict[str, str], component: str, version: str) -> None:
    """Keep the first version of a component, and of one build the words that say for which CUDA it is: another program
    may have named it before, without them."""
    known = versions.get(component, "")
    if component and (not known or version.startswith(f"{known}+")):
        versions[component] = version


def network_named(text: str) -> str:
    """What `Using network Socket [repeated 15x across cluster]` names, without Ray's remark on lines that are alike."""
    match = _LIKE["network"].search(text)
    return (match[1] or match[2]).partition(" [repeated ")[0].strip() if match is not None else ""


@lru_cache(maxsize=65536)
def _version(kind: str, text: str) -> tuple[str, str]:
    """Component and version, "" where the text says none."""
    component, pattern = _VERSIONED[kind]
    match = pattern.search(text)
    if match is None or (kind == "net plugin" and match[1] in ("IB", "Socket")):
        return "", ""
    if kind == "version" and text.lstrip().startswith("RCCL"):
        component = "rccl"
    return component, match[1]


@lru_cache(maxsize=65536)
def _bootstrap(text: str) -> str:
    match = _LIKE["bootstrap"].search(text)
    return match[1].split(" [")[0] if match else ""


@lru_cache(maxsize=65536)
def _addresses(text: str) -> tuple[str, ...]:
    """Addresses of the process's own interfaces, without its loopback."""
    addresses = ((match[1] or match[2]).strip("[]") for match in _LIKE["address"].finditer(text))
    return tuple(address for address in addresses if not address.startswith("127.") and address != "::1")


def version_of(text: str) -> str:
    """NCCL's or RCCL's version in a line that names it, "" in any other."""
    return _version("version", text)[1]


_WAYS = {"invalid": "setting", "environment": "setting", "application": "config"}
"""How a setting was given, and the kind of the lines that say so."""


@lru_cache(maxsize=65536)
def _given(kind: str, text: str, origin: Origin | None) -> GivenSetting | None:
    """The setting that a line names, by the environment or by the application's ncclConfig_t."""
    ways = (how for how, of_kind in _WAYS.items() if of_kind == kind)
    how, match = next(((how, match) for how in ways if (match := _LIKE[how].search(text)) is not None), ("", None))
    if match is None:
        return None
    value = match["value"].strip()
    if value.endswith(".") and value[:-1].lstrip("-").isdigit():
        value = value[:-1]
    return GivenSetting(match["name"], "-1" if value == _MINUS_ONE else value, how, origin)


_MOST = 1000
"""Commands of one file that are read: a loop over benchmarks has some dozens."""


@dataclass(frozen=True, slots=True)
class _Command:
    offset: int
    program: str
    settings: Sequence[tuple[str, str]]
    count: int
    origin: Origin


def commanded(frame: Frame, processes: Processes) -> Mapping[int, Mapping[str, GivenSetting]]:
    """By process, the settings in force at its first line by the commands above it in its own file."""
    rows = frame["text"]
    chosen = np.flatnonzero(rows.is_word("kind", COMMAND))
    if not len(chosen):
        return {}
    files = frame["threads"]["file"][rows["thread"][chosen]]
    by_process: dict[int, Mapping[str, GivenSetting]] = {}
    firsts = _firsts(frame, processes)
    for file in sorted(set(files.tolist())):
        commands = _commands(frame, rows, chosen[files == file].tolist()[:_MOST])
        for (at, process), offset in firsts.items():
            if at == file and process not in by_process:
                by_process[process] = _in_force([command for command in commands if command.offset < offset])
    return by_process


def _firsts(frame: Frame, processes: Processes) -> dict[tuple[int, int], int]:
    """By file and process, the offset of its first line that speaks of it."""
    firsts: dict[tuple[int, int], int] = {}
    for table in ("text", "init"):
        rows = frame[table]
        files, offset = frame["threads"]["file"][rows["thread"]], rows["offset"]
        owner = processes.of(rows["thread"], offset)
        order = np.argsort(offset)
        order = order[owner[order] >= 0]
        first, _ = unique_rows([files[order], owner[order]])
        for _, file, process, at in in_pieces(order[first], files, owner, offset):
            firsts[file, process] = min(at, firsts.get((file, process), at))
    return firsts


def _commands(frame: Frame, rows: Table, chosen: Iterable[int]) -> list[_Command]:
    commands = []
    for row in chosen:
        text = rows.word("text", row)
        if (stated := stated_in(text)) is not None:
            origin = frame.origin(rows, row, text[:MAX_QUOTE])
            commands.append(_Command(int(rows["offset"][row]), *stated, int(rows["count"][row]), origin))
    return sorted(commands, key=lambda command: command.offset)


def _in_force(commands: Sequence[_Command]) -> dict[str, GivenSetting]:
    """What holds below these commands. A line that stands several times keeps its first place only: beside another line
    for the same variable it leaves open which was the last. So do two values that no shell's trace orders."""
    shell: dict[str, GivenSetting] = {}
    run: dict[str, dict[str, GivenSetting]] = {}
    values: dict[str, set[str]] = {}
    repeated: set[str] = set()
    for command in commands:
        names = {name: GivenSetting(name, value, COMMANDED, command.origin) for name, value in command.settings}
        if command.program:
            run[command.program] = names
        else:
            shell |= names
            for name, given in names.items():
                values.setdefault(name, set()).add(given.value)
        if command.count > 1:
            repeated |= names.keys()
    several = {name for name, texts in values.items() if len(texts - {""}) > 1 or (len(texts) > 1 and name in repeated)}
    in_force = {name: given for name, given in shell.items() if name not in several}
    for each_run in run.values():
        in_force |= each_run
    return {name: given for name, given in in_force.items() if given.value}
