"""The log of a switch, or of a monitor: links of ports that go down and come back.

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
        return any(words in head for words in ("nterface ", "Port ", "SNMP_TRAP", "arrier", "ink")) and any(
            _change(line[:MAX_LINE]) is not None for line in head.split("\n")
        )

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        words: dict[str, list[tuple[str, int, str]]] = {}
        for number, whole in blob.lines():
            line = whole[:MAX_LINE]
            change = _change(line)
            if change is not None and (change[0] in words or len(words) < MAX_PORTS):
                words.setdefault(change[0], []).append((change[1], number, line))
        for port, changes in words.items():
            downs = [each for each in changes if each[0] == "down"]
            back = changes[-1][0] == "up"
            if not downs or (back and len(downs) == 1 and _is_of_host(port)):
                continue
            times = f"{len(downs)} times" if len(downs) > 1 else "once"
            said = f"{port} went down and came back {times}" if back else f"{port} is down by the last word of this log"
            _, number, line = downs[0] if back else downs[-1]
            parsed.records.append(report("nic.flap" if back else "nic.port_down", said, blob, number, line))
        return parsed


def _is_of_host(port: str) -> bool:
    """Whether it is an interface of a host, which somebody may take down and up again."""
    return port[0].islower() and not port.startswith(("et-", "xe-", "ge-", "fte-", "swp"))


def _change(line: str) -> tuple[str, str] | None:
    """The port that a line speaks of, and `up` or `down`."""
    if _ON_PURPOSE.search(line) is not None or _OF_KERNEL.search(line) is not None:
        return None
    for patterns in (_CHANGES, _ON_HOST):
        for name, pattern in zip("abcde", patterns, strict=False):
            found = pattern.search(line)
            if found is not None:
                return found[name], "up" if found[f"to_{name}"].lower() in _UP else "down"
    return None
