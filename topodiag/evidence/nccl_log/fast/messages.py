"""Messages of level INFO by their bytes: what each says is found out once per shard, and kept as numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from topodiag.evidence.nccl_log.fast.bytes import Vocabulary
from topodiag.evidence.nccl_log.fast.rows import PLACE, Columns, Ints, Texts, bits
from topodiag.evidence.nccl_log.fast.slow import DEFAULTS, rows_of
from topodiag.evidence.nccl_log.grammar.grammar import START, Rows, kind_by_start
from topodiag.evidence.nccl_log.grammar.prefix import Record
from topodiag.evidence.nccl_log.grammar.texts import NOISE
from topodiag.evidence.nccl_log.tables import facts

_OF_EACH_LINE = frozenset({*PLACE, "gen", "first", "last", "last_ts", "last_offset", "digest"})
"""Columns that say where lines stand, and what is counted over them."""
COLUMNS: dict[str, tuple[str, ...]] = {
    name: tuple(column for column in facts.SCHEMAS[name] if column not in _OF_EACH_LINE)
    for name in facts.ROW_TABLES
    if name != "tail"
}
"""What a message says in each table."""
COLUMNS["op"] += ("op_count",)
_BY_LINE = frozenset({"init", "event", "op"})
"""Tables whose rows hold a label or time of their line, or change the context: never by message."""
_NAMES = (b"ncclComm", b"comm 0x", b"[Rank ")
"""How messages begin that name a communicator."""
_LARGE = 1 << 63
_NUMBERS = {name: number for number, name in enumerate(COLUMNS)}
NOTHING, UNDECIDED = -1, -2


class Messages:
    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._codes: dict[bytes, int] = {}
        self.kinds = Vocabulary(START // 8, partial(_kind, texts))
        """By the first START bytes of messages: the code of the kind of all that begin so, NOTHING for noise, or
        UNDECIDED."""
        self._understood: list[bool] = []
        self._fans: list[int] = []
        self._tables: list[int] = []
        self._rows: list[int] = []
        self._values: dict[str, dict[tuple[int, ...], int]] = {name: {} for name in COLUMNS}

    def codes(self, messages: list[bytes]) -> Ints:
        """Code of each message, -1 for one whose line must be read."""
        known = self._codes
        for message in dict.fromkeys(messages):
            if message not in known:
                known[message] = self._read(message)
        return np.array([known[message] for message in messages], dtype=np.int64)

    def understood(self, codes: Ints) -> int:
        return int(np.array(self._understood)[codes].sum()) if len(codes) else 0

    def _read(self, message: bytes) -> int:
        text = message.decode("utf-8", "replace").rstrip()
        if ("] " in text and ("] INFO " in text or " WARN " in text)) or text.endswith((">:", "] INFO", " WARN")):
            return -1  # may be two records, or hold another one's label
        if message.startswith(_NAMES):
            return -1
        rows, understood = rows_of(Record("", -1, -1, -1, "INFO", text))
        if any(name in _BY_LINE for name, _ in rows):
            return -1
        return self.add(rows, understood=understood)

    def add(self, rows: Rows, *, understood: bool) -> int:
        """Code of a message that makes these rows."""
        for name, columns in rows:
            self._tables.append(_NUMBERS[name])
            self._rows.append(self.value(name, columns))
        self._fans.append(len(rows))
        self._understood.append(understood)
        return len(self._fans) - 1

    def value(self, name: str, columns: dict[str, Any]) -> int:
        """Code of what a row of this table says."""
        defaults, texts, known = DEFAULTS[name], self._texts, self._values[name]
        cells = [columns.get(column, defaults[column]) for column in COLUMNS[name]]
        key = tuple([cell if type(cell) is int and cell < _LARGE else bits(cell, texts) for cell in cells])
        return known.setdefault(key, len(known))

    def columns(self, name: str, codes: Ints) -> Columns:
        """What rows of these codes say."""
        cells = np.array(list(self._values[name]), dtype=np.int64).reshape(-1, len(COLUMNS[name]))
        return {name: cells[codes, index] for index, name in enumerate(COLUMNS[name])}

    def expand(self, message: Ints) -> dict[str, tuple[Ints, Ints]]:
        """By table: index into `message`, and code, of each row that those messages make."""
        fans = np.array(self._fans, dtype=np.int64)
        tables = np.array(self._tables, dtype=np.int64)
        codes = np.array(self._rows, dtype=np.int64)
        first = np.cumsum(fans) - fans
        times = fans[message]
        source = np.repeat(np.arange(len(message)), times)
        within = np.arange(len(source)) - np.repeat(np.cumsum(times) - times, times)
        row = first[message[source]] + within
        columns = {}
        for number, name in enumerate(COLUMNS):
            chosen = np.flatnonzero(tables[row] == number)
            columns[name] = source[chosen], codes[row[chosen]]
        return columns


def _kind(texts: Texts, start: bytes) -> int:
    """Code of the kind that the beginning of a message decides, NOTHING for noise, or UNDECIDED."""
    kind = kind_by_start(start.decode("ascii", "replace")) if start.isascii() else None
    return UNDECIDED if kind is None else NOTHING if kind == NOISE else texts.code(kind)
