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

from topodiag.evidence.interface import MAX_LINE
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.words.own_data import patterns

MAX_PORTS = 4096
_CHANGES = tuple(patterns("evidence/network/switch_log", "changes").values())
_UP = frozenset({"up", "gained", "connected"})
_LIKE = patterns("evidence/network/switch_log", "lines")


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
            if word and (port in ports or len(ports) < MAX_PORTS):
                ports.setdefault(port, []).append((word, line))
        for port, changes in ports.items():
            downs = [line for word, line in changes if word == "down"]
            back = changes[-1][0] == "up"
            if not downs or (back and len(downs) == 1 and _is_of_host(port)):
                continue
            if back:
                times = f"{len(downs)} times" if len(downs) > 1 else "once"
                downs[0].report("nic.flap", f"{port} went down and came back {times}")
            else:
                downs[-1].report("nic.port_down", f"{port} is down by the last word of this log")


def _is_of_host(port: str) -> bool:
    """Whether it is an interface of a host, which somebody may take down and up again."""
    return port[0].islower() and not port.startswith(("et-", "xe-", "ge-", "fte-", "swp"))


def _change(line: str) -> tuple[str, str] | None:
    """The port that a line speaks of, and `up` or `down`."""
    if _LIKE["on_purpose"].search(line) is not None or _LIKE["of_kernel"].search(line) is not None:
        return None
    match = next((match for pattern in _CHANGES if (match := pattern.search(line)) is not None), None)
    return (match["port"], "up" if match["to"].lower() in _UP else "down") if match is not None else None
