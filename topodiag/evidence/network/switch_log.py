"""The log of a switch, or of a monitor: links of ports that go down and come back.

    %LINEPROTO-5-UPDOWN: Line protocol on Interface Ethernet12/1 (gpu-31:eth4), changed state to down
    %ETHPORT-5-IF_DOWN_LINK_FAILURE: Interface Ethernet1/12 is down (Link failure)
    #orchagent: :- updatePortOperStatus: Port Ethernet48 oper state set from up to down
    mib2d[5122]: SNMP_TRAP_LINK_DOWN: ifIndex 531, ifAdminStatus up(1), ifOperStatus down(2), ifName et-0/0/12
    %Jun  3 09:12:44:118 IFNET/3/PHY_UPDOWN: Physical state on the interface Ten-GigabitEthernet1/0/3 changed to down.
    igc1: link state changed to DOWN

A port whose last word is up after it was down has flapped; one whose last word is down is down. What an administrator
shut down is neither. Formats: Cisco IOS and NX-OS, Arista EOS, SONiC, Junos, Cumulus' switchd, H3C Comware and
Huawei VRP, the kernels of FreeBSD (sys/net/if.c) and of Linux without the address of the device.
"""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import MAX_LINE, Reporting, report
from topodiag.lazy import regex
from topodiag.model.events import Event
from topodiag.model.topics import Topic

MAX_PORTS = 4096
_PORT = (
    r"(?P<{}>(?:(?:Ten-|Twenty-?Five|Forty|Hundred|FourHundred|M-|X)?(?:Gigabit|Gig)?[Ee]th(?:ernet)?|swp|[efgx][te]-"
    r"|[A-Z][A-Za-z]{{2,20}}E|\d{{2,3}}GE|IB|NVL)[\d/:.-]{{1,20}}(?:s\d{{1,3}})?)"
)
_CHANGES = (
    regex(rf"\b[Ii]nterface {_PORT.format('a')}\b.{{0,80}}?\bchanged (?:its )?state to (?P<to_a>up|down)\b"),
    regex(rf"\b[Ii]nterface {_PORT.format('b')} is (?P<to_b>up|down)\b(?! \(Admin)"),
    regex(
        rf"\bPort {_PORT.format('c')} oper(?:ational)? (?:state|status) (?:set |changed )?from \w{{2,8}} to"
        rf" (?P<to_c>up|down)\b"
    ),
    regex(rf"\bSNMP_TRAP_LINK_(?P<to_d>UP|DOWN): .{{0,120}}?\bifName {_PORT.format('d')}"),
    regex(
        rf"\b(?:state|protocol|protocol IP) on (?:the )?interface {_PORT.format('e')} (?:changed|has entered|turned)"
        rf"(?: to| into)?(?: the)? (?P<to_e>up|down|UP|DOWN)\b"
    ),
)
_HOST_PORT = r"(?P<{}>(?:mlx[45]_|ib|rdma|hsn|eth|swp|Ethernet)\d{{1,3}}(?:s\d)?|en[opsx]\w{{1,12}})"
_BSD = (
    r"(?P<{}>(?:ig[bc]|em|ix[lv]?|iavf|ice|re|rge|bge|bce|bxe|bnxt|cx(?:gbe?|l)|cc|mce|mlxen|axp?|vmx|vtnet|ena|msk|alc"
    r"|nfe|oce|qlnxe|sfxge|liquidio|dpni)\d{{1,3}})"
)
"""Adapters by the names of FreeBSD's drivers; not what lies on top of them (vlan, lagg, bridge), and nothing on USB."""
_BSD_LINK = regex(rf"(?:^|[\s:]){_BSD.format('port')}: link state changed to (?P<to>UP|DOWN)\b")
_BSD_HANG = regex(rf"(?:^|[\s:]){_BSD.format('port')}: [Ww]atchdog timeout\b")
"""Its transmit queue stood still, and the driver starts the adapter anew."""
MANY_OF_BSD = 3
"""Times that a port of FreeBSD goes down which are more than its start: setting an address there resets the link."""
_ON_HOST = (
    regex(rf"\b{_HOST_PORT.format('a')}: (?P<to_a>Lost|Gained) carrier\b"),
    regex(rf"\b{_HOST_PORT.format('b')}\b:? .{{0,40}}\b[Ll]ink (?:is |became |went )?(?P<to_b>(?i:up|down))\b"),
    regex(rf"\b\({_HOST_PORT.format('c')}\): carrier: link (?P<to_c>connected|disconnected)\b"),
)
"""systemd-networkd, drivers and agents, NetworkManager."""
_UP = frozenset({"up", "gained", "connected"})
_OF_KERNEL = regex(r"\b(?:mlx[45]_(?:core|en)|bnxt_en|ionic|ice|hns3) [0-9a-f:.]{7,16}[: ]|\bNIC Link is (?:Up|Down)\b")
"""Lines of drivers with the device's address, and of Intel's: the reader of kernel logs takes them."""
_ON_PURPOSE = regex(r"[Aa]dmin(?:istratively)? (?:shut|down)|ifAdminStatus down|Administratively")


class SwitchLog(Reporting):
    """Ports of switches that came and went."""

    kind = "switch-log"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 40
    a_piece = "it says what its ports did"

    def recognises(self, head: str) -> bool:
        return any(words in head for words in ("nterface ", "Port ", "SNMP_TRAP", "arrier", "ink", "atchdog")) and any(
            _change(line[:MAX_LINE]) is not None or _BSD_HANG.search(line[:MAX_LINE]) is not None
            for line in head.split("\n")
        )

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        words: dict[str, list[tuple[str, int, str]]] = {}
        hung: dict[str, tuple[int, str]] = {}
        for number, whole in blob.lines():
            parsed.lines = number
            line = whole[:MAX_LINE]
            change = _change(line)
            if change is not None and (change[0] in words or len(words) < MAX_PORTS):
                words.setdefault(change[0], []).append((change[1], number, line))
            elif (stood := _BSD_HANG.search(line)) is not None and len(hung) < MAX_PORTS:
                hung.setdefault(stood["port"], (number, line))
        for port, (number, line) in hung.items():
            said = f"the transmit queue of {port} stood still, and its driver started it anew"
            parsed.records.append(report("nic.flap", said, blob, number, line))
        for port, changes in words.items():
            downs = [each for each in changes if each[0] == "down"]
            back = changes[-1][0] == "up"
            if not downs or _is_usual(port, changes, len(downs)):
                continue
            times = f"{len(downs)} times" if len(downs) > 1 else "once"
            said = f"{port} went down and came back {times}" if back else f"{port} is down by the last word of this log"
            _, number, line = downs[0] if back else downs[-1]
            parsed.records.append(report("nic.flap" if back else "nic.port_down", said, blob, number, line))
        return parsed


def _is_usual(port: str, changes: Sequence[tuple[str, int, str]], downs: int) -> bool:
    """Whether an interface was taken down and up again by somebody, starts, or has nothing plugged in."""
    back = changes[-1][0] == "up"
    if _BSD_LINK.search(changes[0][2]) is not None:
        return downs < MANY_OF_BSD if back else downs == len(changes)
    of_host = port[0].islower() and not port.startswith(("et-", "xe-", "ge-", "fte-", "swp"))
    return of_host and back and downs == 1


def _change(line: str) -> tuple[str, str] | None:
    """The port that a line speaks of, and `up` or `down`."""
    if _ON_PURPOSE.search(line) is not None or _OF_KERNEL.search(line) is not None:
        return None
    bsd = _BSD_LINK.search(line)
    if bsd is not None:
        return bsd["port"], bsd["to"].lower()
    for patterns in (_CHANGES, _ON_HOST):
        for name, pattern in zip("abcde", patterns, strict=False):
            found = pattern.search(line)
            if found is not None:
                return found[name], "up" if found[f"to_{name}"].lower() in _UP else "down"
    return None
