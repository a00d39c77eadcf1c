"""Facts of shards brought to one normal form: the same for every cut, order of files and grouping of the shards.

Shards of one file that follow each other are merged into one run: lines count from the start of the run, a row without
a context takes the one that its thread had before the row's shard, an unknown generation the last Init START before
the row's shard, and rows that became equal are one. What a run cannot say (its file's beginning is not there yet)
stays open and is filled when that shard joins. With `concat`, all rows of all parts and threads numbered
anew, `resolve(concat(a, b))` may be taken anywhere in a tree of shards, and equals
`resolve(concat(resolve(a), resolve(b)))`; it is idempotent.

`merge_facts([a, b])` is `resolve(concat([a, b]))` in less memory: one table after the other, each in ranges of threads.
All that a row needs to know beyond its thread (shards, contexts, Init STARTs) is small and at hand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from topodiag.evidence.nccl_log.tables import facts as fact_tables
from topodiag.evidence.nccl_log.tables import resolve_rows
from topodiag.evidence.nccl_log.tables.facts import ROOM, ROW_TABLES, SCHEMAS, Column, Facts, Marks, Table, used
from topodiag.evidence.nccl_log.tables.resolve_rows import Columns, Ints, sorted_words
from topodiag.evidence.nccl_log.tables.saved import Store, in_memory
from topodiag.lazy import dataclass
from topodiag.model.connections import unique_rows

if TYPE_CHECKING:
    from concurrent.futures import Future

RANGE_ROWS = 1 << 17
"""Rows of one table that are worked on at once, where more than one thread has them."""
_AHEAD = 2
"""Ranges per thread that may wait, done, until it is their turn."""
_MOST_LINES = (1 << 31) - 1
_Made = TypeVar("_Made")


def resolve(facts: Facts) -> Facts:
    """The normal form of these facts."""
    return merge_facts([facts])


def merge_facts(parts: list[Facts], store: Store | None = None, *, threads: int = 1) -> Facts:
    """The normal form of several facts together. `parts` is emptied, so that each table is let go as soon as it was
    merged. What is large goes to `store`. `threads`: how many work on it."""
    held: list[dict[str, Table]] = [dict(part.tables) for part in parts]
    maps = Facts({}, tuple(mapped for part in parts for mapped in part.maps))
    parts.clear()
    store = store or in_memory()
    merged: dict[str, Table] = {}
    renumber, merged["threads"], file_of, process_of = _threads([facts.pop("threads") for facts in held])
    shards = _Shards([facts.pop("shards") for facts in held], file_of)
    merged["shards"] = shards.table
    context = Rows("contexts", [facts.pop("contexts") for facts in held], renumber, shards.locate).columns(
        0, len(file_of)
    )
    starts = _starts(Rows("init", [facts["init"] for facts in held], renumber, shards.locate))
    known = _Contexts(context, starts, process_of)

    for facts, table in zip(held, _few_events([facts.pop("event") for facts in held], renumber, file_of), strict=True):
        facts["event"] = table
    most = {name: sum(len(facts[name]) for facts in held) for name in ROW_TABLES}

    def jobs() -> Iterator[Callable[[], tuple[str, Table]]]:
        for name in ROW_TABLES:
            rows = Rows(name, [facts.pop(name) for facts in held], renumber, shards.locate)
            for low, high in rows.ranges(RANGE_ROWS if name != "print" else 0):
                maps.rest()
                yield partial(_range, rows, known, low, high)

    for name, batches in groupby(_in_turn(jobs(), threads), itemgetter(0)):
        merged[name] = store.keep(name, most[name], (batch for _, batch in batches))
    for name in ROW_TABLES:
        if name not in merged:
            merged[name] = store.keep(name, 0, iter(()))
    merged["contexts"] = _table("contexts", resolve_rows.last_contexts(context), {})
    return Facts({name: merged[name] for name in SCHEMAS}, store.maps)


def _few_events(tables: list[Table], renumber: Sequence[Ints], file_of: Ints) -> list[Table]:
    """The events without those that are left out of the whole: before their words are joined."""
    if sum(map(len, tables)) <= resolve_rows.MOST_EVENTS:
        return tables
    shapes: list[Ints] = []
    places: list[tuple[Ints, Ints]] = []
    for table, number_of in zip(tables, renumber, strict=True):
        shapes.append(resolve_rows.shapes_of(zip(table.values("level"), table.values("text"), strict=True)))
        places.append((table["offset"], file_of[number_of[table["thread"]]]))
    order = np.lexsort([np.concatenate(row) for row in zip(*places, strict=True)])
    kept = np.zeros(len(order), bool)
    kept[order[resolve_rows.first_of_each(np.concatenate(shapes)[order], resolve_rows.MOST_EVENTS, 1)]] = True
    parts = np.split(kept, np.cumsum(list(map(len, tables)))[:-1])
    return [
        table if own.all() else _table("event", *_used(table.part(own).columns, table.words))
        for table, own in zip(tables, parts, strict=True)
    ]


def _range(rows: Rows, known: _Contexts, low: int, high: int) -> tuple[str, Table]:
    """The normal form of one table's rows of these threads."""
    name, columns = rows.name, rows.columns(low, high)
    known.fill(columns)
    words: Mapping[str, Sequence[str]] = rows.words
    if name == "print":
        columns, text = resolve_rows.join_prints(columns, words["text"])
        words = {"text": text}
    elif name == "tail":
        columns = resolve_rows.cut_tails(columns)
    else:
        columns = resolve_rows.grouped(name, columns)
    if (low, high) == (0, rows.threads):
        columns, words = _used(columns, words)
    return name, _table(name, columns, words)


def _table(name: str, columns: Columns, words: Mapping[str, Sequence[str]]) -> Table:
    """These columns as far as the table has them, in its order and types."""
    return Table({column: columns[column].astype(kind, copy=False) for column, kind in SCHEMAS[name].items()}, words)


def _in_turn(jobs: Iterator[Callable[[], _Made]], threads: int) -> Iterator[_Made]:
    """What the jobs make, in their order; some are done ahead where there are threads for it, of which this is one."""
    if threads < 2:
        for job in jobs:
            yield job()
        return
    from concurrent.futures import Future, ThreadPoolExecutor  # noqa: PLC0415 - where there are threads

    with ThreadPoolExecutor(threads - 1) as pool:
        waiting: deque[Future[_Made]] = deque()
        for job in jobs:
            if sum(not future.done() for future in waiting) < threads:
                waiting.append(pool.submit(job))
            else:
                here: Future[_Made] = Future()
                here.set_result(job())
                waiting.append(here)
            while waiting and (waiting[0].done() or len(waiting) > _AHEAD * threads):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _used(
    columns: Mapping[str, Column], words: Mapping[str, Sequence[str]]
) -> tuple[Columns, dict[str, Sequence[str]]]:
    """Without the words that no row has."""
    left, kept = dict(columns), {}
    for name, own in words.items():
        left[name], kept[name] = used(columns[name], own)
    return left, kept


def _threads(tables: Sequence[Table]) -> tuple[list[Ints], Table, Ints, Ints]:
    """New number by old for each part, the table without doubles in sorted order, and by new number the file and the
    process."""
    words, codes = sorted_words("threads", tables)
    columns: Columns = {}
    for name, kind in SCHEMAS["threads"].items():
        values = [table[name] for table in tables]
        if name in words:
            values = [recoded[name][value] for recoded, value in zip(codes, values, strict=True)]
        columns[name] = np.concatenate(values) if values else np.zeros(0, kind)
    first, inverse = unique_rows(list(columns.values()))
    kept = {name: values[first] for name, values in columns.items()}
    _, process = unique_rows([kept["file"], kept["host"], kept["pid"]])
    ends = np.cumsum(list(map(len, tables)))
    threads = _table("threads", *_used(kept, words))
    return np.split(inverse, ends[:-1]) if len(ends) else [], threads, kept["file"].astype(np.int64), process


class _Shards:
    """The shards in order of file and base, the run each belongs to, and the file of each thread. What stands behind
    the last shard, where the number -1 leads to, is for places in none."""

    def __init__(self, tables: Sequence[Table], file_of: Ints) -> None:
        columns: Columns = {
            name: np.concatenate([table[name].astype(np.int64) for table in tables] or [np.zeros(0, np.int64)])
            for name in SCHEMAS["shards"]
        }
        order = np.lexsort((columns["size"], columns["base"], columns["file"]))
        columns = {name: values[order] for name, values in columns.items()}
        file, base, size, lines = (columns[name] for name in ("file", "base", "size", "lines"))
        joins = np.zeros(len(file), bool)
        joins[1:] = (file[1:] == file[:-1]) & (base[1:] == base[:-1] + size[:-1])
        run = np.cumsum(~joins) - 1
        starts = np.flatnonzero(~joins)
        total = np.cumsum(lines) - lines
        merged = {"file": file[starts], "base": base[starts]}
        for name in ("size", "lines", "records", "understood"):
            merged[name] = np.add.reduceat(columns[name], starts) if len(starts) else columns[name]
        self.table = _table("shards", merged, {})
        self._file_of, self._key = file_of, (file << ROOM) + base
        self._file, self._base, self._run = np.append(file, -1), np.append(base, 0), np.append(run, -1)
        self._lines_before = np.append(total - total[starts][run] if len(file) else total, 0)

    def locate(self, columns: Columns) -> None:
        """Writes `~base` of each row's shard and its `~run`; lines count from the start of the run."""
        file = self._file_of[columns["thread"]]
        shard = np.searchsorted(self._key, (file << ROOM) + columns["offset"], side="right") - 1
        shard[self._file[shard] != file] = -1
        columns["~base"][:], columns["~run"][:] = self._base[shard], self._run[shard]
        if "line" in columns:
            columns["line"][:] = np.minimum(columns["line"] + self._lines_before[shard], _MOST_LINES)


def _starts(init: Rows) -> Columns:
    """Thread, pointer, offset, shard and run of all Init STARTs."""
    columns = init.columns(0, init.threads)
    begun = np.isin(columns["event"], [code for code, word in enumerate(init.words["event"]) if word == "start"])
    return {name: columns[name][begun] for name in ("thread", "ctx", "offset", "~base", "~run")}


class _Contexts:
    """Contexts of threads and Init STARTs, to look up what a row's own shard could not say."""

    def __init__(self, contexts: Columns, starts: Columns, process_of: Ints) -> None:
        self._process_of = process_of
        self._pointers = fact_tables.distinct(starts["ctx"])
        self._starts, self._contexts = starts | {"gen": starts["offset"]}, contexts
        self._of_pairs = Marks(self._pair(starts["thread"], starts["ctx"]), starts["offset"])
        self._generations(contexts)
        self._of_threads = Marks(contexts["thread"].astype(np.int64), contexts["offset"])

    def _pair(self, thread: Ints, ctx: Column) -> Ints:
        """Process and pointer as one number, -1 where no START has the pointer."""
        number = fact_tables.place_in(self._pointers, ctx)
        return np.where(number >= 0, self._process_of[thread] * len(self._pointers) + number, -1)

    def fill(self, columns: Columns) -> None:
        """Context and generation of rows whose shard did not say them, from the shards before it in the same run."""
        rows = np.flatnonzero((columns["ctx"] == 0) | (columns["gen"] < 0))
        if not rows.size:
            return
        asked = {name: columns[name][rows] for name in ("thread", "ctx", "gen", "~base", "~run")}
        new = fact_tables.breaks(asked.values())  # of many rows that follow each other the same is asked
        heads = {name: values[new] for name, values in asked.items()}
        open_ = np.flatnonzero(heads["ctx"] == 0)
        self._take(heads, open_, self._of_threads.last(*_before(heads, open_, heads["thread"])), self._contexts)
        self._generations(heads)
        of = np.cumsum(new) - 1
        for name in ("ctx", "gen"):
            columns[name][rows] = heads[name].take(of)

    def _generations(self, columns: Columns) -> None:
        open_ = np.flatnonzero((columns["gen"] < 0) & (columns["ctx"] != 0))
        pair = self._pair(columns["thread"], columns["ctx"])
        self._take(columns, open_, self._of_pairs.last(*_before(columns, open_, pair)), self._starts)

    def _take(self, columns: Columns, rows: Ints, mark: Ints, source: Columns) -> None:
        """Context and generation of these rows by their marks, where those stand in the same run."""
        rows, mark = rows[mark >= 0], mark[mark >= 0]
        same = source["~run"][mark] == columns["~run"][rows]
        for name in ("ctx", "gen"):
            columns[name] = columns[name].copy()
            columns[name][rows[same]] = source[name][mark[same]]


def _before(columns: Columns, rows: Ints, key: Column) -> tuple[Column, Ints]:
    """The keys of these rows, and the last offset before their shards."""
    return key[rows], columns["~base"][rows] - 1


Locate = Callable[[Columns], None]
"""Writes `~base` of each row's shard and its `~run`; lines count from the start of the run then."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Rows as they were met. `number_of`: the number in the whole of each thread of their facts."""

    held: Mapping[str, Column]
    number_of: Ints
    codes: dict[str, Column]

    def in_order(self, threads: int) -> _Run:
        """The same in the order of their threads, of which there are so many, and whose numbers rise."""
        thread = self.held["thread"]
        if _rising(self.number_of) and _rising(thread):
            return self
        there = self.number_of[thread].astype(thread.dtype)
        order = np.argsort(there, kind="stable")
        held = {name: column[order] for name, column in self.held.items()}
        return _Run(held | {"thread": there[order]}, np.arange(threads), self.codes)

    def between(self, low: int, high: int) -> slice:
        """The rows of threads from `low` to below `high`, where they are in order."""
        thread = self.held["thread"]
        # Of the column's own width: of any other, searchsorted copies all of it.
        own = np.searchsorted(self.number_of, [low, high]).astype(thread.dtype)
        return slice(*np.searchsorted(thread, own).tolist())

    def put(self, rows: slice, columns: Columns) -> None:
        """Writes these rows."""
        for name, values in self.held.items():
            columns[name][:] = values[rows]
        for name, number_of in (("thread", self.number_of), *self.codes.items()):
            columns[name][:] = number_of.take(columns[name])


class Rows:
    """Threads are those of the whole; `renumber` gives their numbers, by facts and thread."""

    def __init__(self, name: str, tables: Sequence[Table], renumber: Sequence[Ints], locate: Locate) -> None:
        self.name, self._locate = name, locate
        self._runs: list[_Run] = []
        self.threads = max((int(number_of.max()) + 1 for number_of in renumber if len(number_of)), default=0)
        self._rows_of = np.zeros(self.threads + 1, np.int64)
        parts = [(table, number_of) for table, number_of in zip(tables, renumber, strict=True) if len(table)]
        self.words, codes = sorted_words(name, [table for table, _ in parts])
        for part, recoded in zip(parts, codes, strict=True):
            other = {name: codes for name, codes in recoded.items() if (codes != np.arange(len(codes))).any()}
            self._add(*part, other)

    def _add(self, table: Table, number_of: Ints, recoded: dict[str, Column]) -> None:
        counts = np.bincount(table["thread"], minlength=len(number_of))
        self._rows_of[:-1] += np.bincount(number_of, counts, minlength=self.threads).astype(np.int64)
        self._runs.append(_Run(table.columns, number_of, recoded))

    def ranges(self, most: int) -> Iterator[tuple[int, int]]:
        """Ranges of threads of about `most` rows each (0: all); none without rows."""
        upto = np.cumsum(self._rows_of)
        total = int(upto[-1])
        if not total:
            return
        edges = [0, self.threads]
        if most and total > most:
            edges += (np.searchsorted(upto, np.arange(most, total, most)) + 1).tolist()
            self._runs = [run.in_order(self.threads) for run in self._runs]
        edges = sorted({min(edge, self.threads) for edge in edges})
        yield from pairwise(edges)

    def columns(self, low: int, high: int) -> Columns:
        """The rows of these threads, located, with threads renumbered and words as codes into `words`."""
        whole = (low, high) == (0, self.threads)
        pairs = [(run, slice(0, len(run.held["thread"])) if whole else run.between(low, high)) for run in self._runs]
        size = sum(rows.stop - rows.start for _, rows in pairs)
        columns = {column: np.empty(size, kind) for column, kind in SCHEMAS[self.name].items()}
        columns |= {"~base": np.empty(size, np.int64), "~run": np.empty(size, np.int64)}
        first = 0
        for run, rows in pairs:
            last = first + rows.stop - rows.start
            if last > first:
                run.put(rows, {name: values[first:last] for name, values in columns.items()})
            first = last
        self._locate(columns)
        return columns


def _rising(values: Column) -> bool:
    return bool((values[1:] >= values[:-1]).all())
