"""What a process said of itself: versions, network, HCAs, settings, and the texts that checks read.

Wordings: nccl src/init.cc, src/transport/net_ib*, src/misc/param.cc, src/plugin/*.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from topodiag.evidence.nccl_log.rebuild.devices import OF_DEVICES, Text, devices_of
from topodiag.lazy import regex
from topodiag.model.job import Given, Message, Process
from topodiag.model.provenance import Origin

_VERSION = regex(r"(?:NCCL|RCCL) version\s*:?\s*(\S+)")
_NUMBER = regex(r"(\d{1,12})")
_SETTING = regex(
    r"(?:^|\s)((?:NCCL|RCCL|OFI_NCCL)_[A-Z0-9_]+) (?:set by environment to|set from environment to|set to) ?(.*)$"
)
_INVALID = regex(r"Invalid value (.*?) for (NCCL_[A-Z0-9_]+), using default (-?\d+)")
_CONFIG = regex(r"Comm config (.+?) set to (.*)$")
_BOOTSTRAP = regex(r"(?:Bootstrap ?: Using|^NET : Using interface) (?:\[0\])?(.+?)\s*$")
_OWN = frozenset({"bootstrap", "hcas", "sockets", "ras"})
"""Kinds of lines with addresses of the process itself, as `Bootstrap: Using eth0:10.1.2.3<0>`."""
_ADDRESS = regex(
    r"(?:^|[ \]])(?:OOB )?[\w.@-]{1,64}:((?:\d{1,3}\.){3}\d{1,3}|[0-9a-f:]{2,39}(?:%[\w.-]{1,32})?)<\d{1,5}>"
    r"|RAS network listening socket at (\S{1,64})<\d{1,5}>"
)
_NETWORK = regex(r"Using (?:internal N|n)etwork (.{1,200})|^Assigned NET plugin (\S.{0,60}?) to comm")
_PLUGIN = regex(r"(?:Loaded net plugin|Initialized NET plugin|Loaded external network plugin) (.+?)\s*$")
_TUNER = regex(r"[Uu]sing (?:tuner plugin:? )?'?([^']+?)'?\s*$")
_GIT = regex(r"NCCL git version (\S.{0,120}?)\s*$")
_OFI = regex(r"aws-ofi-nccl\s+(?:v)?(\S+)")
_VERSIONED = {
    "version": ("nccl", _VERSION), "git version": ("git", _GIT), "driver": ("driver", _NUMBER),
    "net plugin": ("net plugin", _PLUGIN), "tuner": ("tuner plugin", _TUNER), "ofi": ("ofi", _OFI),
}  # fmt: skip
"""Component and its pattern by the kind of text."""
_MINUS_ONE = "18446744073709551615"


def process_of(host: str, pid: int, texts: Sequence[Text], commanded: Mapping[str, Given]) -> Process:
    """`commanded` are the settings that commands give it: what NCCL prints of its environment is all that it read."""
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
    if not any(given.how == "environment" for given in settings.values()):
        settings = {**commanded, **settings}
    if not network and {kind for kind, *_ in texts} >= {"no hca", "sockets"}:
        network = "Socket"  # NCCL lists interfaces for data only when it found no RDMA device
    ports, virtual = devices_of(texts)
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
