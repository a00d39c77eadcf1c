"""`ip link`, `ip addr`, with `-s`, `-d`, `-o`, `-br` or `-j`, and `ifconfig`: state, MTU, addresses, counted errors.

    4: ens2np0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 9000 qdisc mq master bond0 state DOWN mode DEFAULT qlen 1000
        link/ether b8:ce:f6:11:22:35 brd ff:ff:ff:ff:ff:ff
        inet 10.24.6.50/24 brd 10.24.6.255 scope global ens2np0
        RX:  bytes packets errors dropped  missed   mcast
              1024      12      3       0       0       0
    ens2np0          DOWN           b8:ce:f6:11:22:35 <NO-CARRIER,BROADCAST,MULTICAST,UP>
    ens2np0          DOWN           10.24.6.50/24 fe80::6abf:1%ens2np0/64
    4: ens2np0    inet 10.24.6.50/24 brd 10.24.6.255 scope global ens2np0

Formats: iproute2 4.15 to 6.9 (ip/ipaddress.c, print_linkinfo, print_link_stats64, print_addrinfo); net-tools 1.60 and
2.10 (lib/interface.c, lib/inet.c).
"""

from __future__ import annotations

from collections.abc import Set
from itertools import pairwise
from typing import Any

from topodiag.evidence.draft import Entity
from topodiag.evidence.interface import to_int
from topodiag.evidence.json_values import integer, line_of, load, objects, opens_list
from topodiag.evidence.json_values import text as word_of
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.page import MARGIN, MOST_OF_A_LIST, Line, OfPage, Page
from topodiag.words.hosts import address_of
from topodiag.words.own_data import patterns

_LIKE = patterns("evidence/network/lines", "ip")
_MAX_INTERFACES = 65_536
_COUNTED = ("bytes", "packets", "errors", "dropped")


class IpLink(OfPage):
    """Interfaces as `ip` and `ifconfig` show them."""

    def read_page(self, page: Page) -> None:
        if opens_list(page.blob.text):
            document, _ = load(page.blob)
            for _, entry in objects(document, _MAX_INTERFACES):
                _read_entry(page, entry)
            return
        entity: Entity | None = None
        way, columns = "", list[str]()
        for line in page.lines():
            text = line.text.lstrip(MARGIN).rstrip()
            if (begun := _begun(line, text)) is not None:
                entity, columns = begun, []
            elif (listed := _listed(text)) is not None:
                line.add(page.draft.netdev(listed[0]), "addresses", *listed[1])
                entity = None
            elif entity is None:
                continue
            elif own := _address(text):
                line.add(entity, "addresses", own)
            elif text.startswith(("link/ether", "link/infiniband", "link/loopback")):
                line.offer(entity, "kind", text.split()[0].removeprefix("link/"))
            elif columns and all(map(str.isdecimal, text.split())):
                # Counters by the kernel's names (statistics/rx_errors).
                for name, cell in zip(columns, text.split(), strict=False):
                    if name in _COUNTED:
                        line.count(entity, f"{way}_{name}", to_int(cell, low=0))
                columns = []
            elif text.startswith(("RX", "TX")) and "bytes" in text and not any(char.isdigit() for char in text):
                way, columns = text[:2].lower(), text[2:].lstrip(":").split()


def _read_entry(page: Page, entry: dict[str, Any]) -> None:
    """An interface of `ip -j`."""
    cells = {key: word_of(value) or "" for key, value in entry.items()}
    name = words.device_name(cells.get("ifname", ""))
    if name is None:
        return
    quote = " ".join(f"{key} {cell}" for key, cell in list(cells.items())[:12] if cell)
    line, entity = Line(page, line_of(page.blob.text, name), quote), page.draft.netdev(name)
    flags = entry.get("flags")
    _fill(
        line, entity, {flag for flag in flags if isinstance(flag, str)} if isinstance(flags, list) else set(),
        str(integer(entry.get("mtu")) or ""), cells.get("operstate", ""), cells.get("master", ""),
    )  # fmt: skip
    if cells.get("link_type") in ("ether", "infiniband"):
        line.offer(entity, "kind", cells["link_type"])
    locals_ = [word_of(item.get("local")) for _, item in objects(entry.get("addr_info"), MOST_OF_A_LIST)]
    if own := tuple(address for item in locals_ if item and (address := address_of(item))):
        line.add(entity, "addresses", *own)


def _begun(line: Line, text: str) -> Entity | None:
    """The interface that a line begins, with what the line says of it."""
    head, brief = _LIKE["head"].match(text), _LIKE["brief"].match(text)
    if head is not None and words.device_name(head[1]):
        entity, flags = line.page.draft.netdev(head[1]), set(head[3].split(","))
        cells = text[head.end() :].split()
        named = dict(pairwise(cells))
        if head[2]:
            # net-tools tells a carrier by RUNNING, and none by its absence.
            flags.add("LOWER_UP" if not flags.isdisjoint({"LOWER_UP", "RUNNING"}) else "NO-CARRIER")
            named = {} if "UP" in flags else {"state": "down"}
        _fill(line, entity, flags, head[4], named.get("state", ""), named.get("master", ""))
        return entity
    if brief is not None and words.device_name(brief[1]) and brief[3]:
        entity = line.page.draft.netdev(brief[1])
        _fill(line, entity, set(brief[3].split(",")), state=brief[2])
        return entity
    return None


def _fill(  # noqa: PLR0917 - what the forms of the first line say
    line: Line, entity: Entity, flags: Set[str], mtu: str = "", state: str = "", master: str = ""
) -> None:
    """What the first line of an interface says; "" for what its form leaves out. The kernel tells no carrier of
    interfaces that are not switched on."""
    carrier = "LOWER_UP" in flags and "NO-CARRIER" not in flags
    if "UP" in flags and (carrier or "NO-CARRIER" in flags):
        line.offer(entity, "carrier", carrier)
    if "LOOPBACK" in flags:
        line.offer(entity, "kind", "loopback")
    if mtu:
        line.offer(entity, "mtu", to_int(mtu, low=1, high=2**31))
    if state:
        line.offer(entity, "operstate", state.lower())
    if master and words.device_name(master):
        line.offer(entity, "master", master)


def _listed(text: str) -> tuple[str, list[str]] | None:
    """Interface and addresses of a line that stands for itself (`-o`, `-br`); None for another line."""
    if (match := _LIKE["one_line"].match(text)) is not None:
        addresses = [_address(match[2])]
    elif (match := _LIKE["brief"].match(text)) is not None:
        addresses = [address_of(cell.partition("/")[0]) for cell in (match[4] or "").split()]
    return (match[1], addresses) if match is not None and words.device_name(match[1]) and all(addresses) else None


def _address(text: str) -> str:
    """The address of one line of a block, "" for another line."""
    match = _LIKE["inet"].match(text)
    return address_of(match[1]) if match else ""
