"""The fabric: counters of ports, links, and logs of switches.

`ibqueryerrors` and `perfquery`: error counters of ports anywhere in an InfiniBand fabric.

    Errors for "node041 HCA-1"
       GUID 0xb8599f0300ae11d2 port 1: [SymbolErrorCounter == 4411] [LinkDownedCounter == 17]
       Link info:     21   1[  ] ==( 4X  25.78125 Gbps Active/  LinkUp)==>  0x... 3  12[  ] "switch" ( )

    # Port counters: Lid 21 port 1 (CapMask: 0x5A00)
    SymbolErrorCounter:..............0

`ibqueryerrors` lists ports above its thresholds, `perfquery` one port. Format: rdma-core, infiniband-diags.

`iblinkinfo`: links anywhere in an InfiniBand fabric that run below what both their ends can do. `ibnetdiscover`: what
the links between its switches and hosts run at (evidence/fabric_links.py), and with `-p` one row for each port:

    CA   206  1 0xa088c20300064f10 4x HDR - SW    31  6 0xfc6a1c0300a1b200 ( 'gpu-006 mlx5_0' - 'leaf-07' )

It says what runs, and not what the ends could do: a check compares adapters of one name below one switch. Format:
rdma-core, infiniband-diags/ibnetdiscover.c (dump_ports_report).

Counters of several ports, each line with the port's name before the counter's, as a loop of a shell prints them.

    mlx5_0 link_downed 0
    rdma2      link_down_events_phy: 41
    host7 mlx5_3/1: symbol_error = 8123

Only names of counters that are known, and two ports at least that call themselves so. Format: none,
`for d in ..; do ..; done`.

The log of a switch, or of a monitor: links of ports that go down and come back.

    %LINEPROTO-5-UPDOWN: Line protocol on Interface Ethernet12/1 (gpu-31:eth4), changed state to down
    %ETHPORT-5-IF_DOWN_LINK_FAILURE: Interface Ethernet1/12 is down (Link failure)
    #orchagent: :- updatePortOperStatus: Port Ethernet48 oper state set from up to down
    mib2d[5122]: SNMP_TRAP_LINK_DOWN: ifIndex 531, ifAdminStatus up(1), ifOperStatus down(2), ifName et-0/0/12
    %Jun  3 09:12:44:118 IFNET/3/PHY_UPDOWN: Physical state on the interface Ten-GigabitEthernet1/0/3 changed to down.

A port whose last word is up after it was down has flapped; one whose last word is down is down. What an administrator
shut down is neither. Formats: Cisco IOS and NX-OS, Arista EOS, SONiC, Junos, Cumulus' switchd, H3C Comware and
Huawei VRP, the kernel of Linux without the address of the device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from topodiag.evidence.draft import Entity
from topodiag.evidence.fabric_links import End, FabricLink, discovered_links, listed_links
from topodiag.evidence.interface import MAX_LINE, Blob, to_int
from topodiag.evidence.page import MARGIN, Line, OfPage, Page
from topodiag.model.events import Trust
from topodiag.words.own_data import own_data, patterns

_NAMES = "evidence/network/counters"
MAX_PORTS = 100_000
MAX_NUMBER = 1024
UNNAMED_PORT = "the port"


class FabricCounters(OfPage):
    """Counters of ports from `ibqueryerrors` and `perfquery`."""

    def read_page(self, page: Page) -> None:
        name = ""
        port: Entity | None = None
        for line in page.lines():
            if len(page.parsed.records) >= MAX_PORTS:
                break
            text = line.bare
            words, (counter, dotted, count) = text.replace(":", " ").split(), text.partition(":..")
            if text.startswith("Errors for "):
                name, port = text.partition('"')[2].rpartition('"')[0].strip(), None
            elif words[:1] == ["GUID"] and words[2:3] == ["port"] and len(words) > 3:
                # `port ALL` is the sum of a switch.
                port = _port(line, name or words[1], words[1].lower(), words[3].replace("ALL", "0"))
                for counter, _, count in (piece.partition(" == ") for piece in text.split("[")[1:]):
                    _offer(line, port, counter, count.partition("]")[0])
            elif text.startswith("# Port") and "counters" in words and "port" in words[:-1]:
                lid = words[words.index("Lid") + 1] if "Lid" in words[:-1] else ""
                port = _port(line, f"LID {lid}" if lid else UNNAMED_PORT, "", words[words.index("port") + 1])
            elif dotted and counter.isalnum():
                port = port or _port(line, UNNAMED_PORT, "", "0")
                _offer(line, port, counter, count.strip("."))
            elif text and not text.startswith(("#", "$", "Link info")):
                line.leave("not a line of ibqueryerrors or perfquery")


def _offer(line: Line, port: Entity | None, counter: str, count: str) -> None:
    name = own_data(_NAMES)["infiniband-diags"].get(counter)
    if port is not None and name is not None:
        line.count(port, name, to_int(count, low=0))


def _port(line: Line, name: str, guid: str, number: str) -> Entity | None:
    place = to_int(number, low=0, high=MAX_NUMBER)
    if place is None:
        return None
    line.page.mark(line.number)
    return line.page.draft.fabric_port(name, guid, place)


MAX_LINKS = 100_000


def _offer_links(page: Page, links: Iterable[FabricLink]) -> None:
    """What links say from one end, by the name and number of its port: what they run at, the other end, and what both
    could be: "" where neither could be more, None where the text does not say."""
    for link in islice(links, MAX_LINKS):
        page.mark(link.line)
        if link.here.port <= MAX_NUMBER:
            entity = page.draft.fabric_port(link.here.name or f"LID {link.here.number}", "", link.here.port)
            could = [word.strip(" ,;") for word in (link.could or "").split("Could be ")[1:]]
            able = None if link.could is None else ", ".join(could)
            peer = f"{link.peer.name or 'an unnamed end'} port {link.peer.port}"
            Line(page, link.line, link.text).put(entity, runs=link.runs, able=able, peer=peer)


class FabricLinks(OfPage):
    """Links of a fabric that run below what both ends can do."""

    def read_page(self, page: Page) -> None:
        _offer_links(page, (link for link in listed_links(page.blob) if link.could is not None))


_LIKE = patterns("evidence/network/lines", "fabric")


class IbNet(OfPage):
    """Links between switches and hosts as `ibnetdiscover` lists them."""

    def read_page(self, page: Page) -> None:
        links = chain(discovered_links(page.blob), _of_ports(page.blob))
        named = (link for link in links if link.runs and link.here.name and link.peer.name)
        _offer_links(page, (link for link in named if not link.peer.of_switch))


def _of_ports(blob: Blob) -> Iterator[FabricLink]:
    """The rows of `ibnetdiscover -p` between a switch and a host, from the switch's end whichever end they are of."""
    for line, whole in blob.lines():
        row = _LIKE["of_ports"].match(text := whole[:MAX_LINE].strip(MARGIN))
        if row is not None and row[1] != row[5]:
            one = End("", row[7].strip(), int(row[2]), row[1] == "SW")
            other = End("", row[8].strip(), int(row[6]), row[5] == "SW")
            here, peer = (one, other) if one.of_switch else (other, one)
            yield FabricLink(line, text, here, peer, f"{row[3]}x{row[4]}", 0.0)


MAX_DEVICES = 1024
_OTHERWISE = {"symbol_errors": "symbol_error", "rx_crc_err_phy": "rx_crc_errors_phy"}


class CounterLines(OfPage):
    """Error counters by port."""

    def read_page(self, page: Page) -> None:
        rows = [(line, match) for line in page.lines() if (match := _LIKE["line"].match(line.text[:MAX_LINE]))]
        if 1 < len({match[1] for _, match in rows}) <= MAX_DEVICES:
            for line, match in rows:
                port = page.draft.nic(rdma=match[1]).child("port", 1)
                line.count(port, _OTHERWISE.get(match[2], match[2]), to_int(match[3], low=0))


MAX_SWITCH_PORTS = 4096
_CHANGES = tuple(patterns("evidence/network/switch_log", "changes").values())
_TO = {"gained": "up", "connected": "up", "lost": "lost", "disconnected": "lost"}
_PLAIN = ("en", "eth")
"""Ports of a host of which nothing says that jobs use them. A driver calls one without a cable down when it starts it:
that it lost its link shows where it was up before, or is called lost."""
_OF_LOGS = patterns("evidence/network/switch_log", "lines")


class SwitchLog(OfPage):
    """Ports of switches that came and went."""

    def recognises(self, head: str) -> bool:
        return any(words in head for words in ("nterface ", "Port ", "SNMP_TRAP", "arrier", "ink")) and any(
            _change(line[:MAX_LINE]) is not None for line in head.split("\n")
        )

    def read_page(self, page: Page) -> None:
        ports: dict[str, list[tuple[str, Line]]] = {}
        for line in page.cut_lines():
            port, word = _change(line.text) or ("", "")
            if word and (port in ports or len(ports) < MAX_SWITCH_PORTS):
                ports.setdefault(port, []).append((word, line))
        for port, changes in ports.items():
            words = [word for word, _ in changes]
            # A port that is down already does not go down, though a driver says so again when it opens the port; who
            # says that it lost its carrier saw one.
            pairs = zip(["up", *words], changes, strict=False)
            falls = [line for before, (word, line) in pairs if word == "lost" or word != "up" == before]
            back = words[-1] == "up"
            if not falls or (back and len(falls) == 1 and _is_of_host(port)):
                continue
            if back:
                times = f"{len(falls)} times" if len(falls) > 1 else "once"
                falls[0].report("nic.flap", f"{port} went down and came back {times}", Trust.PROGRAM)
            elif not (port.startswith(_PLAIN) and set(words) == {"down"}):
                log = "the kernel's log" if _OF_LOGS["by_kernel"].search(changes[-1][1].text) else "this log"
                changes[-1][1].report("nic.port_down", f"{port} is down by the last word of {log}", Trust.PROGRAM)


def _is_of_host(port: str) -> bool:
    """Whether it is an interface of a host, which somebody may take down and up again."""
    return port[0].islower() and not port.startswith(("et-", "xe-", "ge-", "fte-", "swp"))


def _change(line: str) -> tuple[str, str] | None:
    """The port that a line speaks of, and `up`, `down` or `lost`."""
    if _OF_LOGS["on_purpose"].search(line) is not None or _OF_LOGS["of_kernel"].search(line) is not None:
        return None
    match = next((match for pattern in _CHANGES if (match := pattern.search(line)) is not None), None)
    return (match["port"], _TO.get(word := match["to"].lower(), word)) if match is not None else None
