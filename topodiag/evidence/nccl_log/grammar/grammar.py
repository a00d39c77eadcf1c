"""What one message of NCCL says, as rows of the tables of facts.py.

Many lines are one row each: the patterns of `lines.toml`, whose groups are the row's columns.

SOURCE of the formats: NCCL src/init.cc (`comm %p rank ..`), src/enqueue.cc (`%s: opCount %lx ..`),
src/transport/{p2p,shm,net,coll_net}.cc, src/graph/{rings,connect}.cc; RCCL appends ` comm 0x.. nRanks 08 busId ..` to
most of those of channels.

Lines that are kept as text, and noise, by how they begin and by what they hold: the tables of `texts.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from topodiag.evidence.nccl_log.grammar.numbers import bus, compiled, device, i8, i32, i64, seconds, u64_hex
from topodiag.model.nccl_enums import Algorithm, Protocol
from topodiag.words.own_data import own_data, patterns
from topodiag.words.units import grouped

NOISE = "noise"
"""The kind of a line that is known and says nothing."""

_TABLES = own_data("evidence/nccl_log/grammar/texts")
STARTS: tuple[tuple[str, str], ...] = tuple(
    (start, kind) for kind, starts in _TABLES["starts"].items() for start in starts
)
_PATTERNS = tuple((row["has"], compiled(row["pattern"]), row["kind"]) for row in _TABLES["pattern"])

_WIDTH = min(len(start) for start, _ in STARTS)
_BY_START = grouped((start[:_WIDTH], (start, kind)) for start, kind in sorted(STARTS, key=lambda row: -len(row[0])))

# Numbers that differ on every line and say nothing: queue pairs, keys, file descriptors.
_REWRITTEN = frozenset({"qp", "ib note"})
_LIKE = patterns("evidence/nccl_log/grammar/lines", "pattern", re.ASCII)


def kind_of(message: str) -> str | None:
    """The kind of a line, NOISE, or None where nothing knows it."""
    for start, kind in _BY_START.get(message[:_WIDTH], ()):
        if message.startswith(start):
            return kind
    return next((kind for word, pattern, kind in _PATTERNS if word in message and pattern.search(message)), None)


def kind_of_start(start: str) -> str | None:
    """The kind of all messages that begin so and are kept as printed, None where more of the message decides."""
    for known, kind in _BY_START.get(start[:_WIDTH], ()):
        if start.startswith(known):
            return None if kind in _REWRITTEN else kind
        if known.startswith(start):
            return None
    return None


def shown(kind: str, message: str) -> str:
    """The text as it is kept: equal facts give equal texts."""
    if kind in _REWRITTEN:
        return _LIKE["qp_noise"].sub(lambda match: f"{match[1]} #" if match[1] else "", message).rstrip()
    return message


Rows = list[tuple[str, dict[str, Any]]]
Reader = Callable[[str | None], Any]

_LINES = own_data("evidence/nccl_log/grammar/lines")
_SCHEMAS = own_data("evidence/nccl_log/tables/facts")
_OF_TYPES: dict[str, Reader] = {
    "int8": i8, "int32": i32, "int64": i64, "uint64": u64_hex, "double": seconds, "word": lambda text: text or "",
}  # fmt: skip


def bit(channel: int) -> int:
    """Bit of a channel in a mask; all above 63 share the last."""
    return 1 << min(channel, 63)


_OF_COLUMNS: dict[str, Reader] = {
    "channels": lambda text: bit(i32(text)),
    "bus_id": bus, "dev": device, "peer_dev": device,
    "op_count": lambda text: min(int(text or "0", 16), (1 << 63) - 1),
    "direction": {None: 0, "send": 1, "receive": 2}.__getitem__,
}  # fmt: skip
"""Readers of columns whose numbers are written otherwise than their types say."""


def reader(table: str, column: str) -> Reader:
    """What makes a cell of this column from the text of a line, None where it does not say it."""
    return _OF_COLUMNS.get(column) or _OF_TYPES[{**_SCHEMAS["row"], **_SCHEMAS["rows"][table]}[column]]


@cache
def _forms(table: str, part: str) -> list[tuple[re.Pattern[str], list[tuple[str, Reader]]]]:
    """The patterns of a table's lines, each with its columns."""
    own = [row for row in _LINES["row"] if row["table"] == table and row.get("part", "") == part]
    compiled_rows = [compiled("".join(row["pattern"])) for row in own]
    return [(pattern, [(name, reader(table, name)) for name in pattern.groupindex]) for pattern in compiled_rows]


def row_of(table: str, message: str, part: str = "") -> Rows | None:
    """The row of this table that a message makes, or this part of one; None for a message of another form."""
    for pattern, columns in _forms(table, part):
        if (match := pattern.match(message)) is not None:
            return [(table, {name: read(match[name]) for name, read in columns})]
    return None


UNORDERED = frozenset({"Send", "Recv"})
"""Operations that do not advance opCount."""
_READERS = [(column, words, reader("init", column)) for column, words in _LINES["communicator"].items()]


def communicator(message: str) -> Rows | None:
    """`[Rank 2] ncclCommInitRank comm 0x.. rank 2 nranks 16 .. - Init START` and all older spellings."""
    end = _LIKE["end"].search(message)
    if end and end[1] == "Finalize":
        return []  # Destroy follows
    words = (message[: end.start()] if end else message).split()
    if "comm" not in words[:4]:
        return None
    at = words.index("comm")
    if len(words) < at + 6 or words[at + 2] != "rank" or not _LIKE["pointer"].fullmatch(words[at + 1]):
        return None
    values = dict(zip(words[at + 2 :: 2], words[at + 3 :: 2], strict=False))
    columns = {column: read(next(filter(None, map(values.get, names)), None)) for column, names, read in _READERS}
    if columns["nranks"] < 1 or columns["rank"] < 0:
        return None
    if end:
        event = end[1].lower()
    elif "nNodes" in values:
        event = "member"
    elif at == 0 and (len(words) == 6 or (len(words) == 10 and words[6::2] == ["cudaDev", "nvmlDev"])):
        event = "start"  # 2.3 prints no more, and the first of 2.4 no more than that
    else:
        return None
    func = words[at - 1] if at and words[at - 1].startswith("nccl") else ""
    return [("init", {"ctx": u64_hex(words[at + 1]), "event": event, "func": func, **columns})]


def operation(message: str) -> Rows | None:
    """`AllReduce: opCount 1f sendbuff 0x.. recvbuff 0x.. count 8 datatype 7 op 0 root 0 comm 0x.. [nranks=8] ..`."""
    rows = row_of("op", message)
    for _, columns in rows or ():
        columns["elements"] = max(columns["elements"], 0)
        if columns["func"] in UNORDERED:
            columns["op_count"] = -1
    return rows


_TREES_WHOLE = 930
"""Longer messages may be cut: NCCL builds them in 1024 bytes, head included. The last tree of those is not trusted."""
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
        via = _LIKE["tail"].sub("", via)
    net_dev = proxy = -1
    network = _LIKE["network"].match(via)
    if network:
        via, net_dev, proxy = network[1] + network[4], i32(network[2]), i32(network[3])
    elif via.startswith("P2P/indirect/"):
        indirect = _LIKE["indirect"].match(via)
        if not indirect:
            return None
        via, proxy = "P2P/indirect" + indirect[2], i32(indirect[1])
    elif via.startswith("direct shared memory"):
        via = "SHM/direct"
    elif not _LIKE["direct"].match(via):
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
    tokens = _LIKE["trees"].findall(message)
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
    matched = _LIKE["order"].match(message)
    if not matched:
        return None
    ranks = matched[3].split()
    cut = matched[4] is not None
    if not cut and len(ranks) == _ORDER_RANKS:
        cut = bool(_LIKE["old_order"].search(matched[3])) or any(len(rank) > 2 for rank in ranks)
    if matched[4] and matched[4][0] != " " and len(ranks) > 1:
        ranks = ranks[:-1]  # the dots stand over the rest of a number
    numbers = " ".join(str(int(rank)) for rank in ranks)
    return [("order", {"channel": i32(matched[1]), "nchannels": i32(matched[2]), "ranks": numbers, "cut": cut})]


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


START = 16
"""Characters that `kind_by_start` judges by."""

_PRINTED = patterns("evidence/nccl_log/grammar/system_print", "row", re.ASCII)


def _print(message: str) -> Rows | None:
    return [("print", {"text": message})] if _PRINTED["any"].match(message) else None


_channel_counts = partial(row_of, "channels")

_BY_WORD: dict[str, Callable[[str], Rows | None]] = {
    "Channel": channel,
    "Ring": ring,
    "CollNet": connection,
    "Coll": connection,
    "Tree": partial(row_of, "tree"),
    "Trees": trees,
    "Init": partial(row_of, "timing"),
    "comm": communicator,
    "[Rank": communicator,
}


def parse(level: str, message: str) -> Rows | None:
    """Rows as (table, columns); [] for known noise, None for what nothing understands.

    Columns are those of the table without place and count. `ctx` is among them where the line names the communicator
    itself (`init`, `op`), `op_count` where an operation has one. Place, label and times of an event are its record's.
    ATTN, of 2.32 and later, is a notice and never an error: what nothing understands of it is noise.
    """
    if level in ("WARN", "ABORT"):
        return [("event", {"level": "WARN", "text": message})]
    if level == "CALL":
        return []
    rows = _information(message)
    return [] if rows is None and level in ("TRACE", "ATTN") else rows


def _information(message: str) -> Rows | None:
    word = message.partition(" ")[0]
    for reader in (_BY_WORD[word],) if word in _BY_WORD else _readers(word):
        if (rows := reader(message)) is not None:
            return rows
    return _retries(message, word) if word not in _BY_WORD or word in ("comm", "Init", "CollNet") else None


def _readers(word: str) -> Iterator[Callable[[str], Rows | None]]:
    """Who may know a message whose first word this is."""
    if word.endswith(":"):
        yield from (operation, choice)
    elif word.startswith("comm:"):
        yield _channel_counts
    elif word.startswith("ncclComm"):
        yield communicator
    elif word.isdecimal():
        yield from (_channel_counts, choice)
    yield _print


def kind_by_start(start: str) -> str | None:
    """The kind of all messages that begin with these START characters and are kept as they are, NOISE, or None where
    the beginning does not decide. Spares messages that differ in numbers only from being read one by one."""
    word, blank, _ = start.partition(" ")
    if not blank or not word or word in _BY_WORD or word.endswith(":") or word.startswith("ncclComm"):
        return None
    if word.isdecimal() or _PRINTED["begin"].match(start):
        return None
    return kind_of_start(start)


def _retries(message: str, word: str) -> Rows | None:
    if not message.strip():
        return []
    kind = kind_of(message)
    if kind is not None:
        return [] if kind == NOISE else [("text", {"kind": kind, "text": shown(kind, message)})]
    if ":" in word:
        of_file = _LIKE["of_file"].match(message)
        if of_file and of_file[2]:
            return [("event", {"level": "UNWIND", "place": of_file[1], "text": message})]
        if of_file:
            return [("text", {"kind": "retry", "text": message})] if of_file[3] else []
    return None
