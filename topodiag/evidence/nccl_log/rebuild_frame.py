"""Resolved facts as plain columns, for the steps of the reconstruction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topodiag.evidence.nccl_log.facts import SCHEMAS, Facts, SourceFile, numbers
from topodiag.model.provenance import Origin

Ints = npt.NDArray[np.int64]

BATCH_ROWS = 1 << 18
"""Connections that are looked at together."""


@dataclass(frozen=True, slots=True)
class Rows:
    """One table: numbers by column; words as codes, with the words of each column beside."""

    columns: Mapping[str, npt.NDArray[Any]]
    words: Mapping[str, tuple[str, ...]]
    size: int

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def word(self, name: str, row: int) -> str:
        return self.words[name][int(self.columns[name][row])]

    def is_word(self, name: str, *wanted: str) -> npt.NDArray[np.bool_]:
        """Rows whose word in this column is one of these."""
        chosen = np.array([word in wanted for word in self.words[name]], bool)
        return chosen[self.columns[name]] if chosen.size else np.zeros(self.size, bool)

    def lists(self, *names: str) -> Iterator[tuple[Any, ...]]:
        return zip(*(self.columns[name].tolist() for name in names), strict=True)


@dataclass(frozen=True, slots=True)
class Frame:
    """All tables but the connections, with the file of each thread at hand. Of connections there may be millions of
    rows: they come in batches."""

    tables: Mapping[str, Rows]
    files: tuple[str, ...]
    hosts: tuple[str, ...]
    """Of each thread."""
    sources: tuple[str, ...]
    """The path of each thread's file."""
    vias: tuple[str, ...]
    """Words of the column `via` of connections."""
    facts: Facts

    def __getitem__(self, name: str) -> Rows:
        return self.tables[name]

    def file_of(self, thread: int) -> str:
        return self.sources[thread]

    def origin(self, table: str, row: int, text: str = "") -> Origin:
        rows = self.tables[table]
        return Origin(self.sources[rows["thread"][row]], int(rows["line"][row]), text)

    @property
    def connection_rows(self) -> int:
        return int(self.facts["conn"].num_rows)

    def connections(self) -> Iterator[Rows]:
        """The connections in order of thread and offset; columns keep the width of their table."""
        every = _alike(self.facts["conn"])
        for first in range(0, every.num_rows, BATCH_ROWS):
            rows = every.slice(first, BATCH_ROWS)
            columns = {name: numbers(rows.column(name)) for name in rows.schema.names}
            yield Rows(columns, {"via": self.vias}, rows.num_rows)
            self.facts.rest()

    def connection_spans(self) -> Mapping[str, tuple[int, int]]:
        """Least and largest number of those columns of connections that the lines fill; 0 and 0 without any."""
        made: dict[str, tuple[int, int]] = {}
        for name in ("rank", "peer", "conn", "direction", "net_dev", "proxy", "count"):
            low, high = 0, 0
            for chunk in self.facts["conn"].column(name).chunks:
                for first in range(0, len(chunk), BATCH_ROWS):
                    values = numbers(chunk.slice(first, BATCH_ROWS))
                    low, high = min(low, int(values.min())), max(high, int(values.max()))
            made[name] = low, high
            self.facts.rest()
        return made


def open_frame(facts: Facts, files: Sequence[SourceFile]) -> Frame:
    tables = {name: _rows(facts[name]) for name in SCHEMAS if name != "conn"}
    facts.rest()
    threads = tables["threads"]
    hosts = tuple(threads.word("host", i) for i in range(threads.size))
    paths = tuple(each.path for each in files)
    sources = tuple(paths[file] if 0 <= file < len(paths) else "" for file in threads["file"].tolist())
    return Frame(tables, paths, hosts, sources, _words(_alike(facts["conn"]).column("via")), facts)


def _alike(rows: pa.Table) -> pa.Table:
    """The table with one set of words for all chunks."""
    return rows.unify_dictionaries() if rows.column(0).num_chunks > 1 else rows


def _words(column: pa.ChunkedArray) -> tuple[str, ...]:
    return tuple(column.chunk(0).dictionary.to_pylist()) if column.num_chunks else ()


def _rows(rows: pa.Table) -> Rows:
    columns: dict[str, npt.NDArray[Any]] = {}
    words: dict[str, tuple[str, ...]] = {}
    rows = _alike(rows)
    for field in rows.schema:
        column = rows.column(field.name)
        values = numbers(column)
        if pa.types.is_dictionary(field.type):
            words[field.name] = _words(column)
        columns[field.name] = values.astype(np.int64) if values.dtype.kind == "i" else values
    return Rows(columns, words, rows.num_rows)


def groups(keys: Ints) -> Iterator[tuple[int, Ints]]:
    """(key, rows in their order) for each key that is not negative."""
    order = np.argsort(keys, kind="stable")
    order = order[keys[order] >= 0]
    if not order.size:
        return
    bounds = np.flatnonzero(np.diff(keys[order]) != 0) + 1
    for rows in np.split(order, bounds):
        yield int(keys[rows[0]]), rows
