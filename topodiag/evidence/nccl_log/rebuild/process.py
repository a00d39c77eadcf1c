"""What a process said of itself: versions, network, HCAs, settings, and the texts that checks read.

Wordings: nccl src/init.cc, src/transport/net_ib*, src/misc/param.cc, src/plugin/*.cc.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from sys import intern

from topodiag.model.devices import ports_of
from topodiag.model.job import Given, Hca, Message, Process
from topodiag.model.provenance import Origin

Text = tuple[str, str, Origin | None, int]
"""Kind, text, place, count."""

OF_DEVICES = frozenset({"hca", "gdr hca", "virtual nic"})
"""Kinds that tell more of the devices in a list, whose place stands for theirs. A large job has a line for each device
of each rank: they are not kept as messages."""

GDR_OFF = "GPU Direct RDMA Disabled"
"""Of a device this is a verdict, and its line the evidence."""

_VERSION = re.compile(r"(?:NCCL|RCCL) version\s*:?\s*(\S+)")
_NUMBER = re.compile(r"(\d{1,12})")
_HCA = re.compile(r"\[(\d{1,6})\]\s?([^\s:\[\]{}]+):(\d{1,6})?(?::-?\d{0,6}){0,2}((?:/[A-Za-z0-9]+)+)?")
"""Behind the port rail and plane, where NCCL_IB_HCA gives them: `[0]mlx5_0:1:0:1/IB` (2.30 and later)."""
_JOINED = re.compile(r"\[(\d{1,6})\]=\{([^{}]{1,600})\}")
_HCA_LONG = re.compile(
    r"NET/IB\s?: \[(\d{1,6})\] ([^\s:]+):[^\s:]+:(\d{1,6})/(\S+) .*?speed=(\d{1,12})(?:.*?pciPath=(\S+))?"
)
_GDR_HCA = re.compile(r"GPU Direct RDMA (Enabled|Disabled) for HCA (\d{1,6}) '([^']*)'")
_VIRTUAL = re.compile(r"Made virtual device \[(\d{1,6})\] name=(\S+) speed=(\d{1,12})")
_SETTING = re.compile(
    r"(?:^|\s)((?:NCCL|RCCL|OFI_NCCL)_[A-Z0-9_]+) (?:set by environment to|set from environment to|set to) ?(.*)$"
)
_INVALID = re.compile(r"Invalid value (.*?) for (NCCL_[A-Z0-9_]+), using default (-?\d+)")
_CONFIG = re.compile(r"Comm config (.+?) set to (.*)$")
_BOOTSTRAP = re.compile(r"(?:Bootstrap ?: Using|^NET : Using interface) (?:\[0\])?(.+?)\s*$")
_OWN = frozenset({"bootstrap", "hcas", "sockets", "ras"})
"""Kinds of lines with addresses of the process itself, as `Bootstrap: Using eth0:10.1.2.3<0>`."""
_ADDRESS = re.compile(
    r"(?:^|[ \]])(?:OOB )?[\w.@-]{1,64}:((?:\d{1,3}\.){3}\d{1,3}|[0-9a-f:]{2,39}(?:%[\w.-]{1,32})?)<\d{1,5}>"
    r"|RAS network listening socket at (\S{1,64})<\d{1,5}>"
)
_NETWORK = re.compile(r"Using (?:internal N|n)etwork (.{1,200})|^Assigned NET plugin (\S.{0,60}?) to comm")
_PLUGIN = re.compile(r"(?:Loaded net plugin|Initialized NET plugin|Loaded external network plugin) (.+?)\s*$")
_TUNER = re.compile(r"[Uu]sing (?:tuner plugin:? )?'?([^']+?)'?\s*$")
_GIT = re.compile(r"NCCL git version (\S.{0,120}?)\s*$")
_OFI = re.compile(r"aws-ofi-nccl\s+(?:v)?(\S+)")
_VERSIONED = {
    "version": ("nccl", _VERSION), "git version": ("git", _GIT), "driver": ("driver", _NUMBER),
    "net plugin": ("net plugin", _PLUGIN), "tuner": ("tuner plugin", _TUNER), "ofi": ("ofi", _OFI),
}  # fmt: skip
"""Component and its pattern by the kind of text."""
_MINUS_ONE = "18446744073709551615"


def process_of(host: str, pid: int, texts: Sequence[Text]) -> Process:
    versions: dict[str, str] = {}
    settings: dict[str, Given] = {}
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
    if not network and {kind for kind, *_ in texts} >= {"no hca", "sockets"}:
        network = "Socket"  # NCCL lists interfaces for data only when it found no RDMA device
    ports, virtual = _devices(texts)
    messages = tuple(Message(*each) for each in texts if each[0] not in OF_DEVICES)
    return Process(
        host, pid, versions, network, ports, virtual, bootstrap, settings, messages, texts[0][2] if texts else None,
        addresses=tuple(addresses),
    )  # fmt: skip


def _take_version(versions: dict[str, str], component: str, version: str) -> None:
    """Keep the first version of a component, and of one build the words that say for which CUDA it is: another program
    may have named it before, without them."""
    known = versions.get(component, "")
    if component and (not known or version.startswith(f"{known}+")):
        versions[component] = version


def network_named(text: str) -> str:
    """What `Using network Socket [repeated 15x across cluster]` names, without Ray's remark on lines that are alike."""
    found = _NETWORK.search(text)
    return (found[1] or found[2]).partition(" [repeated ")[0].strip() if found is not None else ""


def _devices(texts: Sequence[Text]) -> tuple[tuple[Hca, ...], tuple[Hca, ...]]:
    """The RDMA ports of the first list with what other lines say of each, and the virtual NICs made of them."""
    listed: tuple[Hca, ...] | None = () if any(kind == "no hca" for kind, *_ in texts) else None
    details: dict[str, tuple[int | None, str]] = {}
    numbered: dict[tuple[int, str], Hca] = {}
    for kind, text, origin, _ in texts:
        if kind == "hcas" and not listed:
            listed = tuple(replace(each, origin=origin) for each in _hcas(text))
            numbered |= {(each.index, each.name): replace(each, origin=origin) for each in _joined(text)}
        elif kind == "hca" and (named := _hca(text)) is not None:
            details[named[0]] = named[1:]
        elif kind == "virtual nic" and (found := _VIRTUAL.search(text)) is not None:
            nic = Hca(int(found[1]), found[2], speed_mbps=int(found[3]), origin=origin)
            numbered.setdefault((nic.index, nic.name), nic)
        elif kind == "gdr hca" and (found := _GDR_HCA.search(text)) is not None and not text.startswith("NET/Socket"):
            on = found[1] == "Enabled"
            nic = numbered.get((int(found[2]), found[3])) or Hca(int(found[2]), found[3], origin=origin)
            numbered[nic.index, nic.name] = replace(nic, gdr=on, gdr_origin=None if on else origin)
    nics = sorted(numbered.values(), key=lambda nic: (-len(ports_of(nic.name)), nic.index))
    gdr = {port: nic for nic in nics if nic.gdr is not None for port in ports_of(nic.name)}
    if listed is None:  # an excerpt without the list: what is said of each device stands for it
        ports = tuple(nic if nic.name == port else replace(nic, index=-1, name=port) for port, nic in gdr.items())
        return ports, _virtual(ports, nics)
    none = Hca(-1, "")
    ports = tuple(
        Hca(each.index, each.name, each.port, each.link_layer, *details.get(each.name, (None, "")),
            gdr.get(each.name, none).gdr, each.origin, gdr.get(each.name, none).gdr_origin)
        for each in listed
    )  # fmt: skip
    return ports, _virtual(ports, nics)


def _virtual(ports: Sequence[Hca], nics: Sequence[Hca]) -> tuple[Hca, ...]:
    """The devices in use that are not ports under their own numbers. NCCL lists each port first, and then the virtual
    NIC that it is part of under a higher number; 2.24 to 2.26 also one of a single port (src/graph/topo.cc)."""
    used: dict[str, Hca] = {}
    for nic in sorted(nics, key=lambda nic: (len(ports_of(nic.name)), nic.index)):
        used |= dict.fromkeys(ports_of(nic.name), nic)
    listed = {(port.index, port.name) for port in ports}
    made = []
    for nic in dict.fromkeys(nic for nic in used.values() if (nic.index, nic.name) not in listed):
        own = [port for port in ports if port.name in ports_of(nic.name)]
        speeds = [port.speed_mbps for port in own if port.speed_mbps is not None]
        speed = nic.speed_mbps or (sum(speeds) if speeds and len(speeds) == len(own) else None)
        made.append(replace(own[0] if own else nic, index=nic.index, name=nic.name, speed_mbps=speed))
    return tuple(made)


@lru_cache(maxsize=65536)
def _version(kind: str, text: str) -> tuple[str, str]:
    """Component and version, "" where the text says none."""
    component, pattern = _VERSIONED[kind]
    found = pattern.search(text)
    if found is None or (kind == "net plugin" and found[1] in ("IB", "Socket")):
        return "", ""
    if kind == "version" and text.lstrip().startswith("RCCL"):
        component = "rccl"
    return component, found[1]


@lru_cache(maxsize=65536)
def _bootstrap(text: str) -> str:
    found = _BOOTSTRAP.search(text)
    return found[1].split(" [")[0] if found else ""


@lru_cache(maxsize=65536)
def _addresses(text: str) -> tuple[str, ...]:
    """Addresses of the process's own interfaces, without its loopback."""
    found = (match[1] or match[2] for match in _ADDRESS.finditer(text))
    return tuple(each.strip("[]") for each in found if not each.startswith("127.") and each.strip("[]") != "::1")


@lru_cache(maxsize=65536)
def _hca(text: str) -> tuple[str, int, str] | None:
    """Name, speed in Mb/s and path of a device. Processes print the same paths with pointers of their own beside."""
    found = _HCA_LONG.search(text)
    return (found[2], int(found[5]), intern(found[6] or "")) if found is not None else None


@lru_cache(maxsize=65536)
def version_of(text: str) -> str:
    found = _VERSION.search(text)
    return found[1] if found else ""


@lru_cache(maxsize=65536)
def _given(kind: str, text: str, origin: Origin | None) -> Given | None:
    """The setting that a line names, by the environment or by the application's ncclConfig_t."""
    if kind == "setting" and (found := _setting(text)) is not None:
        return Given(*found, origin)
    if kind == "config" and (config := _CONFIG.search(text)) is not None and config[1] != "Comm name":
        return Given(config[1], config[2].strip(), "application", origin)
    return None


def _setting(text: str) -> tuple[str, str, str] | None:
    """Name, value and how it was given."""
    found = _INVALID.search(text)
    if found is not None:
        return found[2], found[1], "invalid"
    found = _SETTING.search(text)
    if found is None:
        return None
    name, value = found[1], found[2].strip()
    if value.endswith(".") and value[:-1].lstrip("-").isdigit():
        value = value[:-1]
    return name, "-1" if value == _MINUS_ONE else value, "environment"


@lru_cache(maxsize=4096)
def _hcas(text: str) -> tuple[Hca, ...]:
    """`[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB ib0:10.0.0.1<0>`, the ports of merged `[0]={[0] mlx5_0:1/IB, ..}`."""
    made = []
    for found in _HCA.finditer(text.partition("; OOB")[0].partition(" ;")[0]):
        layer = (found[4] or "").strip("/")
        made.append(Hca(int(found[1]), found[2], int(found[3] or 1), layer))
    return tuple(made)


@lru_cache(maxsize=4096)
def _joined(text: str) -> tuple[Hca, ...]:
    """The virtual NICs of a list up to 2.23, which has the ports of one adapter in braces."""
    return tuple(
        Hca(int(found[1]), "+".join(port.name for port in _hcas(found[2]))) for found in _JOINED.finditer(text)
    )
