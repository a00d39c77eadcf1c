"""The interfaces and addresses at which a process says that it meets its peers."""

from __future__ import annotations

import ipaddress

from topodiag.lazy import regex
from topodiag.model.job import Process
from topodiag.model.provenance import Origin

INTERFACE = regex(r"(?:\[\d{1,4}\]|OOB |\bUsing )\s*([A-Za-z][\w.\-]{0,30}):")
ADDRESS = regex(r"([A-Za-z][\w.\-]{0,30}):\[?([0-9a-fA-F:.]{2,45})(?:%[\w.\-]{1,30})?\]?<\d{1,5}>")
"""`eth0:10.1.2.3<0>`, `ib0:fe80::1%ib0<0>` in lines of the bootstrap and of sockets (ncclSocketToString)."""

OF_ONE_NODE = tuple(
    ipaddress.ip_network(net) for net in ("172.17.0.0/16", "10.88.0.0/16", "192.168.122.0/24", "169.254.0.0/16")
)
"""Bridges of Docker, Podman and libvirt as they are installed, and IPv4 link-local: each node numbers its own."""


def interfaces_of(process: Process) -> set[str]:
    """Names of the interfaces that a process says it uses for bootstrap, sockets, or out of band."""
    names = {process.bootstrap.partition(":")[0].strip()} if ":" in process.bootstrap else set()
    if process.network.lower() == "socket":
        for message in process.said("sockets"):
            names.update(INTERFACE.findall(message.text))
    return names - {""}


def interfaces_listed(process: Process) -> set[str]:
    """Interfaces that a process lists for data, whichever network it takes."""
    return {name for message in process.said("sockets") for name in INTERFACE.findall(message.text)}


def addresses_of(process: Process) -> set[tuple[str, str]]:
    """Interface and address of the bootstrap, and of the sockets that carry data."""
    texts = [process.bootstrap]
    if process.network.lower() == "socket":
        texts += [message.text for message in process.said("sockets")]
    return {(match[1], match[2]) for text in texts for match in ADDRESS.finditer(text)}


def leads_nowhere(text: str, hosts: int) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if address.is_loopback:
        return True
    return hosts > 1 and any(address in network for network in OF_ONE_NODE)


def one_bridge(a: str, b: str) -> bool:
    try:
        both = (ipaddress.ip_address(a), ipaddress.ip_address(b))
    except ValueError:
        return False
    return any(all(each in network for each in both) for network in OF_ONE_NODE)


def place_of(process: Process) -> Origin | None:
    messages = process.said("bootstrap") or process.said("sockets")
    return messages[0].origin if messages else process.origin
