"""What two hosts show one after another in one text, each below its own prompt or banner, where it cannot be right
together: the MTU of interfaces in one network, and the priorities in which packets leave and arrive.

    [jane@c001 ~]$ ip a                                      root@h1:~# ethtool -S eth0 | grep prio > 1.txt; ...
    21: eth1: <UP,LOWER_UP> mtu 9000 qdisc noqueue           rx_prio0_packets: 49396 | rx_prio0_packets: 49437 ..
        inet 172.16.0.1/16 scope global eth1                 tx_prio3_packets: 46712 | tx_prio3_packets: 46752 ..
    [jane@login ~]$ ip a
    2: eth0: <UP,LOWER_UP> mtu 1500 qdisc pfifo_fast
        inet 172.16.255.254/16 scope global eth0

SOURCE: iproute2 ip/ipaddress.c; the counters of Linux mlx5 (`tx_prio3_packets`); diffutils `diff -y`.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from topodiag.evidence.network.local_addresses import OF_ONE_HOST
from topodiag.evidence.sentences import Together

MAX_LINE = 400
_NAME = r"[A-Za-z0-9][A-Za-z0-9.-]{0,62}"
_BEGINS = re.compile(
    rf"\s{{0,8}}(?:\[?[a-z_][\w.-]{{0,31}}@({_NAME})[ :][^\n$#]{{0,80}}[$#] ?"
    rf"|[=#*-]{{2,20}} ?({_NAME}) ?[=#*-]{{2,20}}\s*$"
    rf"|(?:[$#>] )?ssh (?:-\S{{1,20}} ){{0,4}}(?:[a-z_][\w.-]{{0,31}}@)?({_NAME})\s)"
)
"""A shell's prompt, a banner, and a command over ssh: what follows is of this host."""
_LINK = re.compile(r"\s{0,8}\d{1,6}: ([^\s:@]{1,15})(?:@[^\s:]{1,20})?: <[A-Z0-9_,-]{0,200}> mtu (\d{3,5})\b")
_IFCONFIG = re.compile(r"\s{0,4}([^\s:]{1,15}): flags=\d{1,6}<[A-Z0-9_,]{0,200}>\s{1,8}mtu (\d{3,5})\b")
_INET = re.compile(r"\s{1,12}inet ((?:\d{1,3}\.){3}\d{1,3})(?:(/\d{1,2})\b|\s{1,4}netmask ((?:\d{1,3}\.){3}\d{1,3})\b)")
_ASKED = re.compile(
    r"[$#] ?(?:sudo )?(?:ip (?:-\S{1,12} ){0,3}(?:link|addr|address|a|l)|ifconfig) "
    r"(?:s\w{0,3} )?(?:dev )?(\S{2,15})\s*$"
)
"""A command for one interface, which is compared by its name."""
_MOVED = re.compile(
    r"\s{0,40}([rt]x)_prio([0-7])_packets: (\d{1,19})\s{1,40}[|<>]\s{1,40}[rt]x_prio[0-7]_packets: (\d{1,19})"
)
_ALONE = 0.9
"""Share of the packets of one direction that are in one priority."""
_ALIKE = 2.0
"""Times that one direction carries what the other does: messages and their answers."""
_LEAST = 10_000
"""Packets of a direction below which they may be anybody's."""
_SPEAKS = re.compile(r"> {1,8}mtu \d|_prio[0-7]_packets: ")


@dataclass(slots=True)
class _Host:
    """What a host shows: by network, or by the interface that was asked for, MTU, line and interface; by direction and
    priority the packets and the line."""

    mtus: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    moved: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    line: int = 0


def hosts_apart(lines: Sequence[str]) -> list[Together]:
    """What hosts of one text show that cannot be right together; nothing for the text of one host."""
    if not any(_SPEAKS.search(line[:MAX_LINE]) for line in lines):
        return []
    hosts = _hosts(lines)
    return [*_mtus(hosts), *_ways(hosts)] if len(hosts) > 1 else []


def _hosts(lines: Sequence[str]) -> dict[str, _Host]:
    """What each host shows, a later reading in place of an earlier one."""
    hosts: dict[str, _Host] = {}
    host: _Host | None = None
    link: tuple[str, int, int] | None = None
    asked = ""
    for number, line in enumerate(lines, 1):
        text = line[:MAX_LINE]
        begun = _BEGINS.match(text)
        if begun is not None:
            host, link = hosts.setdefault(begun[1] or begun[2] or begun[3], _Host()), None
            asked = named[1] if (named := _ASKED.search(text)) else ""
        elif host is None:
            continue
        elif shown := _LINK.match(text) or _IFCONFIG.match(text):
            if shown[1] == asked:
                host.mtus[asked] = (int(shown[2]), number, asked)
            link = (shown[1], int(shown[2]), number) if OF_ONE_HOST.match(shown[1]) is None else None
        elif (inet := _INET.match(text)) and link is not None:
            network = _network(f"{inet[1]}{inet[2] or f'/{inet[3]}'}")
            if network:
                host.mtus[network] = (link[1], link[2], link[0])
        elif moved := _MOVED.match(text):
            host.moved[moved[1]][int(moved[2])] = max(int(moved[4]) - int(moved[3]), 0)
            host.line = host.line or number
    return hosts


def _network(text: str) -> str:
    """The network of an address that several hosts may be in, "" for others."""
    try:
        network = ipaddress.ip_interface(text).network
    except ValueError:
        return ""
    return str(network) if network.prefixlen < 31 and not network.is_link_local else ""


def _mtus(hosts: dict[str, _Host]) -> Iterator[Together]:
    """Interfaces of one network that have another MTU than most, of two the lesser."""
    for network in dict.fromkeys(network for host in hosts.values() for network in host.mtus):
        told = {name: host.mtus[network] for name, host in hosts.items() if network in host.mtus}
        count = Counter(mtu for mtu, _, _ in told.values())
        usual = max(count, key=lambda mtu: (count[mtu], mtu))
        for name, (mtu, number, interface) in told.items():
            if mtu != usual:
                other = next(each for each, shown in told.items() if shown[0] == usual)
                place = f" in {network}" if "/" in network else ""
                words = f"{interface} of {name} has MTU {mtu}{place}, where {other} has {usual}"
                yield Together("mtu", number, words)


def _ways(hosts: dict[str, _Host]) -> Iterator[Together]:
    """Two hosts of which one sends in a priority and is answered in another one."""
    told = [(name, host, ways) for name, host in hosts.items() if (ways := _priorities(host)) is not None]
    for at, (name, host, (sent, came)) in enumerate(told):
        for other, _, (theirs, mine) in told[at + 1 :]:
            if sent != came and (sent, came) == (mine, theirs):
                yield Together(
                    "lossy",
                    host.line,
                    f"{name} sends in priority {sent}, and {other} answers in priority {came}: the traffic class is"
                    " that of one side only",
                )


def _priorities(host: _Host) -> tuple[int, int] | None:
    """The one priority in which a host sends, and the one in which it receives; None where it is not one, or where
    the two directions carry unlike numbers of packets."""
    sums = {way: sum(counts.values()) for way, counts in host.moved.items()}
    if len(sums) != 2 or min(sums.values()) < _LEAST or max(sums.values()) > _ALIKE * min(sums.values()):
        return None
    (sent, out), (came, into) = (host.moved[way].most_common(1)[0] for way in ("tx", "rx"))
    return (sent, came) if out >= _ALONE * sums["tx"] and into >= _ALONE * sums["rx"] else None


__all__ = ["hosts_apart"]
