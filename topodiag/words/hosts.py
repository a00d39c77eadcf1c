"""Names of hosts as sources write them: short, with a domain, or an address; and addresses that name one machine."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from topodiag.lazy import regex

ADDRESS = regex(r"([A-Za-z][\w.\-]{0,30}):\[?([0-9a-fA-F:.]{2,45})(?:%[\w.\-]{1,30})?\]?<\d{1,5}>")
"""`eth0:10.1.2.3<0>`, `ib0:fe80::1%ib0<0>` in lines of the bootstrap and of sockets (ncclSocketToString)."""


_SHARED = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.17.0.0/16", "192.168.122.0/24", "192.168.123.0/24",
        "10.0.2.0/24", "10.88.0.0/16", "224.0.0.0/3", "::/128", "::1/128", "fe80::/10", "ff00::/8",
    )
)  # fmt: skip
"""Addresses that many machines have alike: loopback, link-local, the bridges of Docker, podman, libvirt and QEMU, and
multicast."""
_EC2 = regex(r"ip-(\d{1,3})-(\d{1,3})-(\d{1,3})-(\d{1,3})(?:\..{1,200})?")
MOST_CHARACTERS = 253
"""Of a host name (RFC 1123)."""


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """To sort by: node2 before node10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", name))


def address_of(text: str) -> str:
    """An IP address in its shortest form, an IPv4 address inside IPv6 as IPv4; "" for what is no address."""
    bare = text.strip().strip("[]").partition("%")[0]
    if not 2 <= len(bare) <= 45 or not (bare[0].isalnum() or bare[0] == ":"):
        return ""
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def names_one_machine(address: str) -> bool:
    """Whether an address can be of one machine alone: not loopback, link-local, or the bridge of a container engine."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not any(parsed in network for network in _SHARED if network.version == parsed.version)


def address_in_name(host: str) -> str:
    """The address that EC2 writes into the name of an instance (`ip-10-24-6-50.ec2.internal`), "" without one."""
    match = _EC2.fullmatch(host[:MOST_CHARACTERS].lower())
    return address_of(".".join(match.groups())) if match else ""


def short_name(host: str) -> str:
    """`n1` of `N1.site.example`, and of `n1#2`, the second capture of it; an address stays whole."""
    bare = host.partition("#")[0].lower()
    if not any(letter.isalpha() for letter in bare.replace("0x", "")) or ":" in bare:
        return address_of(bare) or bare
    return bare.partition(".")[0] or bare


def short_names(hosts: Sequence[str]) -> list[str]:
    """The names without their domains, where that leaves them different; as they are where not."""
    names = [host if address_of(host) else host.partition(".")[0] for host in hosts]
    return names if len(set(names)) == len(set(hosts)) else list(hosts)
