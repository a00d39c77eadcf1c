"""/proc/net/bonding: a bond and the state of each of its members, as `cat` shows it.

    Ethernet Channel Bonding Driver: v5.15.0-91-generic
    Bonding Mode: IEEE 802.3ad Dynamic link aggregation
    MII Status: up
    Slave Interface: ens1f1np1
    MII Status: down
    Speed: Unknown
    Link Failure Count: 3

Format: Linux drivers/net/bonding/bond_procfs.c. The bond's own name stands in the command alone.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source, to_int
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import NetDevRecord, Page, fill_netdev
from topodiag.evidence.network.sys_net import speed_mbps
from topodiag.lazy import regex
from topodiag.model.topics import Topic

_MARK = regex(r"^[ \t>|]{0,20}Slave Interface: \S{1,15}[ \t]*\n[ \t>|]{0,20}MII Status: \w", re.MULTILINE)
_PATH = regex(r"/proc/net/bonding/([A-Za-z0-9_.-]{1,15})(?:\s|:|\Z)")
_DRIVER = regex(r"Ethernet Channel Bonding Driver: ")
_FIELD = regex(r"([A-Z][A-Za-z ]{2,40}): (.{1,100})\Z")
UNNAMED = "bond"
"""Stands for a bond whose name the text does not tell."""


class Bonding(Source[NetDevRecord]):
    """Members of bonds, each with its bond and the state that the bond sees."""

    kind = "bonding"
    speaks_of = frozenset({Topic.INTERFACES})
    trust = 70
    a_piece = "it tells of bonds alone"

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[NetDevRecord]:
        parsed: Parsed[NetDevRecord] = Parsed()
        page = Page(blob, parsed)
        bond, number = UNNAMED, 0
        member: NetDevRecord | None = None
        before = text = ""
        for line in page.lines():
            before = text or before
            text = line.text.strip(" \t>|")
            if path := _PATH.search(text):
                bond, member = path[1], None
            elif _DRIVER.search(text):
                # A second bond without a command before it is another one, and has no name either.
                number += 1
                bond = bond if number == 1 or _PATH.search(before) else f"{UNNAMED} {number}"
                member = None
            elif field := _FIELD.match(text):
                name, value = field[1], field[2].strip()
                if name == "Slave Interface" and words.device_name(value):
                    member = NetDevRecord(value, line.number)
                    parsed.records.append(member)
                    line.put(member.facts, "master", bond)
                    line.put(member.facts, "kind", "ether")
                elif member is not None and name == "MII Status":
                    line.put(member.facts, "operstate", "up" if value == "up" else "down")
                    line.put(member.facts, "carrier", value == "up")
                elif member is not None and name == "Speed":
                    line.put(member.facts, "speed_mbps", speed_mbps(value), "the bond sees no speed")
                elif member is not None and name == "Link Failure Count":
                    line.put(member.counters, "link_failures", to_int(value, low=0))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[NetDevRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_netdev(blob, record, draft)
