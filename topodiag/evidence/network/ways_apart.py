"""Data of a job that leaves by another interface than its peers' addresses belong to: two interfaces of the host are in
one network, and the kernel's route takes the one of them, whatever the job was told to use.

    enp37s0f0        UP             192.168.5.12/20              ip -br addr, ip addr
    eno1             UP             192.168.3.12/20
    192.168.0.0/20 dev eno1 proto kernel scope link src 192.168.3.12         ip route
    ESTAB  0  305756  192.168.3.12:37178  192.168.5.15:43603     ss -tn, netstat -tn: by eno1, to peers of enp37s0f0

SOURCE: iproute2 misc/ss.c, ip/ipaddress.c; net-tools netstat.c. Servers' ports are passed over: what is asked of a
server goes where the server is.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence

from topodiag.evidence.network.local_addresses import OF_ONE_HOST
from topodiag.evidence.sentences import Together

MAX_LINE = 400
FAULT = "two-ways"
_ADDRESS = r"(?:\d{1,3}\.){3}\d{1,3}"
_BRIEF = re.compile(rf"\s{{0,8}}([^\s:@]{{1,15}})\s{{1,20}}(?:UP|UNKNOWN)\s{{1,20}}({_ADDRESS}/\d{{1,2}})\b")
_LINK = re.compile(r"\s{0,8}\d{1,6}: ([^\s:@]{1,15})(?:@[^\s:]{1,20})?: <")
_INET = re.compile(rf"\s{{1,12}}inet ({_ADDRESS}/\d{{1,2}})\b")
_ROUTE = re.compile(
    rf"\s{{0,8}}({_ADDRESS})(/\d{{1,2}}) dev ([^\s:@]{{1,15}}) proto kernel scope link src ({_ADDRESS})\b"
)
"""What the kernel itself adds for an address (`ip route`)."""
_SOCKET = re.compile(
    rf"\s{{0,8}}(?:ESTAB\s{{1,40}}(\d{{1,12}})\s{{1,40}}(\d{{1,12}})|tcp\s{{1,20}}(\d{{1,12}})\s{{1,20}}(\d{{1,12}}))"
    rf"\s{{1,60}}({_ADDRESS})(?:%[^\s:]{{1,15}})?:(\d{{1,5}})\s{{1,60}}({_ADDRESS}):(\d{{1,5}})\b"
)
_LEAST_PORT = 10_000
"""Ports from which on both ends of a connection are nobody's service."""
_QUEUED = 65_536
"""Bytes that wait in a socket, below which it may be anything but data."""
MOST, MOST_HELD = 1024, 16
"""Sockets and interfaces that are looked at."""


def ways_apart(lines: Sequence[str]) -> list[Together]:
    """One remark on the first such socket; nothing where each network has one interface."""
    if not any(line.lstrip().startswith(("ESTAB", "tcp ")) for line in lines):
        return []
    pairs = _of_one_network(lines)
    return list(_against(lines, pairs))[:1] if pairs else []


def _of_one_network(lines: Sequence[str]) -> list[tuple[str, ipaddress.IPv4Interface, str, ipaddress.IPv4Interface]]:
    """Pairs of interfaces with addresses in one network, in both orders."""
    held: list[tuple[str, ipaddress.IPv4Interface]] = []
    link = ""
    for line in lines:
        text = line[:MAX_LINE]
        named = _LINK.match(text)
        link = named[1] if named is not None else link
        brief, inet = _BRIEF.match(text), _INET.match(text)
        route = _ROUTE.match(text)
        name, address = (
            (brief[1], brief[2])
            if brief
            else (link, inet[1])
            if inet
            else (route[3], f"{route[4]}{route[2]}")
            if route
            else ("", "")
        )
        if (
            name
            and OF_ONE_HOST.match(name) is None
            and len(held) < MOST_HELD
            and (made := _interface(address)) is not None
        ):
            held.append((name, made))
    return [
        (*one, *other)
        for one in held
        for other in held
        if one[0] != other[0] and one[1].network == other[1].network and one[1].network.prefixlen < 31
    ]


def _interface(text: str) -> ipaddress.IPv4Interface | None:
    try:
        return ipaddress.IPv4Interface(text)
    except ValueError:
        return None


def _against(
    lines: Sequence[str], pairs: Sequence[tuple[str, ipaddress.IPv4Interface, str, ipaddress.IPv4Interface]]
) -> Iterator[Together]:
    """Sockets with data whose own address is that of the one interface, and whose peer is numbered as the other."""
    looked = 0
    for number, line in enumerate(lines, 1):
        found = _SOCKET.match(line[:MAX_LINE])
        if found is None or looked >= MOST:
            continue
        looked += 1
        queued = max(int(each) for each in found.groups()[:4] if each)
        if queued < _QUEUED or min(int(found[6]), int(found[8])) < _LEAST_PORT:
            continue
        peer = _interface(found[7])
        for name, own, other, theirs in pairs:
            if peer is None or str(own.ip) != found[5] or peer.ip not in own.network:
                continue
            if _alike(peer, theirs) and not _alike(peer, own):
                yield Together(
                    FAULT,
                    number,
                    f"{found[5]} ({name}) to {found[7]}, though {other} has {theirs.ip} in the same network"
                    f" {own.network}: data waits in this socket",
                )


def _alike(one: ipaddress.IPv4Interface, other: ipaddress.IPv4Interface) -> bool:
    """Whether two addresses differ in their last number alone, as those of one wire do."""
    return int(one.ip) >> 8 == int(other.ip) >> 8


__all__ = ["FAULT", "ways_apart"]
