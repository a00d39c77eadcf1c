"""What the fast extractor has gathered of one shard: threads, contexts, and rows as numbers until tables are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log import collect, facts, scan_ops
from topodiag.evidence.nccl_log.collect import Collector, ThreadKey
from topodiag.evidence.nccl_log.facts import Facts
from topodiag.evidence.nccl_log.grammar import Rows, parse
from topodiag.evidence.nccl_log.grammar_comm import operation
from topodiag.evidence.nccl_log.grammar_numbers import device
from topodiag.evidence.nccl_log.plain import read_record
from topodiag.evidence.nccl_log.prefix import Record, clean, records
from topodiag.evidence.nccl_log.scan_bytes import Dictionary, Positions, Words
from topodiag.evidence.nccl_log.scan_conn import Connections, Rings
from topodiag.evidence.nccl_log.scan_rows import (
    Columns,
    Texts,
    bits,
    in_order,
    listed,
    matrix,
    merged,
    strings,
    table,
    together,
)

Ints = npt.NDArray[np.int64]
_PLACE = ("thread", "ctx", "offset", "line", "count")
_BY_LINE = frozenset({"init", "event"})
"""Tables whose rows hold a label or time of their line, or change the context: never by message."""
_COLUMNS: dict[str, tuple[str, ...]] = {
    name: tuple(each for each in facts.SCHEMAS[name].names if each not in (*_PLACE, "gen"))
    for name in facts.ROW_TABLES
    if name not in ("init", "event", "op", "tail")
}
_CONN = ("rank", "peer", "dev", "peer_dev", "conn", "tail", "channels")
_TAIL = ("direction", "via", "net_dev", "proxy")
_SEQUENCE = 10
"""Bits for the records that share a line."""


@dataclass(frozen=True, slots=True)
class _Said:
    """What an add to the collector said: line of the block, place among the line's records, thread, rows."""

    line: int
    index: int
    thread: int
    rows: Rows


class _Slow(Collector):
    """Takes the rows of lines that were read one by one, and keeps them until the block's contexts are known."""

    def __init__(self, file: int, base: int) -> None:
        super().__init__(file, base)
        self.said: list[_Said] = []

    def add(self, key: ThreadKey, offset: int, line: int, rows: Rows) -> None:
        index = self.said[-1].index + 1 if self.said and self.said[-1].line == line else 0
        self.said.append(_Said(line, index, self.thread(key), rows))

    def put(self, name: str, place: dict[str, int], columns: dict[str, Any]) -> None:
        self._add_row(name, place, columns)

    def made(self, name: str) -> list[dict[str, Any]]:
        return sorted(self._rows[name].values(), key=lambda row: (row["thread"], row["offset"]))

    def keys(self) -> list[ThreadKey]:
        return list(self._threads)


def unread(message: str) -> Rows:
    """The row of a message that nothing understands, as `plain.read_record` makes it."""
    probe = _Probe(0, 0)
    read_record(probe, Record("", -1, -1, -1, "INFO", message), 0, 0)
    return probe.rows


class _Probe(Collector):
    """Rows of one record, as they come."""

    rows: Rows

    def add(self, key: ThreadKey, offset: int, line: int, rows: Rows) -> None:
        self.rows = rows


class Shard:
    def __init__(self, file: int, base: int) -> None:
        self.file, self.base = file, base
        self.slow = _Slow(file, base)
        self.texts = Texts()
        self._lines = 0
        self._heads = Dictionary(12)
        self._head_threads: list[int] = []
        self._tails = Dictionary(scan_ops.WIDE)
        self._tail_values: list[tuple[int, ...] | None] = []
        self._devices = Dictionary(2)
        self._messages: dict[bytes, int] = {}
        self._message_rows: list[list[tuple[str, int]]] = []
        self._understood: list[bool] = []
        self._values: dict[str, dict[tuple[int, ...], int]] = {name: {} for name in _COLUMNS}
        self._contexts: dict[tuple[int, int], int] = {(0, -1): 0}
        self._now = np.zeros(64, dtype=np.int64)
        self._named = np.full(64, -1, dtype=np.int64)
        self._gens: dict[tuple[str, int, int], int] = {}
        self._conn: list[Columns] = []
        self._ring: list[Columns] = []
        self._said: list[Columns] = []
        self._rows: dict[str, list[tuple[int, ...]]] = {name: [] for name in _COLUMNS}
        self._ops: list[Columns] = []
        self._op_rows: list[tuple[int, ...]] = []
        self._waiting: list[tuple[list[Columns], Columns]] = []
        self._op_events: list[Columns] = []

    def begin_block(self, offsets: Positions) -> None:
        self._offsets = offsets
        self._waiting, self._op_events = [], []

    # What the lines of a block are.

    def threads_of(self, heads: Words) -> Ints:
        """Index of the thread of each head, -1 for a text that is no plain head."""
        codes = self._heads.encode(heads)
        for text in self._heads.texts[len(self._head_threads) :]:
            read = list(records(clean(text + b" NCCL INFO x")))
            fine = len(read) == 1 and read[0].message == "x" and read[0].level == "INFO"
            who = (read[0].host, read[0].pid, read[0].tid, read[0].dev) if fine else collect.NOBODY
            self._head_threads.append(self.slow.thread(who) if fine else -1)
        return np.array(self._head_threads or [-1], dtype=np.int64)[codes]

    def tails(self, tails: Words) -> Ints:
        """Code of what follows the second bracket of a connection, -1 for what is none."""
        codes = self._tails.encode(tails).astype(np.int64)
        for text in self._tails.texts[len(self._tail_values) :]:
            self._tail_values.append(self._tail(text))
        wrong = np.array([each is None for each in self._tail_values] or [True])
        codes[wrong[codes]] = -1
        return codes

    def _tail(self, text: bytes) -> tuple[int, ...] | None:
        rows = self._parse(b"Channel 01/0 : 2[3] -> 4[5]" + text)
        if rows is None or len(rows) != 1 or rows[0][0] != "conn":
            return None
        said: dict[str, Any] = rows[0][1]
        if (said["rank"], said["dev"], said["peer"], said["peer_dev"], said["channels"]) != (2, 3, 4, 5, 2):
            return None
        return tuple(bits(said[name], self.texts) for name in _TAIL)

    def _parse(self, message: bytes) -> Rows | None:
        read = list(records(clean(b"h:1:1 [0] NCCL INFO " + message)))
        return parse("INFO", read[0].message) if len(read) == 1 else None

    def message(self, message: bytes) -> int:
        """Code of a message of level INFO, -1 for one whose line must be read."""
        code = self._messages.get(message)
        if code is None:
            code = self._messages[message] = self._new_message(message)
        return code

    def _new_message(self, message: bytes) -> int:
        text = message.decode("utf-8", "replace").rstrip()
        if "NCCL" in text or "INFO" in text or text.endswith(">:"):
            return -1  # may be two records, or hold another one's label
        rows = parse("INFO", text)
        understood = rows is not None
        if rows is None:
            rows = unread(text)
        if any(name in _BY_LINE or "ctx" in columns for name, columns in rows):
            return -1
        self._message_rows.append([(name, self._value(name, columns)) for name, columns in rows])
        self._understood.append(understood)
        return len(self._message_rows) - 1

    def operation(self, message: bytes, line: int, thread: int) -> int:
        """Take an operation: -2. Otherwise -1."""
        rows = operation(message.decode("utf-8", "replace"))
        if rows is None:
            return -1
        self.slow.records += 1
        self.slow.understood += 1
        self.slow.said.append(_Said(line, 0, thread, rows))
        return -2

    def _value(self, name: str, columns: dict[str, Any]) -> int:
        full = {**collect._DEFAULTS[name], **columns}
        key = tuple(bits(full[each], self.texts) for each in _COLUMNS[name])
        known = self._values[name]
        return known.setdefault(key, len(known))

    # Rows of a block.

    def add_connections(self, read: Connections, tail: Ints, line: Positions, thread: Ints) -> None:
        kept = np.flatnonzero(tail >= 0)
        columns = {
            "rank": read.rank, "peer": read.peer, "conn": read.conn, "tail": tail,
            "dev": self._device(read.dev), "peer_dev": self._device(read.peer_dev),
            "channels": (np.uint64(1) << np.minimum(read.channel, 63).astype(np.uint64)).view(np.int64),
            "line": line, "thread": thread,
        }  # fmt: skip
        self._wait(self._conn, {name: values[kept] for name, values in columns.items()})
        self.slow.records += len(kept)
        self.slow.understood += len(kept)

    def add_rings(self, read: Rings, line: Positions, thread: Ints) -> None:
        columns = dict(zip(("prev", "rank", "next"), read.ranks, strict=True))
        channels = (np.uint64(1) << np.minimum(read.channel, 63).astype(np.uint64)).view(np.int64)
        self._wait(self._ring, {**columns, "channels": channels, "line": line, "thread": thread})
        self.slow.records += len(line)
        self.slow.understood += len(line)

    def _device(self, words: Words) -> Ints:
        codes = self._devices.encode(words[np.newaxis, :])
        values = [device(text.decode("ascii", "replace")) for text in self._devices.texts]
        return np.array(values or [-1], dtype=np.int64)[codes]

    def add_messages(self, codes: Ints, line: Positions, thread: Ints) -> None:
        kept = np.flatnonzero(codes >= 0)
        self._wait(self._said, {"message": codes[kept], "line": line[kept], "thread": thread[kept]})
        self.slow.records += len(kept)
        if len(kept):
            self.slow.understood += int(np.array(self._understood)[codes[kept]].sum())

    def _wait(self, parts: list[Columns], columns: Columns) -> None:
        self._waiting.append((parts, columns))

    def end_block(self, lines: int) -> None:
        """Give all rows of the block their context."""
        threads = len(self.slow.keys())
        if threads > len(self._now):
            more = max(threads, 2 * len(self._now)) - len(self._now)
            self._now = np.append(self._now, np.zeros(more, dtype=np.int64))
            self._named = np.append(self._named, np.full(more, -1, dtype=np.int64))
        self.slow.said.sort(key=lambda said: said.line)  # stable: records that share a line stay in order
        own = self._events()
        for parts, columns in self._waiting:
            line = columns.pop("line")
            columns["ctx"] = self._context_at(columns["thread"], line << _SEQUENCE)
            columns["offset"], columns["line"] = self._offsets[line], line + (self._lines + 1)
            columns["count"] = np.ones(len(line), dtype=np.int64)
            parts.append(columns)
        self._slow_rows(own)
        keys, codes, places = self._fill
        if len(keys):
            owners = keys >> 40
            last = np.append(owners[1:] != owners[:-1], True)
            self._now[owners[last]] = codes[last]
            self._named[owners[last]] = places[last]
        self.slow.said = []
        self._lines += lines

    def _events(self) -> dict[int, int]:
        """Lines that name a communicator, in `_fill`; the context that each slow record itself names, by its index."""
        own: dict[int, int] = {}
        keys: list[int] = []
        codes: list[int] = []
        hosts = self.slow.keys()
        for number, said in enumerate(self.slow.said):
            for _, columns in said.rows:
                pointer = columns.get("ctx", 0)
                if isinstance(pointer, int) and pointer:
                    process = (*hosts[said.thread][:2], pointer)
                    if columns.get("event") == "start":
                        self._gens[process] = int(self._offsets[said.line])
                    own[number] = self._context(pointer, self._gens.get(process, -1))
                    keys.append((said.thread << 40) | (said.line << _SEQUENCE) | said.index)
                    codes.append(own[number])
        key = np.array(keys, dtype=np.int64)
        order = np.argsort(key, kind="stable")
        key = key[order]
        places = self._offsets[(key >> _SEQUENCE) & ((1 << 30) - 1)]
        self._fill = (key, np.array(codes, dtype=np.int64)[order], places)
        return own

    def _context(self, pointer: int, gen: int) -> int:
        return self._contexts.setdefault((pointer, gen), len(self._contexts))

    def _context_at(self, thread: Ints, place: Ints) -> Ints:
        keys, codes, _ = self._fill
        now = self._now[thread]
        if len(keys):
            found = np.searchsorted(keys, (thread << 40) | place, side="right") - 1
            known = (found >= 0) & (keys[found] >> 40 == thread)
            now[known] = codes[found[known]]
        return now

    def _slow_rows(self, own: dict[int, int]) -> None:
        if not self.slow.said:
            return
        thread = np.array([said.thread for said in self.slow.said], dtype=np.int64)
        places = np.array([(said.line << _SEQUENCE) | said.index for said in self.slow.said], dtype=np.int64)
        contexts = self._context_at(thread, places).tolist()
        pointers = list(self._contexts)
        for number, said in enumerate(self.slow.said):
            context = own.get(number, contexts[number])
            offset, line = int(self._offsets[said.line]), self._lines + said.line + 1
            for name, columns in said.rows:
                if name in _BY_LINE:
                    pointer, gen = pointers[context]
                    place = {"thread": said.thread, "ctx": pointer, "gen": gen, "offset": offset, "line": line}
                    self.slow.put(name, place, columns)
                elif name == "op":
                    self._op_rows.append((said.thread, context, offset, line, *scan_ops.values(columns, self.texts)))
                else:
                    self._rows[name].append((said.thread, context, offset, line, self._value(name, columns)))

    # Tables.

    def facts(self, size: int) -> Facts:
        pairs = list(self._contexts)
        contexts = (
            np.array([pointer for pointer, _ in pairs], dtype=np.uint64).view(np.int64),
            np.array([gen for _, gen in pairs], dtype=np.int64),
        )
        columns = {name: merged(name, rows) if name != "print" else self._prints(rows) for name, rows in self._all()}
        operations = together([*self._ops, self._slow_ops()], scan_ops.COLUMNS)
        columns["op"], columns["tail"] = scan_ops.operations(operations, self.texts)
        texts = strings(self.texts.words())
        tables = {name: table(name, rows, contexts, texts) for name, rows in columns.items()}
        for name in _BY_LINE:
            rows = self.slow.made(name)
            tables[name] = listed(name, {each: [row[each] for row in rows] for each in facts.SCHEMAS[name].names})
        return self._ordered(tables, contexts, size)

    def _all(self) -> list[tuple[str, Columns]]:
        """Rows of all tables that messages fill."""
        said = together(self._said, (*_PLACE, "message"))
        fans = np.array([len(rows) for rows in self._message_rows], dtype=np.int64)
        names = list(_COLUMNS)
        tables = np.array([names.index(name) for rows in self._message_rows for name, _ in rows], dtype=np.int64)
        codes = np.array([code for rows in self._message_rows for _, code in rows], dtype=np.int64)
        first = np.cumsum(fans) - fans
        message = said.pop("message")
        times = fans[message] if len(message) else message
        source = np.repeat(np.arange(len(message)), times)
        within = np.arange(len(source)) - np.repeat(np.cumsum(times) - times, times)
        row = first[message[source]] + within if len(source) else source
        made = []
        for number, name in enumerate(names):
            chosen = np.flatnonzero(tables[row] == number) if len(row) else row
            columns = {each: values[source[chosen]] for each, values in said.items()}
            code = codes[row[chosen]] if len(row) else row
            slow = np.array(self._rows[name], dtype=np.int64).reshape(-1, 5)
            for index, each in enumerate(("thread", "ctx", "offset", "line")):
                columns[each] = np.append(columns[each], slow[:, index])
            columns["count"] = np.append(columns["count"], np.ones(len(slow), dtype=np.int64))
            code = np.append(code, slow[:, 4]).astype(np.int64)
            values = np.array(list(self._values[name]), dtype=np.int64).reshape(-1, len(_COLUMNS[name]))
            for index, each in enumerate(_COLUMNS[name]):
                columns[each] = values[code, index]
            if name == "ring":
                columns = together([columns, *self._ring], tuple(columns))
            made.append((name, self._with_connections(columns) if name == "conn" else columns))
        return made

    def _with_connections(self, columns: Columns) -> Columns:
        fast = merged("conn", together(self._conn, (*_PLACE, *_CONN)))
        tail = fast.pop("tail")
        values = np.array([each or (0, 0, 0, 0) for each in self._tail_values], dtype=np.int64).reshape(-1, len(_TAIL))
        for index, name in enumerate(_TAIL):
            fast[name] = values[tail, index]
        return {name: np.concatenate([fast[name], values]) for name, values in columns.items()}

    def _prints(self, columns: Columns) -> Columns:
        """Rows of each thread and context as one text."""
        columns = in_order(columns)
        if not len(columns["thread"]):
            return columns
        order = np.lexsort((columns["ctx"], columns["thread"]))
        keys = matrix(columns, ["thread", "ctx"])[:, order]
        starts = np.flatnonzero(np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)))
        made = {name: values[order[starts]] for name, values in columns.items()}
        made["count"] = np.diff(np.append(starts, len(order)))
        words = self.texts.words()
        pieces = [words[code] for code in columns["text"][order].tolist()]
        ends = np.append(starts[1:], len(order)).tolist()
        joined = ["\n".join(pieces[a:b]) for a, b in zip(starts.tolist(), ends, strict=True)]
        made["text"] = np.array([self.texts.code(text) for text in joined], dtype=np.int64)
        return made

    def _slow_ops(self) -> Columns:
        rows = np.array(self._op_rows, dtype=np.int64).reshape(-1, len(scan_ops.COLUMNS))
        return {name: rows[:, index] for index, name in enumerate(scan_ops.COLUMNS)}

    def _ordered(self, tables: dict[str, Any], contexts: tuple[Ints, Ints], size: int) -> Facts:
        keys = self.slow.keys()
        names = ("host", "pid", "tid", "dev")
        tables["threads"] = listed(
            "threads",
            {"file": np.full(len(keys), self.file)} | {name: [key[i] for key in keys] for i, name in enumerate(names)},
        )
        busy = np.flatnonzero(self._named >= 0)
        now = self._now[busy]
        tables["contexts"] = listed(
            "contexts",
            {
                "thread": busy, "offset": self._named[busy],
                "ctx": contexts[0][now].view(np.uint64), "gen": contexts[1][now],
            },
        )  # fmt: skip
        shard = {
            "file": self.file, "base": self.base, "size": size, "lines": self._lines, "records": self.slow.records,
            "understood": self.slow.understood,
        }  # fmt: skip
        tables["shards"] = listed("shards", {name: [value] for name, value in shard.items()})
        return Facts({name: tables[name] for name in facts.SCHEMAS})
