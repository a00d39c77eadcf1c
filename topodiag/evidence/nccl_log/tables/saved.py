"""Facts on disk: large tables while they are worked on, mapped, so that any log fits, and facts that are kept.

Files of the former are temporary and have no name: they are gone with the process, however it ends. `TMPDIR` says where
they are. The file of the latter is a line that says what it is and a line of JSON with the files that were read; then,
packed by zstd, each table: a line of JSON with its columns, the number of its rows and the words, and the columns as
numbers, some rows at a time.
"""

from __future__ import annotations

import ctypes
import io
import json
import mmap
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import accumulate
from typing import IO, Any, BinaryIO

import numpy as np

from topodiag.evidence.marks import FACTS_MARK
from topodiag.evidence.nccl_log.tables import facts as fact_tables
from topodiag.evidence.nccl_log.tables.facts import BATCH_ROWS, SCHEMAS, Column, Facts, SourceFile, Table, table
from topodiag.evidence.nccl_log.tables.resolve_rows import sorted_words
from topodiag.model.errors import InputError, TopodiagError


def give_back() -> None:
    """Reading a large log leaves some 300 MB that nothing uses, in pieces between what is kept: the C library holds
    them until they are asked for. Does nothing where it is not glibc, which alone has malloc_trim(3)."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def reuse() -> None:
    """Before logs are read: of what is let go the C library keeps 64 MB, and maps nothing below 32 MB by itself. So it
    does after the first piece of 30 MB was let go; page faults until then take a tenth of the time of a short log."""
    with suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)
        mallopt(_M_TRIM_THRESHOLD, 64 << 20)


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Of glibc's mallopt(3)."""

SMALL_BYTES = 16 << 20
"""Columns of connections up to this size together stay in memory."""
SMALL_TABLE = 1 << 14
"""A table of facts up to this size stays in memory: thousands of facts may wait on disk."""
_ALIGNED = 64
"""Bytes that the place of a column in its file is a multiple of."""


class Columns:
    """Columns of these types, of at most so many rows. They go to one file once they take more than `small` bytes, one
    behind the other: of what is not written there the disk holds nothing."""

    def __init__(self, kinds: Mapping[str, np.dtype[Any]], most: int, small: int, what: str = "facts") -> None:
        self._kinds, self._small, self._what = kinds, small, what
        self._width = sum(kind.itemsize for kind in kinds.values())
        sizes = [-(-most * kind.itemsize // _ALIGNED) * _ALIGNED for kind in kinds.values()]
        self._starts = dict(zip(kinds, accumulate(sizes, initial=0), strict=False))
        self._size = sum(sizes)
        self._held: list[dict[str, Column]] = []
        self._file: IO[bytes] | None = None
        self._rows = self._written = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, rows: Mapping[str, Column]) -> None:
        """Some more rows of every column. Raises TopodiagError where the disk is full."""
        self._held.append({name: np.ascontiguousarray(rows[name], kind) for name, kind in self._kinds.items()})
        self._rows += len(next(iter(rows.values())))
        if self._file is not None or self._rows * self._width > self._small:
            try:
                self._write()
            except OSError as error:
                self.close()
                raise disk_full(self._what, error) from None

    def close(self) -> None:
        """Gives up what no one has taken."""
        if self._file is not None:
            self._file.close()

    def _write(self) -> None:
        """What is held, to the file."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="topodiag-")  # noqa: SIM115 - see `take`
            self._file.truncate(self._size)
        for part in self._held:
            for name, column in part.items():
                self._file.seek(self._starts[name] + self._written * column.itemsize)
                self._file.write(column.data)
            self._written += len(column)
        self._file.flush()
        self._held.clear()

    def take(self) -> tuple[dict[str, Column], tuple[mmap.mmap, ...]]:
        """The columns, once, and the map of the file that holds them if they are large."""
        if self._file is None:
            held = self._held
            return {
                name: np.concatenate([part.pop(name) for part in held]) if held else np.zeros(0, kind)
                for name, kind in self._kinds.items()
            }, ()
        with self._file as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return {
            name: np.frombuffer(mapped, kind, self._rows, self._starts[name]) for name, kind in self._kinds.items()
        }, (mapped,)


class Store:
    """Takes tables, and knows the maps of those on disk. One for each `Facts`."""

    def __init__(self, small: int | None = None) -> None:
        self.maps: tuple[mmap.mmap, ...] = ()
        self._small = SMALL_TABLE if small is None else small

    def keep(self, name: str, most: int, parts: Iterator[Table]) -> Table:
        """The parts, which share their words, as one table. Raises TopodiagError where the disk is full."""
        words = table(name).words
        with closing(Columns(SCHEMAS[name], most, self._small)) as columns:
            for part in parts:
                columns.add(part.columns)
                words = part.words
            taken, maps = columns.take()
        self.maps += maps
        return Table(taken, words)


def in_memory() -> Store:
    """Takes tables which no file holds."""
    return Store(sys.maxsize)


def on_disk(facts: Facts) -> Facts:
    """The same facts, what is large of them on disk. Raises TopodiagError where it is full."""
    if facts.maps:
        return facts
    store = Store()
    tables = {name: store.keep(name, len(rows), rows.batches(BATCH_ROWS)) for name, rows in facts.tables.items()}
    return Facts(tables, store.maps)


def without_files(facts: Facts, dropped: frozenset[int], store: Store | None = None) -> Facts:
    """The facts without those of some files; threads are renumbered, files are not. What is large goes to `store`."""
    store = store or in_memory()
    held, shards = (~np.isin(facts[name]["file"], list(dropped)) for name in ("threads", "shards"))
    number = np.cumsum(held, dtype=np.int32) - 1

    def of_threads(name: str) -> Iterator[Table]:
        for batch in facts[name].batches(BATCH_ROWS):
            own = batch.part(held[batch["thread"]])
            yield own.changed(thread=number[own["thread"]])
            facts.rest()

    kept = {"threads": facts["threads"].part(held), "shards": facts["shards"].part(shards)}
    kept |= {name: store.keep(name, len(facts[name]), of_threads(name)) for name in fact_tables.THREAD_TABLES}
    return Facts({name: kept[name] for name in SCHEMAS}, store.maps)


def narrowest(low: int, high: int) -> np.dtype[Any]:
    """The smallest signed type for numbers between these."""
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.int64)


def disk_full(what: str, error: OSError) -> TopodiagError:
    """What does not fit into `TMPDIR`. Connections take a twelfth of the logs' size there, facts a third, and a merge
    of facts holds both its ends."""
    return TopodiagError(
        f"{tempfile.gettempdir()}: the {what} of these logs do not fit: {error.strerror or error}",
        hint="set TMPDIR to a folder with room for half of the logs' size",
    )


MOST_BYTES = 96 << 20
"""Facts up to this size are loaded into memory."""
_MOST_LINE = 1 << 30
"""Bytes of the line that names the files, a hundred each, of a million; and of the words of a table."""
_LEVEL = 1
"""Of zstd: another takes twice as long for a tenth less."""
_BEGIN = FACTS_MARK + b"%d\n" % fact_tables.FACTS_VERSION
_HINT = "give it the logs, or a file that `topodiag logs --save` wrote"

Spelt = Callable[[str], str]


def save(stream: BinaryIO, facts: Facts, files: Sequence[SourceFile], spelt: Spelt | None = None) -> None:
    """Keep resolved facts. `spelt` says how a word is written, as it stands where it is None."""
    listed = [[file.path, file.size, file.sha256, file.note] for file in files]
    note = {"files": listed, "bytes": facts.nbytes, "batch": BATCH_ROWS}
    stream.write(_BEGIN + json.dumps(note).encode() + b"\n")
    import zstandard  # noqa: PLC0415 - slow to load

    packer = zstandard.ZstdCompressor(_LEVEL, write_checksum=True)
    with packer.stream_writer(stream, closefd=False) as packed:
        for name in SCHEMAS:
            rows = facts[name] if spelt is None else _spelt(name, facts[name], spelt)
            words = {column: list(own) for column, own in rows.words.items()}
            head = {"columns": _columns(name), "rows": len(rows), "words": words}
            packed.write(json.dumps(head).encode() + b"\n")
            for batch in rows.batches(BATCH_ROWS):
                for column in batch.columns.values():
                    packed.write(np.ascontiguousarray(column).data)
                facts.rest()


def _columns(name: str) -> dict[str, str]:
    return {column: kind.str for column, kind in SCHEMAS[name].items()}


def _spelt(name: str, rows: Table, spelt: Spelt) -> Table:
    """The rows with their words as they are to be written. Words that become equal are one."""
    written = Table(rows.columns, {column: [spelt(word) for word in words] for column, words in rows.words.items()})
    words, (codes,) = sorted_words(name, [written])
    return Table({**rows.columns, **{column: codes[column][rows[column]] for column in words}}, words)


def load(path: str, shown: str = "") -> tuple[Facts, tuple[SourceFile, ...]]:
    """Facts as `save` wrote them; `shown` is the file's name in errors where it is not its path. Raises InputError
    for anything else, TopodiagError where the disk is full."""
    import zstandard  # noqa: PLC0415 - slow to load

    name = shown or path
    with _reading(name), open(path, "rb") as file:
        if file.readline(len(_BEGIN)) != _BEGIN:
            raise InputError(name, "holds no facts of a log, or those of another version of topodiag", hint=_HINT)
        note = json.loads(file.readline(_MOST_LINE))
        files = tuple(SourceFile(str(p), int(s), str(h), str(n)) for p, s, h, n in note["files"])
        store = Store() if note["bytes"] > MOST_BYTES else None
        unpacked = io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file))
        tables: dict[str, Table] = {}
        for table in SCHEMAS:
            limits = {"file": len(files)}
            if "threads" in tables:
                limits["thread"] = len(tables["threads"])
            head = json.loads(unpacked.readline(_MOST_LINE))
            if head["columns"] != _columns(table):
                raise ValueError("a table has other columns")
            words = {column: [str(word) for word in head["words"][column]] for column in fact_tables.WORDED[table]}
            limits |= {column: len(own) for column, own in words.items()}
            of_table = store if store is not None and table in fact_tables.ROW_TABLES else in_memory()
            parts = _parts(unpacked, table, range(0, head["rows"], note["batch"]))
            checked = _checked(name, (Table(part, words) for part in parts), limits)
            tables[table] = of_table.keep(table, head["rows"], checked)
        if unpacked.read(1):
            raise ValueError("there is more than the tables")
    if store is None:
        return Facts(tables), files
    give_back()
    return Facts(tables, store.maps), files


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Tells what is wrong with a file as InputError."""
    import zstandard  # noqa: PLC0415 - slow to load

    try:
        yield
    except (OSError, MemoryError, zstandard.ZstdError, LookupError, TypeError, ValueError) as error:
        why = (str(error).splitlines() or [""])[0]
        raise InputError(path, f"is damaged: {why}", hint=_HINT) from None


def _parts(stream: BinaryIO, name: str, firsts: range) -> Iterator[dict[str, Column]]:
    """The columns of a table, some rows at a time."""
    for first in firsts:
        size = min(firsts.step, firsts.stop - first)
        yield {
            column: np.frombuffer(stream.read(size * kind.itemsize), kind, size)
            for column, kind in SCHEMAS[name].items()
        }


def _checked(path: str, parts: Iterator[Table], limits: Mapping[str, int]) -> Iterator[Table]:
    """The parts of a table; `limits` are above all numbers of some columns."""
    while True:
        with _reading(path):  # not around who takes the parts: what writes them down has errors of its own
            part = next(parts, None)
            if part is None:
                return
            _check(part, limits)
        yield part


def _check(part: Table, limits: Mapping[str, int]) -> None:
    """Raises ValueError for rows that no facts have."""
    for name in limits.keys() & part.columns.keys():
        if part[name].min(initial=0) < 0 or part[name].max(initial=-1) >= limits[name]:
            raise ValueError(f"rows of a {'word' if name in part.words else name} that it does not hold")
