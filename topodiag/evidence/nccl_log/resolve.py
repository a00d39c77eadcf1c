"""Facts of shards brought to one normal form: the same for every cut, order of files and grouping of the shards.

Shards of one file that follow each other are merged into one run: lines count from the start of the run, a row without
a context takes the one that its thread had before the row's shard, an unknown generation the last Init START before
the row's shard, and rows that became equal are one. What a run cannot say (its file's beginning is not there yet)
stays open and is filled when that shard joins. So `resolve(concat(a, b))` may be taken anywhere in a tree of shards,
and equals `resolve(concat(resolve(a), resolve(b)))`; it is idempotent.

`merge_facts([a, b])` is `resolve(concat([a, b]))` in less memory: one table after the other, each in ranges of threads.
All that a row needs to know beyond its thread (shards, contexts, Init STARTs) is small and at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topodiag.evidence.nccl_log.facts import ROW_TABLES, SCHEMAS, Facts, numbers, strings
from topodiag.evidence.nccl_log.resolve_rows import (
    ROOM,
    Column,
    Columns,
    Ints,
    cut_tails,
    grouped,
    join_prints,
    last_contexts,
    placed,
    record_batch,
    unique,
)

RANGE_ROWS = 1 << 17
"""Rows of one table that are worked on at once, where more than one thread has them."""
_MOST_LINES = (1 << 31) - 1

Keep = Callable[[str, pa.Schema, Iterator[pa.RecordBatch]], pa.Table]
"""Where a table's batches go, and the table that they make."""


def resolve(facts: Facts) -> Facts:
    """The normal form of these facts."""
    return merge_facts([facts])


def merge_facts(parts: Sequence[Facts], keep: Keep | None = None, *, consume: bool = False) -> Facts:
    """The normal form of several facts together. `consume`: `parts` is a list that nobody needs any more; it is
    emptied, so that each table is let go as soon as it was merged."""
    held = [dict(part.tables) for part in parts]
    maps = Facts({}, tuple(each for part in parts for each in part.maps))
    if consume and isinstance(parts, list):
        parts.clear()
    keep = keep or _in_memory
    made: dict[str, pa.Table] = {}
    renumber, made["threads"], file_of, process_of = _threads([each.pop("threads") for each in held])
    runs, made["shards"] = _runs([each.pop("shards") for each in held])
    places = _Places(runs, file_of)
    contexts = _Rows("contexts", [each.pop("contexts") for each in held], renumber)
    context = contexts.columns(0, len(file_of))
    places.locate(context)
    starts = _starts([each["init"] for each in held], renumber, places)
    known = _Known(context, starts, process_of)
    for name in ROW_TABLES:
        rows = _Rows(name, [each.pop(name) for each in held], renumber)
        made[name] = keep(name, SCHEMAS[name], _batches(name, rows, places, known, maps.rest))
        del rows
    made["contexts"] = _in_memory(
        "contexts", SCHEMAS["contexts"], iter([record_batch("contexts", last_contexts(context), {})])
    )
    return Facts({name: made[name] for name in SCHEMAS})


def _in_memory(_name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(list(batches), schema)


def _batches(
    name: str, rows: _Rows, places: _Places, known: _Known, rest: Callable[[], None]
) -> Iterator[pa.RecordBatch]:
    """The normal form of one table, in ranges of threads."""
    for low, high in rows.ranges(RANGE_ROWS if name != "print" else 0):
        columns = rows.columns(low, high)
        rest()
        places.locate(columns)
        known.fill(columns)
        words = rows.words
        if name == "print":
            columns, text = join_prints(columns, words["text"])
            words = {"text": text}
        elif name == "tail":
            columns = cut_tails(columns)
        else:
            columns = grouped(name, columns)
        if (low, high) == (0, rows.threads):
            columns, words = _used(columns, words)
        yield record_batch(name, columns, words)


def _used(columns: Columns, words: dict[str, pa.Array]) -> tuple[Columns, dict[str, pa.Array]]:
    """Without the words that no row has."""
    columns, kept = dict(columns), {}
    for name, every in words.items():
        there = np.zeros(len(every), bool)
        there[columns[name]] = True
        kept[name] = every
        if not there.all():
            columns[name] = (np.cumsum(there, dtype=np.int32) - 1)[columns[name]]
            kept[name] = every.take(_index(np.flatnonzero(there)))
    return columns, kept


def _index(values: npt.NDArray[Any]) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values.astype(np.int64))])


class _Rows:
    """The rows of one table in several facts, to be had by thread. Threads are those of the whole."""

    def __init__(self, name: str, tables: Sequence[pa.Table], renumber: Sequence[Ints]) -> None:
        self._schema = SCHEMAS[name]
        self._parts: list[tuple[pa.Table, Ints, Ints, Ints, dict[str, Ints]]] = []
        self.threads = max((int(number_of.max()) + 1 for number_of in renumber if len(number_of)), default=0)
        self._rows_of = np.zeros(self.threads + 1, np.int64)
        parts = [
            (table if table.column(0).num_chunks == 1 else table.unify_dictionaries(), number_of)
            for table, number_of in zip(tables, renumber, strict=True)
            if table.num_rows
        ]
        self.words, codes = _words(name, [table for table, _ in parts])
        for (table, number_of), recoded in zip(parts, codes, strict=True):
            thread = numbers(table.column("thread"))
            order = np.argsort(number_of, kind="stable")
            there = number_of[thread]
            if (there[1:] < there[:-1]).any():  # of one shard: its threads are numbered as they were met
                table = table.take(_index(np.argsort(there, kind="stable")))
            counts = np.bincount(thread, minlength=len(number_of))
            bounds = np.concatenate([[0], np.cumsum(counts[order])])
            self._rows_of[:-1] += np.bincount(number_of, counts, minlength=self.threads).astype(np.int64)
            self._parts.append((table, number_of, number_of[order], bounds, recoded))

    def ranges(self, most: int) -> Iterator[tuple[int, int]]:
        """Ranges of threads of about `most` rows each (0: all); none without rows."""
        upto = np.cumsum(self._rows_of)
        total = int(upto[-1])
        if not total:
            return
        edges = [0, self.threads]
        if most and total > most:
            edges += (np.searchsorted(upto, np.arange(most, total, most)) + 1).tolist()
        edges = sorted(set(edges))
        yield from pairwise(edges)

    def columns(self, low: int, high: int) -> Columns:
        """The rows of these threads, with threads renumbered and words as codes into `words`."""
        found: dict[str, list[Column]] = {field.name: [] for field in self._schema}
        for table, number_of, ordered, bounds, recoded in self._parts:
            first, last = bounds[np.searchsorted(ordered, [low, high])].tolist()
            if first == last:
                continue
            rows = table.slice(first, last - first)
            for field in self._schema:
                values = numbers(rows.column(field.name))
                if field.name in recoded:
                    values = recoded[field.name][values]
                found[field.name].append(number_of[values].astype(np.int32) if field.name == "thread" else values)
        none = np.zeros(0, np.int64)
        return {name: np.concatenate(values) if values else none for name, values in found.items()}


def _words(name: str, tables: list[pa.Table]) -> tuple[dict[str, pa.Array], list[dict[str, Ints]]]:
    """The words of each column over all tables, sorted, and by table and column the new code of each old one."""
    fields = [field.name for field in SCHEMAS[name] if pa.types.is_dictionary(field.type)]
    codes: list[dict[str, Ints]] = [{} for _ in tables]
    words: dict[str, pa.Array] = {}
    for field in fields:
        own = [table.column(field).chunk(0).dictionary for table in tables]
        every = pa.concat_arrays(own).dictionary_encode() if own else strings([]).dictionary_encode()
        order = pc.sort_indices(every.dictionary)
        words[field] = every.dictionary.take(order)
        rank = np.empty(len(order), np.int32)
        rank[numbers(order)] = np.arange(len(order))
        ends = np.cumsum([len(each) for each in own])
        for recoded, part in zip(codes, np.split(rank[numbers(every)], ends[:-1]), strict=False):
            recoded[field] = part
    return words, codes


def _threads(tables: Sequence[pa.Table]) -> tuple[list[Ints], pa.Table, Ints, Ints]:
    """New number by old for each part, the table without doubles in sorted order, and by new number the file and the
    process."""
    given = [table.unify_dictionaries() for table in tables if table.num_rows]
    words, codes = _words("threads", given)
    columns: Columns = {}
    for name in SCHEMAS["threads"].names:
        values = [numbers(table.column(name)) for table in given]
        if name == "host":
            values = [recoded[name][value] for recoded, value in zip(codes, values, strict=True)]
        columns[name] = np.concatenate(values) if values else np.zeros(0, np.int64)
    size = len(columns["file"])
    first, inverse = unique(list(columns.values()), size)
    kept = {name: values[first] for name, values in columns.items()}
    _, process = unique([kept["file"], kept["host"], kept["pid"]], len(first))
    ends = np.cumsum([table.num_rows for table in tables])
    made = pa.Table.from_batches([record_batch("threads", *_used(kept, words))], SCHEMAS["threads"])
    return np.split(inverse, ends[:-1]) if len(ends) else [], made, kept["file"].astype(np.int64), process


@dataclass(frozen=True, slots=True)
class _Runs:
    """The shards in order of file and base, and the run each belongs to."""

    key: Ints
    file: Ints
    base: Ints
    run: Ints
    lines_before: Ints

    def shard_of(self, file: Ints, offset: Ints) -> Ints:
        """Index of the shard that holds this place, -1 where none is known."""
        if not self.key.size:
            return np.full(len(file), -1, np.int64)
        found = np.searchsorted(self.key, (file << ROOM) + offset, side="right") - 1
        return np.where((found >= 0) & (self.file[np.maximum(found, 0)] == file), found, -1)

    def of(self, values: Ints, shard: Ints, other: int) -> Ints:
        if not values.size:
            return np.full(len(shard), other, np.int64)
        return np.where(shard >= 0, values[np.maximum(shard, 0)], other)


def _runs(tables: Sequence[pa.Table]) -> tuple[_Runs, pa.Table]:
    columns: Columns = {
        name: np.concatenate([numbers(table.column(name)).astype(np.int64) for table in tables] or [np.zeros(0, int)])
        for name in SCHEMAS["shards"].names
    }
    order = np.lexsort((columns["size"], columns["base"], columns["file"]))
    columns = {name: values[order] for name, values in columns.items()}
    file, base, size, lines = (columns[name] for name in ("file", "base", "size", "lines"))
    breaks = np.ones(len(file), bool)
    breaks[1:] = (file[1:] != file[:-1]) | (base[1:] != base[:-1] + size[:-1])
    run = np.cumsum(breaks) - 1
    starts = np.flatnonzero(breaks)
    total = np.cumsum(lines) - lines
    before = total - total[starts][run] if len(file) else total
    merged = {"file": file[starts], "base": base[starts]}
    for name in ("size", "lines", "records", "understood"):
        merged[name] = np.add.reduceat(columns[name], starts) if len(starts) else columns[name]
    table = pa.Table.from_batches([record_batch("shards", merged, {})], SCHEMAS["shards"])
    return _Runs((file << ROOM) + base, file, base, run, before), table


@dataclass(frozen=True, slots=True)
class _Places:
    """The shards, and the file of each thread."""

    runs: _Runs
    file_of: Ints

    def locate(self, columns: Columns) -> None:
        """Adds `~base` of each row's shard and its `~run`; lines count from the start of the run."""
        runs = self.runs
        shard = runs.shard_of(self.file_of[columns["thread"]], columns["offset"])
        columns["~base"] = runs.of(runs.base, shard, 0)
        columns["~run"] = runs.of(runs.run, shard, -1)
        if "line" in columns:
            lines = columns["line"] + runs.of(runs.lines_before, shard, 0)
            columns["line"] = np.minimum(lines, _MOST_LINES).astype(np.int32)


def _starts(tables: Sequence[pa.Table], renumber: Sequence[Ints], places: _Places) -> Columns:
    """Thread, pointer, offset and run of all Init STARTs."""
    found: Columns = {"thread": np.zeros(0, np.int64), "ctx": np.zeros(0, np.uint64), "offset": np.zeros(0, np.int64)}
    for table, number_of in zip(tables, renumber, strict=True):
        if not table.num_rows:
            continue
        table = table.unify_dictionaries()
        words = table.column("event").chunk(0).dictionary.to_pylist()
        begun = np.flatnonzero(numbers(table.column("event")) == (words.index("start") if "start" in words else -1))
        own = {name: numbers(table.column(name))[begun] for name in found}
        own["thread"] = number_of[own["thread"]]
        found = {name: np.concatenate([found[name], own[name]]) for name in found}
    places.locate(found)
    return found


class _Known:
    """Contexts of threads and Init STARTs, to look up what a row's own shard could not say."""

    def __init__(self, contexts: Columns, starts: Columns, process_of: Ints) -> None:
        self._process_of = process_of
        self._pointers = np.unique(starts["ctx"])
        pair = self._pair(starts["thread"], starts["ctx"])
        self._pairs = np.unique(pair)
        number = np.searchsorted(self._pairs, pair)
        order = np.lexsort((starts["offset"], number))
        self._start_number = number[order]
        self._start_key = (number[order] << ROOM) + starts["offset"][order]
        self._start_offset, self._start_run = starts["offset"][order], starts["~run"][order]
        self._generations(contexts)
        order = np.argsort(placed(contexts), kind="stable") if len(contexts["offset"]) else np.zeros(0, np.int64)
        self._contexts = {name: values[order] for name, values in contexts.items()}
        self._context_key = placed(self._contexts)

    def _pair(self, thread: Ints, ctx: Column) -> Ints:
        """Process and pointer as one number, -1 where no START has the pointer."""
        if not self._pointers.size:
            return np.full(len(thread), -1, np.int64)
        at = np.minimum(np.searchsorted(self._pointers, ctx), len(self._pointers) - 1)
        return np.where(self._pointers[at] == ctx, self._process_of[thread] * len(self._pointers) + at, -1)

    def fill(self, columns: Columns) -> None:
        """Context and generation of rows whose shard did not say them, from the shards before it in the same run."""
        open_ = np.flatnonzero(columns["ctx"] == 0)
        if open_.size and self._context_key.size:
            thread = columns["thread"][open_].astype(np.int64)
            key = (thread << ROOM) + columns["~base"][open_]
            found = np.searchsorted(self._context_key, key, side="left") - 1
            place = np.maximum(found, 0)
            known = (found >= 0) & (self._contexts["thread"][place] == thread)
            known &= self._contexts["~run"][place] == columns["~run"][open_]
            for name in ("ctx", "gen"):
                values = columns[name].copy()
                values[open_[known]] = self._contexts[name][place[known]]
                columns[name] = values
        self._generations(columns)

    def _generations(self, columns: Columns) -> None:
        open_ = np.flatnonzero((columns["gen"] < 0) & (columns["ctx"] != 0))
        if not open_.size or not self._start_key.size:
            return
        pair = self._pair(columns["thread"][open_], columns["ctx"][open_])
        number = np.minimum(np.searchsorted(self._pairs, pair), len(self._pairs) - 1)
        asked = self._pairs[number] == pair
        key = (number << ROOM) + columns["~base"][open_]
        found = np.searchsorted(self._start_key, key, side="left") - 1
        place = np.maximum(found, 0)
        known = (found >= 0) & asked & (self._start_number[place] == number)
        known &= self._start_run[place] == columns["~run"][open_]
        values = columns["gen"].copy()
        values[open_[known]] = self._start_offset[place[known]]
        columns["gen"] = values
