"""What is read line by line: lines with no record or with several, warnings, and what applications say of NCCL.

Rules that facts.py leaves open, and that all of this room keeps to:

* A row's context is its thread's: set by each row of `init` and `op` that names a communicator, that row included. Only
  Init START gives a pointer a new `gen`; what it is for a thread is looked up when the thread names the pointer, in the
  process (host, pid), and stays until the thread names one again.
* Equal rows: equal in thread, ctx, gen and all columns but channels (united), ts, last_ts, last_offset and the text of
  `unread`. `ts` and that text are the first line's, `last_ts` the last one's.
* `op`: equal in thread, ctx, gen, func, elements, dtype, redop, root and nranks. A (thread, ctx, gen) with more than
  MOST_EXACT_OPS different ones has all its elements rounded down to a power of two and negated (0 stays 0): the minus
  says that the shard held more, so that merging shards can round the rest. `digest` is always of the exact elements.
* Rows of one table are ordered by thread, then offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from typing import Any

from topodiag.evidence.nccl_log.grammar.grammar import Rows, parse
from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.evidence.nccl_log.grammar.prefix import Record, application, clean, records
from topodiag.evidence.nccl_log.grammar.spoken import speaking, stated_of
from topodiag.evidence.nccl_log.tables.facts import SCHEMAS, WORDED
from topodiag.lazy import dataclass

ThreadKey = tuple[str, int, int, int]
"""Host, pid, tid and device."""
NOBODY: ThreadKey = ("", -1, -1, -1)

DEFAULTS: dict[str, dict[str, Any]] = {
    name: {column: "" if column in WORDED[name] else nan if kind.kind == "f" else -1 for column, kind in schema.items()}
    for name, schema in SCHEMAS.items()
}
"""What a row holds that its line does not say."""
for _name, _column in (("init", "comm_id"), ("init", "parent"), ("conn", "direction"), ("tree", "second")):
    DEFAULTS[_name][_column] = 0
DEFAULTS["op"]["op_count"] = -1
_POINTERS = compiled(r"0x[0-9a-fA-F]+")
_HEXES = compiled(r"\b(?=[a-fA-F]*\d)[0-9a-fA-F]{4,}\b")
_NUMBERS = compiled(r"\d+")
_SHAPE, _EXAMPLE = 200, 1000


def rows_of_line(raw: bytes) -> Iterator[tuple[ThreadKey, Rows, bool | None]]:
    """What one physical line says: of each of its records the thread, the rows, and whether it was understood; None for
    what an application says of NCCL. A progress bar redraws with carriage returns: what is printed beside it stands
    between two of them."""
    text = clean(raw)
    own = list(records(text))
    for record in own:
        yield (record.host, record.pid, record.tid, record.dev), *rows_of(record)
    if not own:
        parts = text.split("\r") if "\r" in text else (text,)
        pairs = [
            row
            for part in parts
            if len(parts) == 1 or speaking().any(part.encode())
            for row in (application(part), *stated_of(part))
            if row is not None
        ]
        if pairs:
            yield NOBODY, pairs, None


def rows_of(record: Record) -> tuple[Rows, bool]:
    """The rows of a record, and whether it was understood."""
    rows = parse(record.level, record.message)
    if rows is None:
        return [("unread", {"shape": shape(record.message), "text": record.message[:_EXAMPLE]})], False
    for name, columns in rows:
        if name == "event":
            columns["label"] = record.label
            columns["ts"] = record.ts
            if record.place:
                columns["place"] = record.place
        elif name == "init":
            columns["ts"] = record.ts
    return rows, True


def shape(message: str) -> str:
    """The message with pointers and longer hex numbers as x, other numbers as #, and not too long."""
    return _NUMBERS.sub("#", _HEXES.sub("x", _POINTERS.sub("x", message[:1000])))[:_SHAPE]


@dataclass(frozen=True, slots=True)
class SlowRecord:
    """What a record or an application said: line of the block, place among the line's records, thread, rows."""

    line: int
    index: int
    thread: int
    rows: Rows
