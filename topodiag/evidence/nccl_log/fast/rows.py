"""Tables of facts from columns of 64-bit numbers: texts as codes, floats as their bits.

Which communicator each thread of a shard was busy with, line by line: the rule of slow.py for many lines at once.

A place is a line of the block and a record's number among those that share it. A context is the code of a pointer and
its gen.

What is read line by line: lines with no record or with several, warnings, and what applications say of NCCL.

Rules that facts.py leaves open, and that all of this room keeps to:

* A row's context is its thread's: set by each row of `init` and `op` that names a communicator, that row included. Only
  Init START gives a pointer a new `gen`; what it is for a thread is looked up when the thread names the pointer, in the
  process (host, pid), and stays until the thread names one again.
* Equal rows: equal in thread, ctx, gen and all columns but channels (united), ts, last_ts, last_offset and the text of
  `unread`. `ts` and that text are the first line's, `last_ts` the last one's.
* `op`: equal in thread, ctx, gen, func, elements, dtype, redop, root and nranks. A (thread, ctx, gen) with more than
  MOST_EXACT_OPS different ones has all its elements rounded down to a power of two and negated (0 stays 0): the minus
  says that the shard held more, so that merging shards can round the rest.
* Rows of one table are ordered by thread, then offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.grammar.grammar import Rows, parse
from topodiag.evidence.nccl_log.grammar.numbers import compiled
from topodiag.evidence.nccl_log.grammar.prefix import Record, application, clean, records
from topodiag.evidence.nccl_log.grammar.spoken import speaking, stated_of
from topodiag.evidence.nccl_log.tables.facts import SCHEMAS, WORDED, Column, Positions, Table, used
from topodiag.evidence.nccl_log.tables.facts import table as table_of

_SEQUENCE = 16
"""Bits for the records that share a line."""
_NONE = (0, -1)


def place(line: Positions, index: Positions | int = 0) -> Positions:
    return (line << _SEQUENCE) | index


class Contexts:
    def __init__(self) -> None:
        self._codes: dict[tuple[int, int], int] = {_NONE: 0}
        self._gens: dict[tuple[int, int], int] = {}
        self._now = np.zeros(0, dtype=np.int64)
        self._named = np.zeros(0, dtype=np.int64)
        self._keys = self._filled = self._offsets = np.zeros(0, dtype=np.int64)

    def name(self, naming: Mapping[str, Positions], threads: int) -> Positions:
        """Take a block's records that name a communicator, in any order; returns the context that each names. `threads`
        are there. Pointers (`ctx`) are signed numbers, `starts` is not 0 where a record is an Init START."""
        self._know(threads)
        codes = self._named_by(naming)
        keys = (naming["thread"] << 40) | naming["place"]
        order = np.argsort(keys, kind="stable")
        self._keys, self._filled, self._offsets = keys[order], codes[order], naming["offset"][order]
        return codes

    def _know(self, threads: int) -> None:
        if threads > len(self._now):
            more = max(threads, 2 * len(self._now)) - len(self._now)
            self._now = np.append(self._now, np.zeros(more, dtype=np.int64))
            self._named = np.append(self._named, np.full(more, -1, dtype=np.int64))

    def _named_by(self, naming: Mapping[str, Positions]) -> Positions:
        """A pointer means what the last Init START of its process made of it."""
        size = len(naming["place"])
        codes = np.zeros(size, dtype=np.int64)
        if not size:
            return codes
        order = np.lexsort((naming["place"], naming["ctx"], naming["process"]))
        process, pointer = naming["process"][order], naming["ctx"][order]
        starts, offset = naming["starts"][order] != 0, naming["offset"][order]
        new = np.append(True, (process[1:] != process[:-1]) | (pointer[1:] != pointer[:-1]))
        runs = np.flatnonzero(new | starts)
        ends = np.append(runs[1:], size)
        numbers = []
        rows = (process[runs], pointer[runs].view(np.uint64), starts[runs], offset[runs])
        for owner, address, begins, at in zip(*(row.tolist() for row in rows), strict=True):
            if begins:
                self._gens[owner, address] = at
            numbers.append(self.code(address, self._gens.get((owner, address), -1)))
        codes[order] = np.repeat(np.array(numbers, dtype=np.int64), ends - runs)
        return codes

    def code(self, pointer: int, gen: int) -> int:
        return self._codes.setdefault((pointer, gen), len(self._codes))

    def at(self, thread: Positions, where: Positions) -> Positions:
        """The context of each thread at a place of the block: named by that record or before. A thread may be new: that
        of a record at the end of a line that was read one by one, after the block's contexts were named."""
        self._know(int(thread.max(initial=-1)) + 1)
        now = self._now[thread]
        if len(self._keys):
            named = np.zeros(len(self._now), dtype=np.bool_)
            named[self._keys >> 40] = True
            asked = np.flatnonzero(named[thread])
            wanted = (thread[asked] << 40) | where[asked]
            slots = np.searchsorted(self._keys, wanted, side="right") - 1
            known = (slots >= 0) & (self._keys[slots] >> 40 == thread[asked])
            now[asked[known]] = self._filled[slots[known]]
        return now

    def end_block(self) -> None:
        if len(self._keys):
            owners = self._keys >> 40
            last = np.append(owners[1:] != owners[:-1], True)
            self._now[owners[last]] = self._filled[last]
            self._named[owners[last]] = self._offsets[last]

    def pairs(self) -> tuple[Positions, Positions]:
        """Pointer and gen of each context, by code."""
        pointers = np.array([pointer for pointer, _ in self._codes], dtype=np.uint64).view(np.int64)
        return pointers, np.array([gen for _, gen in self._codes], dtype=np.int64)

    def last(self) -> tuple[Positions, Positions, Positions]:
        """Threads that named a communicator, the context of each at the end, and the offset of the line that named."""
        busy = np.flatnonzero(self._named >= 0)
        return busy, self._now[busy], self._named[busy]


Ints = npt.NDArray[np.int64]
Columns = dict[str, Ints]
PLACE = ("thread", "ctx", "offset", "line", "count")
"""Columns of all rows while a shard is read; ctx is a code that stands for ctx and gen."""


class Texts:
    """Codes of texts."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        return self._codes.setdefault(text, len(self._codes))

    def words(self) -> list[str]:
        return list(self._codes)


def codes_of(words: Sequence[bytes], texts: Texts) -> Ints:
    """Codes of many texts of ASCII, most of which come again."""
    codes = {word: texts.code(word.decode("ascii")) for word in dict.fromkeys(words)}
    return np.array([codes[word] for word in words], dtype=np.int64)


def bits(value: Any, texts: Texts) -> int:
    """A value of a cell as a signed 64-bit number."""
    if isinstance(value, str):
        return texts.code(value)
    if isinstance(value, float):
        return int(np.float64(value).view(np.int64))
    return int(np.uint64(value).view(np.int64)) if value >= 1 << 63 else int(value)


def together(parts: list[Columns], names: tuple[str, ...]) -> Columns:
    if not parts:
        return {name: np.zeros(0, dtype=np.int64) for name in names}
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def table(name: str, columns: Columns, contexts: tuple[Ints, Ints], texts: Sequence[str]) -> Table:
    """The table of these rows, which are in their order; `contexts` are ctx and gen by code."""
    if not len(columns["thread"]):
        return table_of(name)
    codes = columns["ctx"]
    columns = {**columns, "ctx": contexts[0][codes], "gen": contexts[1][codes]}
    words: dict[str, Sequence[str]] = {}
    for column in WORDED[name]:
        columns[column], words[column] = used(columns[column], texts)
    return Table({column: _column(columns[column], kind) for column, kind in SCHEMAS[name].items()}, words)


def _column(values: Ints, kind: np.dtype[Any]) -> Column:
    return values.view(kind) if kind.kind == "f" else values.astype(kind)


ThreadKey = tuple[str, int, int, int]
"""Host, pid, tid and device."""
NOBODY: ThreadKey = ("", -1, -1, -1)

DEFAULTS: dict[str, dict[str, Any]] = {
    name: {column: "" if column in WORDED[name] else nan if kind.kind == "f" else -1 for column, kind in schema.items()}
    for name, schema in SCHEMAS.items()
}
"""What a row holds that its line does not say."""
for _table, _absent in (("init", "comm_id"), ("init", "parent"), ("conn", "direction"), ("tree", "second")):
    DEFAULTS[_table][_absent] = 0
DEFAULTS["op"]["op_count"] = -1
_HEXES = compiled(r"0x[0-9a-fA-F]+|\b(?=[a-fA-F]*\d)[0-9a-fA-F]{4,}\b")
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
    return _NUMBERS.sub("#", _HEXES.sub("x", message[:1000]))[:_SHAPE]


SlowRecord = tuple[int, int, int, Rows]
"""What a record or an application said: line of the block, place among the line's records, thread, rows."""
