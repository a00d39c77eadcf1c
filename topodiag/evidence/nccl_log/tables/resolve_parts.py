"""The rows of one table in several facts, to be had by ranges of threads without copying what is not asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topodiag.evidence.nccl_log.tables.facts import FEW_WORDS, SCHEMAS, alike, numbers, plain, strings
from topodiag.evidence.nccl_log.tables.resolve_rows import Column, Columns, Ints
from topodiag.lazy import dataclass

Locate = Callable[[Columns], None]
"""Writes `~base` of each row's shard and its `~run`; lines count from the start of the run then."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Rows in the order of their threads. `number_of`: the number in the whole of each thread of their facts, which
    rises as these do."""

    held: dict[str, Column]
    number_of: Ints
    codes: dict[str, Ints]

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

    def __init__(self, name: str, tables: Sequence[pa.Table], renumber: Sequence[Ints], locate: Locate) -> None:
        self.name, self._locate = name, locate
        self._schema = SCHEMAS[name]
        self._runs: list[_Run] = []
        self.threads = max((int(number_of.max()) + 1 for number_of in renumber if len(number_of)), default=0)
        self._rows_of = np.zeros(self.threads + 1, np.int64)
        parts = [(alike(table), number_of) for table, number_of in zip(tables, renumber, strict=True) if table.num_rows]
        self.words, codes = sorted_words(name, [table for table, _ in parts])
        for part, recoded in zip(parts, codes, strict=True):
            other = {name: codes for name, codes in recoded.items() if (codes != np.arange(len(codes))).any()}
            self._add(*part, other)

    def _add(self, table: pa.Table, number_of: Ints, recoded: dict[str, Ints]) -> None:
        thread = numbers(table.column("thread"))
        counts = np.bincount(thread, minlength=len(number_of))
        self._rows_of[:-1] += np.bincount(number_of, counts, minlength=self.threads).astype(np.int64)
        if not _rising(number_of) or not _rising(thread):
            # As the plain extractor makes them: threads as they were met.
            there = number_of[thread]
            table = table.take(plain(np.argsort(there, kind="stable"), pa.int64()))
            table = table.set_column(0, self._schema.field(0), plain(np.sort(there), pa.int32()))
            number_of = np.arange(self.threads)
        for batch in table.to_batches():
            columns = {name: numbers(batch.column(at)) for at, name in enumerate(self._schema.names)}
            self._runs.append(_Run(columns, number_of, recoded))

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
        columns = {column: np.empty(size, kind) for column, kind in _WIDTHS[self.name].items()}
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


_WIDTHS: Mapping[str, Mapping[str, np.dtype[Any]]] = {
    name: {
        name.name: np.dtype(
            (name.type.index_type if pa.types.is_dictionary(name.type) else name.type).to_pandas_dtype()
        )
        for name in schema
    }
    for name, schema in SCHEMAS.items()
}
"""By table and column the type of its numbers, or of its codes of words."""


def sorted_words(name: str, tables: Sequence[pa.Table]) -> tuple[dict[str, pa.Array], list[dict[str, Ints]]]:
    """The words of each column over all tables, sorted, and by table and column the new code of each old one."""
    fields = [field.name for field in SCHEMAS[name] if pa.types.is_dictionary(field.type)]
    codes: list[dict[str, Ints]] = [{} for _ in tables]
    words: dict[str, pa.Array] = {}
    for field in fields:
        own = [table.column(field).chunk(0).dictionary for table in tables]
        words[field], places = sorted_once(pa.concat_arrays(own) if own else strings([]))
        ends = np.cumsum([len(word) for word in own])
        for recoded, part in zip(codes, np.split(places, ends[:-1]), strict=False):
            recoded[field] = part
    return words, codes


def sorted_once(column: pa.Array) -> tuple[pa.Array, npt.NDArray[Any]]:
    """The words in their order, each once, and the place of each of these among them."""
    if len(column) <= FEW_WORDS:
        held = column.to_pylist()
        place = {word: number for number, word in enumerate(sorted(set(held)))}
        return strings(place), np.array([place[word] for word in held], np.int32)
    import pyarrow.compute as pc  # noqa: PLC0415 - 40 ms that few words do not need

    encoded = column.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    rank = np.empty(len(order), np.int32)
    rank[numbers(order)] = np.arange(len(order))
    return encoded.dictionary.take(order), rank[numbers(encoded)]
