"""The rows of one table in several facts, to be had by ranges of threads without copying what is not asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from topodiag.evidence.nccl_log.tables.facts import SCHEMAS, WORDED, Column, Table
from topodiag.evidence.nccl_log.tables.resolve_rows import Columns, Ints
from topodiag.lazy import dataclass

Locate = Callable[[Columns], None]
"""Writes `~base` of each row's shard and its `~run`; lines count from the start of the run then."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Rows in the order of their threads. `number_of`: the number in the whole of each thread of their facts, which
    rises as these do."""

    held: Mapping[str, Column]
    number_of: Ints
    codes: dict[str, Column]

    def between(self, low: int, high: int) -> slice:
        """The rows of threads from `low` to below `high`."""
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
        thread = table["thread"]
        counts = np.bincount(thread, minlength=len(number_of))
        self._rows_of[:-1] += np.bincount(number_of, counts, minlength=self.threads).astype(np.int64)
        if not _rising(number_of) or not _rising(thread):
            # As the plain extractor makes them: threads as they were met.
            there = number_of[thread].astype(thread.dtype)
            order = np.argsort(there, kind="stable")
            table = table.part(order).changed(thread=there[order])
            number_of = np.arange(self.threads)
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
        edges = sorted({min(edge, self.threads) for edge in edges})
        yield from pairwise(edges)

    def columns(self, low: int, high: int) -> Columns:
        """The rows of these threads, located, with threads renumbered and words as codes into `words`."""
        pairs = [(run, run.between(low, high)) for run in self._runs]
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


def sorted_words(name: str, tables: Sequence[Table]) -> tuple[dict[str, list[str]], list[dict[str, Column]]]:
    """The words of each column over all tables, sorted, and by table and column the new code of each old one."""
    codes: list[dict[str, Column]] = [{} for _ in tables]
    words: dict[str, list[str]] = {}
    for column in WORDED[name]:
        words[column] = sorted(set[str]().union(*(table.words[column] for table in tables)))
        place = {word: number for number, word in enumerate(words[column])}
        for recoded, table in zip(codes, tables, strict=True):
            recoded[column] = np.array([place[word] for word in table.words[column]], np.int32)
    return words, codes
