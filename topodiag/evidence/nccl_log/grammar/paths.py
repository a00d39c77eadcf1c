"""Who talks to whom and how: connections, rings, trees, orders, channel counts, choices.

SOURCE: NCCL src/transport/{p2p,shm,net,coll_net}.cc, src/init.cc, src/graph/{rings,connect}.cc, src/enqueue.cc; RCCL
appends ` comm 0x.. nRanks 08 busId ..` to most of these.
"""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar.comm import Rows
from topodiag.evidence.nccl_log.grammar.numbers import compiled, device, i32, i64
from topodiag.model.nccl_enums import Algorithm, Protocol

_CONNECTION = compiled(
    r"(?:Channel|Ring|CollNet|Coll) (\d{1,4})(?:/(\d{1,4}))? : (\d{1,9})(?:\[([0-9a-fA-F]{1,16})\])? "
    r"(?:-> (\d{1,9})(?:\[([0-9a-fA-F]{1,16})\])? )?(?:\[(send|receive)\] )?via (\S.*)"
)
_TAIL = compiled(r" comm (?:0x)?[0-9a-f]+ nRanks .*$")
_NETWORK = compiled(
    r"((?:COLL)?NET/.+?)/(-?\d{1,9})(?:\((\d{1,9})\))?((?:/GDRDMA(?:\(PCI\))?)?(?:/GDCopy)?(?:/Shared)?)"
    r"(?:/flush=\w{1,20})?$"
)
"""Receiving ends of 2.31 say how they flush, src/transport/net.cc: the transport is that of the sending end."""
_INDIRECT = compiled(r"P2P/indirect/(\d{1,9})\[[0-9a-fA-F]{1,16}\]((?:/read)?)$")
_DIRECT = compiled(r"(?:P2P|SHM)/[A-Za-z]+(?: (?:pointer|device))?(?:/[A-Za-z]+){0,3}$")
_DIRECTIONS = {None: 0, "send": 1, "receive": 2}

_RING = compiled(r"Ring (\d{1,4}) : (\d{1,9}) -> (\d{1,9}) -> (\d{1,9})\b")
_TREE = compiled(r"Tree (\d{1,4}) : (-?\d{1,9}) -> (-?\d{1,9}) -> (-?\d{1,9})/(-?\d{1,9})/(-?\d{1,9})\b")
_TREES = compiled(r"\[(\d{1,4})\] (\S+)")
_NODE = r"(-?\d{1,9})"
_DOWN = rf"{_NODE}/{_NODE}(?:/{_NODE})?"
_DOWN_FIRST = compiled(rf"{_DOWN}->{_NODE}->{_NODE}")
_UP_FIRST = compiled(rf"{_NODE}->{_NODE}->{_DOWN}")
_TREES_WHOLE = 930
"""Longer messages may be cut: NCCL builds them in 1024 bytes, head included. The last tree of those is not trusted."""

_ORDER = compiled(r"Channel (\d{1,4})(?:/(\d{1,4}))? :((?:\s+\d{1,9})+)( *\.{3}|\d*\.{3})?$")
_OLD_FORMAT = compiled(r"  \d\d\b")
_ORDER_RANKS = 20
_CHANNELS = compiled(
    r"(\d{1,6}) coll channels, (?:(\d{1,6}) collnet channels, )?(?:(\d{1,6}) nvls channels, )?"
    r"(\d{1,6}) p2p channels, (\d{1,6}) p2p channels per peer"
)
_RCCL_CHANNELS = compiled(
    r"comm:(?:0x)?[0-9a-fA-F]{1,16}, nRanks:\d{1,9}, (?:nNodes:\d{1,9}, )?coll channels:(\d{1,6}),? "
    r"collnet channels:(\d{1,6}), nvls channels:(\d{1,6}), p2p channels:(\d{1,6}), p2p channels per peer:(\d{1,6})"
)
"""RCCL 2.27 and later, src/init.cc."""
_CHOICE = compiled(
    r"(?:(\w{1,40}): )?(\d{1,19}) Bytes -> Algo (\w{1,40}) proto (\w{1,40})"
    r"(?: time (?:[-\d.e+]+|inf|-?nan))?(?: channel\{Lo\.\.Hi\}=\{(\d{1,6})\.\.(\d{1,6})\})?"
)
_ALGORITHMS = tuple(algorithm.name for algorithm in Algorithm)
_PROTOCOLS = tuple(protocol.name for protocol in Protocol)


def bit(channel: int) -> int:
    """Bit of a channel in a mask; all above 63 share the last."""
    return 1 << min(channel, 63)


def connection(message: str) -> Rows | None:
    matched = _CONNECTION.match(message)
    if not matched:
        return None
    channel, conn, rank, dev, peer, peer_dev, direction, via = matched.groups()
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
    columns: dict[str, object] = {
        "rank": i32(rank),
        "dev": device(dev),
        "peer": i32(peer),
        "peer_dev": device(peer_dev),
        "channels": bit(int(channel)),
        "conn": min(int(conn), 127) if conn else -1,
        "direction": _DIRECTIONS[direction],
        "via": via,
        "net_dev": net_dev,
        "proxy": proxy,
    }
    return [("conn", columns)]


def channel(message: str) -> Rows | None:
    """Lines that open with `Channel`: connections far more often than orders."""
    return connection(message) or order(message)


def ring(message: str) -> Rows | None:
    """`Ring 00 : 3 -> 0 -> 1`, or a connection before 2.7, or the order of all ranks before 2.4."""
    matched = _RING.match(message)
    if not matched:
        return connection(message) or order(f"Channel{message[4:]}")
    number, previous, rank, following = (int(part) for part in matched.groups())
    return [("ring", {"prev": previous, "rank": rank, "next": following, "channels": bit(number)})]


def tree(message: str) -> Rows | None:
    matched = _TREE.match(message)
    if not matched:
        return None
    number, up, rank, *downs = (int(part) for part in matched.groups())
    return [_tree_row(up, rank, downs, bit(number), second=0)]


def _tree_row(up: int, rank: int, downs: list[int], channels: int, second: int) -> tuple[str, dict[str, object]]:
    d0, d1, d2 = (*downs, -1)[:3]
    return (
        "tree",
        {"up": up, "rank": rank, "d0": d0, "d1": d1, "d2": d2, "channels": channels, "second": second},
    )


def trees(message: str) -> Rows | None:
    """All trees of one line; equal ones are one row. 2.5 to 2.7 print the up tree, `|`, and the down tree."""
    tokens = _TREES.findall(message)
    if len(message) >= _TREES_WHOLE:
        tokens = tokens[:-1]
    shapes: dict[str, int] = {}  # most channels have one of two
    for number, shape in tokens:
        shapes[shape] = shapes.get(shape, 0) | bit(int(number))
    masks: dict[tuple[int, int, tuple[int, ...], int], int] = {}
    for shape, mask in shapes.items():
        for second, part in enumerate(shape.split("|")[:2]):
            if (read := _one_tree(part)) is not None:
                masks[*read, second] = masks.get((*read, second), 0) | mask
    if not masks:
        return None
    return [_tree_row(up, rank, list(downs), mask, second) for (up, rank, downs, second), mask in masks.items()]


def _one_tree(part: str) -> tuple[int, int, tuple[int, ...]] | None:
    matched = _DOWN_FIRST.fullmatch(part)
    if matched:
        d0, d1, d2, rank, up = (-1 if word is None else int(word) for word in matched.groups())
        return up, rank, (d0, d1, d2)
    matched = _UP_FIRST.fullmatch(part)
    if matched:
        up, rank, d0, d1, d2 = (-1 if word is None else int(word) for word in matched.groups())
        return up, rank, (d0, d1, d2)
    return None


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


def channel_counts(message: str) -> Rows | None:
    matched = _CHANNELS.match(message) or _RCCL_CHANNELS.match(message)
    if not matched:
        return None
    coll, collnet, nvls, p2p, per_peer = (i32(part) for part in matched.groups())
    return [("channels", {"coll": coll, "collnet": collnet, "nvls": nvls, "p2p": p2p, "per_peer": per_peer})]


def choice(message: str) -> Rows | None:
    matched = _CHOICE.match(message)
    if not matched:
        return None
    func, size, algorithm, protocol, low, high = matched.groups()
    columns: dict[str, object] = {
        "func": func or "",
        "bytes": i64(size),
        "algo": _name_of(algorithm, _ALGORITHMS),
        "proto": _name_of(protocol, _PROTOCOLS),
        "lo": i32(low),
        "hi": i32(high),
    }
    return [("choice", columns)]


def _name_of(word: str, names: tuple[str, ...]) -> str:
    """Before 2.24 the number of an algorithm or protocol (src/include/nccl_common.h)."""
    if word.isdecimal():
        return names[int(word)] if len(word) < 3 and int(word) < len(names) else word
    return word.upper()
