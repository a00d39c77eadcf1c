"""`ip link`, `ip addr`, with `-s`, `-d`, `-o`, `-br` or `-j`, and `ifconfig`: state, MTU, addresses, counted errors.

    4: ens2np0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 9000 qdisc mq master bond0 state DOWN mode DEFAULT qlen 1000
        link/ether b8:ce:f6:11:22:35 brd ff:ff:ff:ff:ff:ff
        RX:  bytes packets errors dropped  missed   mcast
              1024      12      3       0       0       0
    ens2np0          DOWN           b8:ce:f6:11:22:35 <NO-CARRIER,BROADCAST,MULTICAST,UP>

Formats: iproute2 4.15 to 6.9 (ip/ipaddress.c, print_linkinfo, print_link_stats64); net-tools 2.10 (lib/interface.c).
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from topodiag.evidence.interface import Blob, Parsed, to_int
from topodiag.evidence.json_values import integer, line_of, load, objects, opens_list
from topodiag.evidence.json_values import text as word_of
from topodiag.evidence.network import local_addresses
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.network_records import MARGIN, MOST_OF_A_LIST, Line, NetDevRecord, NetDevSource, Page
from topodiag.lazy import regex
from topodiag.words.hosts import address_of

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
_MAX_INTERFACES = 65_536
_COUNTED = ("bytes", "packets", "errors", "dropped")


class IpLink(NetDevSource):
    """Interfaces as `ip` and `ifconfig` show them."""

    kind = "ip-link"
    trust = 60
    a_piece = "it is often asked for some interfaces"

    def parse(self, blob: Blob) -> Parsed[NetDevRecord]:
        parsed: Parsed[NetDevRecord] = Parsed()
        page = Page(blob, parsed)
        if opens_list(blob.text):
            document, _ = load(blob)
            for _, entry in objects(document, _MAX_INTERFACES):
                _read_entry(blob, parsed, entry)
            return parsed
        records: dict[str, NetDevRecord] = {}
        record: NetDevRecord | None = None
        columns: tuple[str, list[str]] | None = None
        for line in page.lines():
            text = line.text.lstrip(MARGIN).rstrip()
            begun = _begun(line, text, records)
            if begun is not None:
                record, columns = begun, None
            elif (listed := local_addresses.listed(text)) is not None and words.device_name(listed[0]) is not None:
                named = records.setdefault(listed[0], NetDevRecord(listed[0], line.number))
                line.add(named.facts, "addresses", *listed[1])
                record = None
            elif record is None:
                continue
            elif own := local_addresses.addresses_in(text):
                line.add(record.facts, "addresses", *own)
            elif kind := _KIND.match(text):
                line.put(record.facts, "kind", kind[1])
            elif columns is not None and _NUMBERS.match(text):
                _count(line, record, columns, text.split())
                columns = None
            elif (head := _STATS.match(text)) and "bytes" in text and not any(char.isdigit() for char in text):
                columns = head[1].lower(), text.partition(":")[2].split() or text.split()[1:]
        parsed.records.extend(records.values())
        return parsed


def _read_entry(blob: Blob, parsed: Parsed[NetDevRecord], entry: dict[str, Any]) -> None:
    """An interface of `ip -j`."""
    told = {key: word_of(value) or "" for key, value in entry.items()}
    name = words.device_name(told.get("ifname", ""))
    if name is None:
        return
    line = Line(line_of(blob.text, name), " ".join(f"{key} {cell}" for key, cell in list(told.items())[:12] if cell))
    record = NetDevRecord(name, line.number)
    parsed.records.append(record)
    flags = entry.get("flags")
    _fill(
        line, record, {flag for flag in flags if isinstance(flag, str)} if isinstance(flags, list) else set(),
        str(integer(entry.get("mtu")) or ""), told.get("operstate", ""), told.get("master", ""),
    )  # fmt: skip
    if told.get("link_type") in ("ether", "infiniband"):
        line.put(record.facts, "kind", told["link_type"])
    locals_ = [word_of(each.get("local")) for _, each in objects(entry.get("addr_info"), MOST_OF_A_LIST)]
    if own := tuple(address for each in locals_ if each and (address := address_of(each))):
        line.add(record.facts, "addresses", *own)


def _begun(line: Line, text: str, records: dict[str, NetDevRecord]) -> NetDevRecord | None:
    """The interface that a line begins, with what the line says of it."""
    head, brief, old = _HEAD.match(text), _BRIEF.match(text), _IFCONFIG.match(text)
    match = head or brief or old
    if match is None or words.device_name(match[1]) is None:
        return None
    record = records.setdefault(match[1], NetDevRecord(match[1], line.number))
    if head:
        state, master = _STATE.search(head[4]), _MASTER.search(head[4])
        _fill(line, record, {*head[2].split(",")}, head[3], state[1] if state else "", master[1] if master else "")
    elif brief:
        _fill(line, record, {*brief[3].split(",")}, state=brief[2])
    elif old:
        flags = {*old[2].split(",")}
        # net-tools tells a carrier by RUNNING, and none by its absence.
        flags.add("LOWER_UP" if not flags.isdisjoint({"LOWER_UP", "RUNNING"}) else "NO-CARRIER")
        _fill(line, record, flags, old[3], "" if "UP" in flags else "down")
    return record


def _fill(  # noqa: PLR0917 - what the forms of the first line say
    line: Line, record: NetDevRecord, flags: Set[str], mtu: str = "", state: str = "", master: str = ""
) -> None:
    """What the first line of an interface says; "" for what its form leaves out. The kernel tells no carrier of
    interfaces that are not switched on."""
    carrier = "LOWER_UP" in flags and "NO-CARRIER" not in flags
    if "UP" in flags and (carrier or "NO-CARRIER" in flags):
        line.put(record.facts, "carrier", carrier)
    if "LOOPBACK" in flags:
        line.put(record.facts, "kind", "loopback")
    if mtu:
        line.put(record.facts, "mtu", to_int(mtu, low=1, high=2**31))
    if state:
        line.put(record.facts, "operstate", state.lower())
    if master and words.device_name(master):
        line.put(record.facts, "master", master)


def _count(line: Line, record: NetDevRecord, columns: tuple[str, list[str]], cells: list[str]) -> None:
    """Counters by the kernel's names (statistics/rx_errors)."""
    way, names = columns
    for name, cell in zip(names, cells, strict=False):
        if name in _COUNTED:
            line.put(record.counters, f"{way}_{name}", to_int(cell, low=0))
