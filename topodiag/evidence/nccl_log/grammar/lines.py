"""Lines that are one row of a table of facts each: the patterns of `lines.toml`, whose groups are the row's columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from topodiag.evidence.nccl_log.grammar.numbers import bus, compiled, device, i8, i32, i64, seconds, u64_hex
from topodiag.words.own_data import own_data

Rows = list[tuple[str, dict[str, Any]]]
Reader = Callable[[str | None], Any]

WORDS: Mapping[str, Sequence[str]] = own_data("evidence/nccl_log/grammar/lines")["communicator"]
"""In front of the values of a line about a communicator, by the column that they fill."""

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
    own = _OF_COLUMNS.get(column)
    return own if own is not None else _OF_TYPES[{**_SCHEMAS["row"], **_SCHEMAS["rows"][table]}[column]]


@cache
def _forms(table: str, part: str) -> list[tuple[re.Pattern[str], list[tuple[str, Reader]]]]:
    """The patterns of a table's lines, each with its columns."""
    rows = own_data("evidence/nccl_log/grammar/lines")["row"]
    own = [row for row in rows if row["table"] == table and row.get("part", "") == part]
    patterns = [compiled("".join(row["pattern"])) for row in own]
    return [(pattern, [(name, reader(table, name)) for name in pattern.groupindex]) for pattern in patterns]


def row_of(table: str, message: str, part: str = "") -> Rows | None:
    """The row of this table that a message makes, or this part of one; None for a message of another form."""
    for pattern, columns in _forms(table, part):
        if (match := pattern.match(message)) is not None:
            return [(table, {name: read(match[name]) for name, read in columns})]
    return None
