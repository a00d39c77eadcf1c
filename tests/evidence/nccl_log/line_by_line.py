"""Logs read line by line, with nothing clever: what the extractor must give, which is held against it."""

from collections import deque
from math import isnan, nan
from typing import Any

from topodiag.evidence.nccl_log.fast.rows import DEFAULTS, ThreadKey, rows_of_line
from topodiag.evidence.nccl_log.grammar.grammar import Rows
from topodiag.evidence.nccl_log.tables.facts import ROW_TABLES, SCHEMAS, TAIL, Facts, table
from topodiag.evidence.nccl_log.tables.resolve_rows import MOST_EXACT_OPS

Context = tuple[int, int, int]
"""Pointer, gen, and offset of the line that set it."""
_OWN = {
    name: tuple(name for name in SCHEMAS[name] if name not in ("thread", "ctx", "gen", "offset", "line", "count"))
    for name in ROW_TABLES
}
_LATER = frozenset({"channels", "ts", "last_ts", "last_offset"})
_KEYED: dict[str, tuple[str, ...]] = {
    name: tuple(each for each in own if each not in _LATER or (name == "channels" and each == "channels"))
    for name, own in _OWN.items()
} | {"unread": ("shape",)}
_MASKED = frozenset({"conn", "ring", "tree"})


def extract_plain(data: bytes, file: int, base: int) -> Facts:
    """Facts of whole lines of a file; `base` is the offset of `data` in the file."""
    collector = Collector(file, base)
    offset, lines = base, 0
    for raw in _lines(data):
        lines += 1
        for key, rows, understood in rows_of_line(raw):
            collector.records += understood is not None
            collector.understood += understood is True
            collector.add(key, offset, lines, rows)
        offset += len(raw)
    return collector.facts(len(data), lines)


def _lines(data: bytes) -> list[bytes]:
    """Lines end at a newline only: a carriage return is a progress bar's."""
    *whole, rest = data.split(b"\n")
    lines = [line + b"\n" for line in whole]
    return [*lines, rest] if rest else lines


def rounded(elements: int) -> int:
    """The largest power of two that is not above, negated; 0 for 0."""
    return -(1 << (elements.bit_length() - 1)) if elements > 0 else 0


class Collector:
    """Receives the records of one shard in the order of the file, and makes its `Facts`."""

    def __init__(self, file: int, base: int) -> None:
        self._file = file
        self._base = base
        self._threads: dict[ThreadKey, int] = {}
        self._hosts: list[tuple[str, int]] = []
        self._contexts: dict[int, Context] = {}
        self._gens: dict[tuple[str, int, int], int] = {}
        self._rows: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {name: {} for name in ROW_TABLES}
        self._tails: dict[tuple[int, int, int], deque[dict[str, Any]]] = {}
        self.records = 0
        self.understood = 0

    def thread(self, key: ThreadKey) -> int:
        """Its index: threads are numbered as they are first seen."""
        index = self._threads.get(key)
        if index is None:
            index = self._threads[key] = len(self._threads)
            self._hosts.append((key[0], key[1]))
        return index

    def add(self, key: ThreadKey, offset: int, line: int, rows: Rows) -> None:
        """What one line of this thread said; `offset` in the file, `line` from 1 in the shard."""
        thread = self.thread(key)
        for name, columns in rows:
            pointer = columns.get("ctx", 0)
            if isinstance(pointer, int) and pointer:
                self._enter(thread, pointer, offset, starts=columns.get("event") == "start")
            context = self._contexts.get(thread, (0, -1, -1))
            place = {"thread": thread, "ctx": context[0], "gen": context[1], "offset": offset, "line": line}
            if name == "print":
                self._add_print(place, columns)
            elif name == "op":
                self._add_op(place, columns)
            else:
                self.add_row(name, place, columns)

    def _enter(self, thread: int, pointer: int, offset: int, *, starts: bool) -> None:
        process = (*self._hosts[thread], pointer)
        if starts:
            self._gens[process] = offset
        self._contexts[thread] = (pointer, self._gens.get(process, -1), offset)

    def add_row(self, name: str, place: dict[str, int], columns: dict[str, Any]) -> None:
        """A row of a table that is neither a print nor an operation, where its context is known."""
        full = {**DEFAULTS[name], **columns}
        ts = full.get("ts", nan)
        key = (place["thread"], place["ctx"], place["gen"], *(_hashable(full[text]) for text in _KEYED[name]))
        known = self._rows[name].get(key)
        if known is None:
            full.update(place, count=1)
            if name == "event":
                full.update(last_ts=ts, last_offset=place["offset"])
            self._rows[name][key] = full
            return
        known["count"] += 1
        if name in _MASKED:
            known["channels"] |= full["channels"]
        elif name == "event":
            known.update(last_ts=ts, last_offset=place["offset"])

    def _add_print(self, place: dict[str, int], columns: dict[str, Any]) -> None:
        key = (place["thread"], place["ctx"], place["gen"])
        known = self._rows["print"].get(key)
        if known is None:
            self._rows["print"][key] = {**place, "count": 1, "text": [columns["text"]]}
        else:
            known["count"] += 1
            known["text"].append(columns["text"])

    def _add_op(self, place: dict[str, int], columns: dict[str, Any]) -> None:
        document = {name: columns[name] for name in ("func", "elements", "dtype", "redop", "root")}
        op_count, offset = columns["op_count"], place["offset"]
        own = (place["thread"], place["ctx"], place["gen"])
        self._tails.setdefault(own, deque(maxlen=TAIL)).append({**place, "count": 1, **document, "op_count": op_count})
        key = (*own, *document.values(), columns["nranks"])
        known = self._rows["op"].get(key)
        if known is None:
            self._rows["op"][key] = {
                **place,
                **document,
                "count": 1,
                "nranks": columns["nranks"],
                "last": op_count,
                "last_offset": offset,
            }
        else:
            known["count"] += 1
            known["last"], known["last_offset"] = op_count, offset

    def facts(self, size: int, lines: int) -> Facts:
        """The tables; `size` in bytes and number of lines of the shard."""
        rows = {name: list(same.values()) for name, same in self._rows.items()}
        rows["op"] = _rounded(rows["op"])
        rows["tail"] = [row for tail in self._tails.values() for row in tail]
        for row in rows["print"]:
            row["text"] = "\n".join(row["text"])
        for keyed in rows.values():
            keyed.sort(key=lambda row: (row["thread"], row["offset"]))
        rows["threads"] = [
            {"file": self._file, "host": host, "pid": pid, "tid": tid, "dev": dev}
            for host, pid, tid, dev in self._threads
        ]
        rows["contexts"] = [
            {"thread": thread, "ctx": pointer, "gen": gen, "offset": offset}
            for thread, (pointer, gen, offset) in sorted(self._contexts.items())
        ]
        rows["shards"] = [
            {
                "file": self._file, "base": self._base, "size": size, "lines": lines, "records": self.records,
                "understood": self.understood,
            }
        ]  # fmt: skip
        return Facts(
            {name: table(name, {key: [row[key] for row in rows[name]] for key in SCHEMAS[name]})
             for name in SCHEMAS}
        )  # fmt: skip


def _hashable(value: Any) -> Any:
    """Seconds that are unknown are equal here."""
    return None if isinstance(value, float) and isnan(value) else value


def _rounded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Operations of contexts with more than MOST_EXACT_OPS different ones, by power of two."""
    different: dict[tuple[int, int, int], int] = {}
    for row in rows:
        own = (row["thread"], row["ctx"], row["gen"])
        different[own] = different.get(own, 0) + 1
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        if different[row["thread"], row["ctx"], row["gen"]] > MOST_EXACT_OPS:
            row["elements"] = rounded(row["elements"])
        key = tuple(
            row[name] for name in ("thread", "ctx", "gen", "func", "elements", "dtype", "redop", "root", "nranks")
        )
        known = merged.get(key)
        if known is None:
            merged[key] = row
            continue
        known["count"] += row["count"]
        if row["last_offset"] > known["last_offset"]:
            known["last"], known["last_offset"] = row["last"], row["last_offset"]
    return list(merged.values())
