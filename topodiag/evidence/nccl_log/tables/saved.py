"""Facts kept as a file, and read again in bounded memory: what is large of them waits on disk, mapped.

A line that says what the file is and a line of JSON with the files that were read; then, packed by zstd, each table: a
line of JSON with its columns, the number of its rows and the words, and the columns as numbers, some rows at a time.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np

from topodiag.evidence.marks import FACTS_MARK
from topodiag.evidence.nccl_log.tables.columns import Store, give_back, in_memory
from topodiag.evidence.nccl_log.tables.facts import (
    BATCH_ROWS,
    FACTS_VERSION,
    ROW_TABLES,
    SCHEMAS,
    WORDED,
    Column,
    Facts,
    SourceFile,
    Table,
)
from topodiag.evidence.nccl_log.tables.resolve_parts import sorted_words
from topodiag.model.errors import InputError

MOST_BYTES = 96 << 20
"""Facts up to this size are loaded into memory."""
_MOST_LINE = 1 << 30
"""Bytes of the line that names the files, a hundred each, of a million; and of the words of a table."""
_LEVEL = 1
"""Of zstd: another takes twice as long for a tenth less."""
_BEGIN = FACTS_MARK + b"%d\n" % FACTS_VERSION
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
            words = {column: [str(word) for word in head["words"][column]] for column in WORDED[table]}
            limits |= {column: len(own) for column, own in words.items()}
            keep = in_memory if store is None or table not in ROW_TABLES else store.keep
            parts = _parts(unpacked, table, range(0, head["rows"], note["batch"]))
            tables[table] = keep(table, head["rows"], _checked(name, (Table(part, words) for part in parts), limits))
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
