"""`ip link`, `ip addr`, with `-s`, `-d`, `-o`, `-br` or `-j`, and `ifconfig`: state, MTU, addresses, counted errors.

    4: ens2np0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 9000 qdisc mq master bond0 state DOWN mode DEFAULT qlen 1000
        link/ether b8:ce:f6:11:22:35 brd ff:ff:ff:ff:ff:ff
        RX:  bytes packets errors dropped  missed   mcast
              1024      12      3       0       0       0
    ens2np0          DOWN           b8:ce:f6:11:22:35 <NO-CARRIER,BROADCAST,MULTICAST,UP>

Formats: iproute2 4.15 to 6.9 (ip/ipaddress.c, print_linkinfo, print_link_stats64); net-tools 2.10 (lib/interface.c).

/proc/net/bonding: a bond and the state of each of its members, as `cat` shows it.

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
from collections.abc import Set

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source, to_int
from topodiag.evidence.json_values import opens_list
from topodiag.evidence.network import local_addresses
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import Line, NetDevRecord, Page, fill_netdev
from topodiag.evidence.network.sys_net import speed_mbps
from topodiag.lazy import dataclass, regex
from topodiag.model.topics import Topic

_MARGIN = " \t>|"
_HEAD = regex(r"\d{1,6}: ([^\s:@]{1,15})(?:@[^\s:]{1,20})?: <([A-Z0-9_,-]{0,200})> mtu (\d{1,9})\b(.{0,400})")
_BRIEF = regex(
    r"([^\s:@]{1,15})(?:@\S{1,20})?\s{1,20}(UP|DOWN|UNKNOWN|LOWERLAYERDOWN|DORMANT|NOTPRESENT)\s{1,20}"
    r"(?:[0-9a-f]{2}:[0-9a-f:]{10,60})?\s{0,4}<([A-Z0-9_,-]{1,200})>\s*\Z"
)
_IFCONFIG = regex(r"([^\s:]{1,15}): flags=\d{1,6}<([A-Z0-9_,]{0,200})>\s{1,8}mtu (\d{1,9})")
_STATE = regex(r"\bstate ([A-Z]{2,20})\b")
_MASTER = regex(r"\bmaster (\S{1,15})")
_KIND = regex(r"link/(ether|infiniband|loopback)\b")
_STATS = regex(r"(RX|TX):? {1,8}(?:bytes|errors)? {0,8}.{0,120}")
_NUMBERS = regex(r"\d{1,20}(?:\s{1,40}\d{1,20}){3,8}\s*\Z")
_MARK = regex(
    r"^[ \t>|]{0,20}(?:\d{1,6}: [^\s:]{1,40}: <[A-Z0-9_,-]{0,200}> mtu \d"
    r"|[^\s:]{1,15}: flags=\d{1,6}<[A-Z0-9_,]{0,200}>"
    r"\s{1,8}mtu \d)",
    re.MULTILINE,
)
_BRIEF_MARK = regex(
    r"^[ \t>|]{0,20}[^\s:@]{1,15}(?:@\S{1,20})?[ \t]{1,20}(?:UP|DOWN|UNKNOWN|LOWERLAYERDOWN|DORMANT|NOTPRESENT)"
    r"[ \t]{1,20}(?:[0-9a-f]{2}:[0-9a-f:]{10,60})?[ \t]{0,4}<[A-Z0-9_,-]{1,200}>[ \t]*$",
    re.MULTILINE,
)
_COUNTED = ("bytes", "packets", "errors", "dropped")


class IpLink(Source[NetDevRecord]):
    """Interfaces as `ip` and `ifconfig` show them."""

    kind = "ip-link"
    speaks_of = frozenset({Topic.INTERFACES})
    trust = 60
    a_piece = "it is often asked for some interfaces"

    def recognises(self, head: str) -> bool:
        marks = (_MARK, _BRIEF_MARK, local_addresses.MARK)
        return local_addresses.is_json(head) or any(mark.search(head) is not None for mark in marks)

    def parse(self, blob: Blob) -> Parsed[NetDevRecord]:
        parsed: Parsed[NetDevRecord] = Parsed()
        page = Page(blob, parsed)
        if opens_list(blob.text):
            _read_json(blob, parsed)
            return parsed
        found: dict[str, NetDevRecord] = {}
        record: NetDevRecord | None = None
        columns: tuple[str, list[str]] | None = None
        for line in page.lines():
            text = line.text.lstrip(_MARGIN).rstrip()
            begun = _begun(line, text, found)
            if begun is not None:
                record, columns = begun, None
            elif (listed := local_addresses.listed(text)) is not None and words.device_name(listed[0]) is not None:
                local_addresses.add(line, found.setdefault(listed[0], NetDevRecord(listed[0], line.number)), listed[1])
                record = None
            elif record is None:
                continue
            elif own := local_addresses.addresses_in(text):
                local_addresses.add(line, record, own)
            elif kind := _KIND.match(text):
                line.put(record.facts, "kind", kind[1])
            elif columns is not None and _NUMBERS.match(text):
                _count(line, record, columns, text.split())
                columns = None
            elif (head := _STATS.match(text)) and "bytes" in text and not any(char.isdigit() for char in text):
                columns = head[1].lower(), text.partition(":")[2].split() or text.split()[1:]
        parsed.records.extend(found.values())
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[NetDevRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            fill_netdev(blob, record, draft)


def _read_json(blob: Blob, parsed: Parsed[NetDevRecord]) -> None:
    parsed.lines = blob.text.count("\n") + 1
    for line, entry in local_addresses.entries_of(blob.text):
        name = words.device_name(entry["ifname"])
        if name is None:
            continue
        record = NetDevRecord(name, line.number)
        flags, mtu, state = entry.get("flags"), entry.get("mtu"), entry.get("operstate")
        told = frozenset(each for each in flags if isinstance(each, str)) if isinstance(flags, list) else frozenset()
        master, kind = entry.get("master"), entry.get("link_type")
        first = _First(
            name,
            told,
            _carrier(told),
            str(mtu) if isinstance(mtu, int) else "",
            state if isinstance(state, str) else "",
            master if isinstance(master, str) else "",
        )
        _fill(line, first, record)
        if kind in ("ether", "infiniband"):
            line.put(record.facts, "kind", kind)
        if own := local_addresses.of_entry(entry):
            local_addresses.add(line, record, own)
        parsed.records.append(record)


@dataclass(frozen=True, slots=True)
class _First:
    """What the first line of an interface says, "" for what its form leaves out. `carrier` is None where the kernel
    does not tell it: of interfaces that are not switched on."""

    name: str
    flags: frozenset[str]
    carrier: bool | None
    mtu: str = ""
    state: str = ""
    master: str = ""


def _first(text: str) -> _First | None:
    if head := _HEAD.match(text):
        state, master = _STATE.search(head[4]), _MASTER.search(head[4])
        flags = frozenset(head[2].split(","))
        return _First(head[1], flags, _carrier(flags), head[3], state[1] if state else "", master[1] if master else "")
    if brief := _BRIEF.match(text):
        flags = frozenset(brief[3].split(","))
        return _First(brief[1], flags, _carrier(flags), state=brief[2])
    if old := _IFCONFIG.match(text):
        flags = frozenset(old[2].split(","))
        carrier = "NO-CARRIER" not in flags and not flags.isdisjoint({"LOWER_UP", "RUNNING"})
        is_up = "UP" in flags
        return _First(old[1], flags, carrier if is_up else None, old[3], "" if is_up else "down")
    return None


def _carrier(flags: Set[str]) -> bool | None:
    carrier = "LOWER_UP" in flags and "NO-CARRIER" not in flags
    return carrier if "UP" in flags and (carrier or "NO-CARRIER" in flags) else None


def _begun(line: Line, text: str, found: dict[str, NetDevRecord]) -> NetDevRecord | None:
    """The interface that a line begins, with what the line says of it."""
    first = _first(text)
    if first is None or words.device_name(first.name) is None:
        return None
    record = found.setdefault(first.name, NetDevRecord(first.name, line.number))
    _fill(line, first, record)
    return record


def _fill(line: Line, first: _First, record: NetDevRecord) -> None:
    if first.carrier is not None:
        line.put(record.facts, "carrier", first.carrier)
    if "LOOPBACK" in first.flags:
        line.put(record.facts, "kind", "loopback")
    if first.mtu:
        line.put(record.facts, "mtu", to_int(first.mtu, low=1, high=2**31))
    if first.state:
        line.put(record.facts, "operstate", first.state.lower())
    if first.master and words.device_name(first.master):
        line.put(record.facts, "master", first.master)


def _count(line: Line, record: NetDevRecord, columns: tuple[str, list[str]], cells: list[str]) -> None:
    """Counters by the kernel's names (statistics/rx_errors)."""
    way, names = columns
    for name, cell in zip(names, cells, strict=False):
        if name in _COUNTED:
            line.put(record.counters, f"{way}_{name}", to_int(cell, low=0))


_BONDING_MARK = regex(r"^[ \t>|]{0,20}Slave Interface: \S{1,15}[ \t]*\n[ \t>|]{0,20}MII Status: \w", re.MULTILINE)
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
        return _BONDING_MARK.search(head) is not None

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
