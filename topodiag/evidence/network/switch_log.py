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

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import MAX_LINE, Blob, Parsed, Source
from topodiag.evidence.sentences import report
from topodiag.model.events import Event
from topodiag.words.own_data import patterns

MAX_PORTS = 4096
_CHANGES = tuple(patterns("evidence/network/switch_log", "changes").values())
_UP = frozenset({"up", "gained", "connected"})
_LIKE = patterns("evidence/network/switch_log", "lines")


class SwitchLog(Source):
    """Ports of switches that came and went."""

    def recognises(self, head: str) -> bool:
        return any(words in head for words in ("nterface ", "Port ", "SNMP_TRAP", "arrier", "ink")) and any(
            _change(line[:MAX_LINE]) is not None for line in head.split("\n")
        )

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        words: dict[str, list[tuple[str, int, str]]] = {}
        for number, whole in blob.lines():
            line = whole[:MAX_LINE]
            change = _change(line)
            if change is not None and (change[0] in words or len(words) < MAX_PORTS):
                words.setdefault(change[0], []).append((change[1], number, line))
        for port, changes in words.items():
            downs = [change for change in changes if change[0] == "down"]
            back = changes[-1][0] == "up"
            if not downs or (back and len(downs) == 1 and _is_of_host(port)):
                continue
            times = f"{len(downs)} times" if len(downs) > 1 else "once"
            ending = f"went down and came back {times}" if back else "is down by the last word of this log"
            _, number, line = downs[0] if back else downs[-1]
            kind = "nic.flap" if back else "nic.port_down"
            parsed.records.append(report(kind, f"{port} {ending}", blob, number, line))
        draft.reports += parsed.records
        return parsed


def _is_of_host(port: str) -> bool:
    """Whether it is an interface of a host, which somebody may take down and up again."""
    return port[0].islower() and not port.startswith(("et-", "xe-", "ge-", "fte-", "swp"))


def _change(line: str) -> tuple[str, str] | None:
    """The port that a line speaks of, and `up` or `down`."""
    if _LIKE["on_purpose"].search(line) is not None or _LIKE["of_kernel"].search(line) is not None:
        return None
    match = next((match for pattern in _CHANGES if (match := pattern.search(line)) is not None), None)
    return (match["port"], "up" if match["to"].lower() in _UP else "down") if match is not None else None
