"""Who talks to whom and how: connections, rings, trees, orders, channel counts, choices.

SOURCE: NCCL src/transport/{p2p,shm,net,coll_net}.cc, src/init.cc, src/graph/{rings,connect}.cc, src/enqueue.cc; RCCL
appends ` comm 0x.. nRanks 08 busId ..` to most of these.
"""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar.lines import Rows, bit, row_of
from topodiag.evidence.nccl_log.grammar.numbers import compiled, i32
from topodiag.model.nccl_enums import Algorithm, Protocol

_TAIL = compiled(r" comm (?:0x)?[0-9a-f]+ nRanks .*$")
_NETWORK = compiled(
    r"((?:COLL)?NET/.+?)/(-?\d{1,9})(?:\((\d{1,9})\))?((?:/GDRDMA(?:\(PCI\))?)?(?:/GDCopy)?(?:/Shared)?)"
    r"(?:/flush=\w{1,20})?$"
)
"""Receiving ends of 2.31 say how they flush, src/transport/net.cc: the transport is that of the sending end."""
_INDIRECT = compiled(r"P2P/indirect/(\d{1,9})\[[0-9a-fA-F]{1,16}\]((?:/read)?)$")
_DIRECT = compiled(r"(?:P2P|SHM)/[A-Za-z]+(?: (?:pointer|device))?(?:/[A-Za-z]+){0,3}$")

_TREES = compiled(r"\[(\d{1,4})\] (\S+)")
_TREES_WHOLE = 930
"""Longer messages may be cut: NCCL builds them in 1024 bytes, head included. The last tree of those is not trusted."""

_ORDER = compiled(r"Channel (\d{1,4})(?:/(\d{1,4}))? :((?:\s+\d{1,9})+)( *\.{3}|\d*\.{3})?$")
_OLD_FORMAT = compiled(r"  \d\d\b")
_ORDER_RANKS = 20
_ALGORITHMS = tuple(algorithm.name for algorithm in Algorithm)
_PROTOCOLS = tuple(protocol.name for protocol in Protocol)


def connection(message: str) -> Rows | None:
    rows = row_of("conn", message)
    if rows is None:
        return None
    columns = rows[0][1]
    via = columns["via"]
    if " comm " in via:
        via = _TAIL.sub("", via)
    net_dev = proxy = -1
    network = _NETWORK.match(via)
    if network:
        via, net_dev, proxy = network[1] + network[4], i32(network[2]), i32(network[3])
    elif via.startswith("P2P/indirect/"):
        indirect = _INDIRECT.match(via)
        if not indirect:
            return None
        via, proxy = "P2P/indirect" + indirect[2], i32(indirect[1])
    elif via.startswith("direct shared memory"):
        via = "SHM/direct"
    elif not _DIRECT.match(via):
        return None
    return [("conn", {**columns, "via": via, "net_dev": net_dev, "proxy": proxy})]


def channel(message: str) -> Rows | None:
    """Lines that open with `Channel`: connections far more often than orders."""
    return connection(message) or order(message)


def ring(message: str) -> Rows | None:
    """`Ring 00 : 3 -> 0 -> 1`, or a connection before 2.7, or the order of all ranks before 2.4."""
    return row_of("ring", message) or connection(message) or order(f"Channel{message[4:]}")


def trees(message: str) -> Rows | None:
    """All trees of one line; equal ones are one row. 2.5 to 2.7 print the up tree, `|`, and the down tree."""
    tokens = _TREES.findall(message)
    if len(message) >= _TREES_WHOLE:
        tokens = tokens[:-1]
    shapes: dict[str, int] = {}  # most channels have one of two
    for number, shape in tokens:
        shapes[shape] = shapes.get(shape, 0) | bit(int(number))
    masks: dict[tuple[tuple[str, int], ...], int] = {}
    for shape, mask in shapes.items():
        for second, part in enumerate(shape.split("|")[:2]):
            for _, columns in row_of("tree", part, "of trees") or ():
                tree = (*columns.items(), ("second", second))
                masks[tree] = masks.get(tree, 0) | mask
    return [("tree", {**dict(tree), "channels": mask}) for tree, mask in masks.items()] or None


def order(message: str) -> Rows | None:
    """`Channel 00/16 :    0   1   2`. Before 2.23 NCCL stops after 20 ranks and says nothing."""
    matched = _ORDER.match(message)
    if not matched:
        return None
    ranks = matched[3].split()
    cut = matched[4] is not None
    if not cut and len(ranks) == _ORDER_RANKS:
        cut = bool(_OLD_FORMAT.search(matched[3])) or any(len(rank) > 2 for rank in ranks)
    if matched[4] and matched[4][0] != " " and len(ranks) > 1:
        ranks = ranks[:-1]  # the dots stand over the rest of a number
    columns: dict[str, object] = {
        "channel": i32(matched[1]),
        "nchannels": i32(matched[2]),
        "ranks": " ".join(str(int(rank)) for rank in ranks),
        "cut": cut,
    }
    return [("order", columns)]


def choice(message: str) -> Rows | None:
    rows = row_of("choice", message)
    for _, columns in rows or ():
        columns["algo"] = _name_of(columns["algo"], _ALGORITHMS)
        columns["proto"] = _name_of(columns["proto"], _PROTOCOLS)
    return rows


def _name_of(word: str, names: tuple[str, ...]) -> str:
    """Before 2.24 the number of an algorithm or protocol (src/include/nccl_common.h)."""
    if word.isdecimal():
        return names[int(word)] if len(word) < 3 and int(word) < len(names) else word
    return word.upper()
