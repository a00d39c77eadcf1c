"""What the fast extractor has gathered of shards: threads, contexts, and rows as numbers until tables are made.

Shards of several small files are gathered together: to make tables costs more than to read such a file.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache, partial
from math import nan
from typing import Any

import numpy as np

from topodiag.evidence.nccl_log.fast import forms as scan_forms
from topodiag.evidence.nccl_log.fast import rows as scan_rows
from topodiag.evidence.nccl_log.fast.bytes import Block, Vocabulary
from topodiag.evidence.nccl_log.fast.forms import NAME_WORDS, Read
from topodiag.evidence.nccl_log.fast.heads import who
from topodiag.evidence.nccl_log.fast.rows import DEFAULTS, PLACE, Columns, Contexts, Ints, Texts, bits
from topodiag.evidence.nccl_log.grammar.grammar import NOISE, START, UNORDERED, Rows, kind_by_start, parse
from topodiag.evidence.nccl_log.grammar.numbers import device
from topodiag.evidence.nccl_log.grammar.prefix import Record, clean, records
from topodiag.evidence.nccl_log.tables import facts
from topodiag.evidence.nccl_log.tables.facts import Facts, Positions
from topodiag.evidence.nccl_log.tables.resolve_rows import merged

_TAIL = ("direction", "via", "net_dev", "proxy")
"""What a connection says behind its second bracket."""
_NO_TAIL = (-1,) * len(_TAIL)
_NAMING = ("thread", "line", "ctx", "index", "starts")
_OF_EACH_LINE = frozenset({*PLACE, "gen", "last", "last_ts", "last_offset"})
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
_REPORT, _REPORT_ENDS = b"Subject: Job ", (b" Exited", b"Exited ")
"""How the subject of the report begins that LSF appends to the output of a job, how it ends where the job failed, and
how its last line on that begins."""


class Messages:
    """Messages of level INFO by their bytes: what each says is found out once per shard, and kept as numbers."""

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
        rows, understood = scan_rows.rows_of(Record("", -1, -1, -1, "INFO", text))
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


class Shard:
    """One shard after the other: `begin_file`, blocks of lines, `end_file`."""

    def __init__(self) -> None:
        self.texts = Texts()
        self.messages = Messages(self.texts)
        self.contexts = Contexts()
        self._file = self._base = self._lines = self._records = self._understood = 0
        self._report = ""
        self._threads: dict[tuple[int, scan_rows.ThreadKey], int] = {}
        """Index of a thread by its file and its name, which may stand in other files, too."""
        self._slow: list[scan_rows.SlowRecord] = []
        """What was read line by line of the block, until the block's contexts are known."""
        self._ended: list[dict[str, int]] = []
        self._offsets: Positions = np.zeros(0, dtype=np.int64)
        self._stamps: dict[bytes, float] = {}
        self.names = Vocabulary(NAME_WORDS, partial(_name, self.texts))
        """Codes of texts that name an operation or a function, -1 of others."""
        self._tails = Vocabulary(scan_forms.TAIL_WORDS, partial(_tail, self.texts), len(_TAIL))
        self._devices = Vocabulary(1, lambda text: device(text.decode("ascii", "replace")))
        self._processes: dict[tuple[int, str, int], int] = {}
        self._process: list[int] = []
        self._fast: dict[str, list[Columns]] = defaultdict(list)
        self._said: list[Columns] = []
        self._kept_texts: list[bytes] = []
        self._named: list[tuple[str, Columns]] = []

    def begin_file(self, file: int, base: int) -> None:
        self._file, self._base, self._lines, self._report = file, base, 0, ""

    def end_file(self, size: int, lines: int = 0) -> None:
        """`lines`: those that no block held."""
        self._ended.append({
            "file": self._file, "base": self._base, "size": size, "lines": self._lines + lines,
            "records": self._records, "understood": self._understood,
        })  # fmt: skip
        self._records = self._understood = 0

    def begin_block(self, offsets: Positions) -> None:
        self._offsets = offsets
        self._named = []
        self._slow = []

    def count(self, records: int, understood: int) -> None:
        self._records += records
        self._understood += understood

    # Who prints, and when.

    def thread_of(self, head: bytes) -> int:
        """Index of the thread of a head, -1 for a text that is no plain one."""
        key = who(head)
        return -1 if key is None else self._thread(key)

    def _thread(self, key: scan_rows.ThreadKey) -> int:
        return self._threads.setdefault((self._file, key), len(self._threads))

    def read_line(self, raw: bytes, line: int, section: str = "") -> None:
        """One physical line of the block that is read by itself; `section` is what the part of its text is about."""
        if raw.startswith(_REPORT) and raw.rstrip().endswith(_REPORT_ENDS[0]):
            self._report = f"the report of job {raw[len(_REPORT) :].partition(b':')[0].decode('ascii', 'replace')}"
        place = section or self._report  # reports below one output end with equal lines: each belongs to its own
        for index, (key, rows, understood) in enumerate(scan_rows.rows_of_line(raw)):
            self.count(understood is not None, understood is True)
            rows = [(name, {**row, "place": place} if place and name == "event" else row) for name, row in rows]
            self._slow.append((line, index, self._thread(key), rows))
        self._report = "" if raw.startswith(_REPORT_ENDS[1]) else self._report

    def stamps(self, fronts: list[bytes]) -> Ints:
        """Bits of the seconds that stand in what precedes ` NCCL INFO `."""
        for text in fronts:
            if text not in self._stamps:
                read = list(records(clean(text + b" NCCL INFO x")))
                self._stamps[text] = read[0].ts if len(read) == 1 else nan
        return np.array([self._stamps[text] for text in fronts], dtype=np.float64).view(np.int64)

    # Records that name a communicator.

    def add_operations(self, read: Read, line: Positions, thread: Positions) -> None:
        columns = {**read.columns, "func": read.name, "line": line, "thread": thread}
        columns["op_count"][np.isin(read.name, [self.texts.code(name) for name in UNORDERED])] = -1
        self._named.append(("op", columns))
        self.count(len(line), len(line))

    def add_inits(self, read: Read, event: str, line: Positions, thread: Positions, ts: Ints) -> None:
        columns = {column: np.full(len(line), bits(DEFAULTS["init"][column], self.texts)) for column in COLUMNS["init"]}
        columns |= {"event": np.full(len(line), self.texts.code(event)), "ts": ts}
        columns["func"] = np.where(read.name < 0, columns["func"], read.name)
        self._named.append(("init", {**columns, **read.columns, "line": line, "thread": thread}))
        self.count(len(line), len(line))

    def name_contexts(self) -> None:
        """The contexts of the block, once all its naming records were added or read."""
        for file, (host, pid, _, _) in list(self._threads)[len(self._process) :]:
            self._process.append(self._processes.setdefault((file, host, pid), len(self._processes)))
        process = np.array(self._process or [0], dtype=np.int64)
        slow = [
            (thread, line, _signed(columns["ctx"]), index, columns.get("event") == "start")
            for line, index, thread, rows in self._slow
            for _, columns in rows
            if columns.get("ctx")
        ]
        start = self.texts.code("start")
        parts = [dict(zip(_NAMING, np.array(slow, dtype=np.int64).reshape(-1, len(_NAMING)).T, strict=True))]
        for name, columns in self._named:
            none = np.zeros_like(columns["line"])
            starts = columns["event"] == start if name == "init" else none
            parts.append({**{name: columns[name] for name in _NAMING[:3]}, "index": none, "starts": starts})
        rows = scan_rows.together(parts, _NAMING)
        rows |= {
            "process": process[rows["thread"]], "place": scan_rows.place(rows["line"], rows["index"]),
            "offset": self._offsets[rows["line"]],
        }  # fmt: skip
        self.contexts.name(rows, len(self._process))
        for name, columns in self._named:
            self._fast[name].append(self._placed(columns))

    def _placed(self, columns: Columns, index: Positions | int = 0) -> Columns:
        """Rows of lines of the block with all that facts say of their place; `index` among the line's records."""
        line, thread = columns["line"], columns["thread"]
        return {
            **columns,
            "ctx": self.contexts.at(thread, scan_rows.place(line, index)),
            "offset": self._offsets[line],
            "line": line + (self._lines + 1),
            "count": np.ones(len(line), dtype=np.int64),
        }

    # Connections and rings.

    def add_channels(self, block: Block, lines: scan_forms.Lines, line: Positions, thread: Positions) -> Positions:
        """Take lines of channels; returns those (index into `found`) that were not read."""
        ctx = self.contexts.at(thread, scan_rows.place(line))
        identity = ((thread << 40) | ctx).view(np.uint64)
        first, is_connection, counts, group = scan_forms.grouped_channels(lines.rows, identity, lines.channels)
        own = {
            "thread": thread[first], "ctx": ctx[first], "offset": self._offsets[line[first]],
            "line": line[first] + (self._lines + 1), **counts,
        }  # fmt: skip
        connects = np.flatnonzero(is_connection)
        at = first[connects]
        read, numbers, devices, tail = scan_forms.connections(block, lines.message[at], lines.end[at])
        tails = self._tails(tail)
        kept = np.flatnonzero(tails[:, 0] >= 0)
        chosen = connects[read[kept]]
        columns = {
            **{name: values[kept] for name, values in numbers.items()},
            **{name: self._devices(words[np.newaxis, kept]) for name, words in devices.items()},
            **dict(zip(_TAIL, tails[kept].T, strict=True)),
        }
        self._fast["conn"].append({**{name: column[chosen] for name, column in own.items()}, **columns})
        others = np.flatnonzero(~is_connection)
        at = first[others]
        rings = scan_forms.read(block, lines.message[at], lines.end[at], scan_forms.RING, self.names)
        turns = others[rings.lines]
        ranks = {name: rings.columns[name] for name in ("prev", "rank", "next")}
        self._fast["ring"].append({**{name: column[turns] for name, column in own.items()}, **ranks})
        left = np.ones(len(first), dtype=np.bool_)
        left[chosen] = left[turns] = False
        taken = int(counts["count"][~left].sum())
        self.count(taken, taken)
        return np.flatnonzero(left[group])

    # All other records.

    def add_texts(self, messages: list[bytes], kind: Ints, line: Positions, thread: Positions) -> None:
        """Messages of ASCII that are kept as they are, each of its kind, once the contexts of the block are named."""
        self._kept_texts += messages
        self._fast["text"].append(self._placed({"kind": kind, "line": line, "thread": thread}))

    def add_messages(self, codes: Ints, line: Positions, thread: Positions) -> None:
        """Messages by their codes, once the contexts of the block are named."""
        kept = np.flatnonzero(codes >= 0)
        self._said.append(self._placed({"message": codes[kept], "line": line[kept], "thread": thread[kept]}))
        self.count(len(kept), self.messages.understood(codes[kept]))

    def end_block(self, lines: int) -> None:
        self._slow_rows()
        self.contexts.end_block()
        self._lines += lines

    def _slow_rows(self) -> None:
        """Rows of lines that were read one by one."""
        # Stable: records that share a line stay in order.
        slow = sorted(self._slow, key=lambda record: record[0])
        if not slow:
            return
        line, index, thread = np.array([record[:3] for record in slow], dtype=np.int64).T
        lines = self._placed({"line": line, "thread": thread}, index)
        codes = [self.messages.add(rows, understood=True) for *_, rows in slow]
        self._said.append({**lines, "message": np.array(codes, dtype=np.int64)})

    def facts(self) -> Facts:
        """The tables, with rows as they were met: only equal events are one, of which a log may have very many."""
        columns, contexts = self._all(), self.contexts.pairs()
        words = self.texts.words()
        events = columns["event"] | {"last_ts": columns["event"]["ts"], "last_offset": columns["event"]["offset"]}
        columns["event"] = merged("event", events, list(events))
        operations = columns["tail"] = columns["op"]
        columns["op"] = operations | {"last": operations["op_count"], "last_offset": operations["offset"]}
        tables = {name: scan_rows.table(name, rows, contexts, words) for name, rows in columns.items()}
        threads = [(file, *key) for file, key in self._threads]
        tables["threads"] = facts.table(
            "threads", {name: [row[i] for row in threads] for i, name in enumerate(facts.SCHEMAS["threads"])}
        )
        busy, now, named = self.contexts.last()
        tables["contexts"] = scan_rows.table("contexts", {"thread": busy, "offset": named, "ctx": now}, contexts, words)
        tables["shards"] = facts.table(
            "shards", {name: [counts[name] for counts in self._ended] for name in facts.SCHEMAS["shards"]}
        )
        return Facts({name: tables[name] for name in facts.SCHEMAS})

    def _all(self) -> dict[str, Columns]:
        """Rows of all tables that are kept by messages."""
        texts = scan_rows.together(self._fast["text"], (*PLACE, "kind"))
        self._fast["text"] = [{**texts, "text": scan_rows.codes_of(self._kept_texts, self.texts)}]
        lines = scan_rows.together(self._said, (*PLACE, "message"))
        expanded = self.messages.expand(lines.pop("message"))
        tables: dict[str, Columns] = {}
        for name, (source, code) in expanded.items():
            columns = {name: values[source] for name, values in lines.items()} | self.messages.columns(name, code)
            tables[name] = scan_rows.together([columns, *self._fast[name]], tuple(columns))
        return tables


def _signed(pointer: Any) -> int:
    return pointer - (1 << 64) if pointer >= 1 << 63 else int(pointer)


# Not of the shard: a vocabulary that held it would keep its rows until the garbage is collected.


def _name(texts: Texts, text: bytes) -> int:
    return texts.code(text.decode("ascii")) if text.isalpha() else -1


def _tail(texts: Texts, text: bytes) -> tuple[int, ...]:
    says = _says(text)
    return tuple(bits(says[name], texts) for name in _TAIL) if says else _NO_TAIL


@lru_cache(1 << 14)
def _says(text: bytes) -> dict[str, Any]:
    """What a tail says, nothing where the grammar must read the whole line: it may be two records, or say more than a
    connection. Shards of one log ask for the same ones."""
    whole = records(clean(b"h:1:1 [0] NCCL INFO Channel 01/0 : 2[3] -> 4[5]" + text))
    rows = [rows for record in whole for rows in parse("INFO", record.message) or [("", {})]]
    if b"INFO" in text or b"WARN" in text or [name for name, _ in rows] != ["conn"]:
        return {}
    columns = rows[0][1]
    is_whole = tuple(columns[name] for name in ("rank", "dev", "peer", "peer_dev", "channels")) == (2, 3, 4, 5, 2)
    return columns if is_whole else {}


def _kind(texts: Texts, start: bytes) -> int:
    """Code of the kind that the beginning of a message decides, NOTHING for noise, or UNDECIDED."""
    kind = kind_by_start(start.decode("ascii", "replace")) if start.isascii() else None
    return UNDECIDED if kind is None else NOTHING if kind == NOISE else texts.code(kind)
