"""The store of a fleet's history: a folder of Parquet files that are written once, and a manifest that names them.

    _manifest.json                      schema version, the files with their rows, what is counted
    captures/date=2026-11-22/ID.parquet one row a capture: whose, when, which blocks of facts, which errors
    facts/...                           one row a fact, by block; each block is stored once
    counters/...                        one row an error counter of a capture
    spells/..., xids/...                what `topodiag watch` saw

Facts that change seldom are stored once for the whole fleet: a block is all facts of one family of a node, named by the
sha256 of its content, so that 500 nodes of one image share it. It does not matter in which order captures are added,
and adding one again adds nothing. A file that the manifest does not name is none of the store's.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.words.own_data import own_data
from topodiag.writing import replacing

MANIFEST = "_manifest.json"
LOCK = "_lock"
SCHEMA = 1
_TYPES = {
    "word": pa.dictionary(pa.int32(), pa.string()), "text": pa.string(), "texts": pa.list_(pa.string()),
    "number": pa.float64(), "count": pa.int32(), "long": pa.int64(),
}  # fmt: skip
TABLES: Mapping[str, pa.Schema] = {
    name: pa.schema([(column, _TYPES[kind]) for column, kind in columns.items()])
    for name, columns in own_data("fleet/history/tables").items()
}


Rows = dict[tuple[str, str], list[tuple[Any, ...]]]
"""Rows to be added, by table and date, with their values in the order of the columns."""


class FileRows(msgspec.Struct):
    """One file of the store, relative to it: its table, its date (`2026-11-22`, `unknown`), its rows."""

    file: str
    table: str
    date: str
    rows: int


class Manifest(msgspec.Struct):
    """What is in the store. `watched` are the sha256 of the files of watches that were added."""

    schema: int = SCHEMA
    captures: int = 0
    hosts: int = 0
    files: list[FileRows] = []
    watched: list[str] = []


@dataclass(frozen=True, slots=True)
class Store:
    """A store that is open for reading, as its manifest was when it was opened."""

    folder: str
    manifest: Manifest

    def table(self, name: str, *, columns: Sequence[str] | None = None, since: str = "") -> pa.Table:
        """The rows of a table, of the dates from `since` on (`2026-11-22`) and of unknown ones. Raises InputError for a
        file that is damaged or gone."""
        schema = TABLES[name]
        wanted = [schema.field(column) for column in columns or schema.names]
        parts = [
            self._read(file.file, [field.name for field in wanted])
            for file in self.manifest.files
            if file.table == name and file.date >= since
        ]
        return pa.concat_tables(parts).unify_dictionaries() if parts else pa.schema(wanted).empty_table()

    def blocks(self, wanted: Collection[str]) -> pa.Table:
        """The facts of some blocks."""
        keep = pa.array(sorted(wanted), pa.string())
        parts = []
        for file in self.manifest.files:
            if file.table == "facts":
                table = self._read(file.file, TABLES["facts"].names)
                parts.append(table.filter(pc.is_in(table["block"].cast(pa.string()), value_set=keep)))
        return pa.concat_tables(parts).unify_dictionaries() if parts else TABLES["facts"].empty_table()

    def known_blocks(self) -> set[str]:
        """The names of all blocks of facts."""
        return {name for chunk in self.table("facts", columns=["block"])["block"].chunks
                for name in chunk.dictionary.to_pylist()}  # fmt: skip

    def _read(self, file: str, columns: Sequence[str]) -> pa.Table:
        place = os.path.join(self.folder, file)
        schema = pa.schema([TABLES[file.partition("/")[0]].field(column) for column in columns])
        words = [field.name for field in schema if pa.types.is_dictionary(field.type)]
        try:
            # One file: a folder `date=...` would become a column.
            with pa.memory_map(os.fsencode(place)) as mapped:
                table = pq.ParquetFile(mapped, read_dictionary=words).read(columns=list(columns))
            return table.cast(schema)
        except (OSError, pa.ArrowException, KeyError) as error:
            why = str(error).split("\n")[0][:200]
            hint = "the store is damaged: bring the file back, or make a new store from the bundles"
            raise InputError(place, f"cannot be read: {why}", hint=hint) from None


def values(table: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a table, of these columns or of all."""
    return zip(*(table[name].to_pylist() for name in names or table.schema.names), strict=True)


def is_store(path: str) -> bool:
    """Whether a folder is a store."""
    return os.path.isfile(os.path.join(path, MANIFEST))


def open_store(path: str) -> Store:
    """The store in a folder. Raises InputError where there is none, or one of a newer topodiag."""
    place = os.path.join(path, MANIFEST)
    try:
        manifest = msgspec.json.decode(Path(place).read_bytes(), type=Manifest)
    except OSError as error:
        raise InputError(path, f"is no store: {error.strerror}", hint="topodiag fleet history DIR BUNDLES...") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(place, f"is no manifest of a store: {error}", hint="bring it back from a copy") from None
    if manifest.schema != SCHEMA:
        raise InputError(place, f"has schema {manifest.schema}; this topodiag reads {SCHEMA}", hint="upgrade topodiag")
    for file in manifest.files:
        if file.table not in TABLES or os.path.isabs(file.file) or ".." in file.file.split("/"):
            raise InputError(place, f"names a file that is none of a store: {file.file}", hint="bring it back")
    return Store(path, manifest)


@contextmanager
def writing_to(path: str) -> Iterator[Store]:
    """The store in a folder, new where there is none, locked against other writers. Raises InputError for a folder that
    holds something else, or cannot be written."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        if not is_store(path) and any(name != LOCK for name in os.listdir(path)):
            raise InputError(path, "is a folder with something in it, and no store", hint="name a new folder")
        handle = os.open(os.path.join(path, LOCK), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise InputError(path, f"cannot be written: {error.strerror}", hint="name another folder") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield open_store(path) if is_store(path) else Store(path, Manifest(files=[], watched=[]))
    finally:
        os.close(handle)


def commit(store: Store, rows: Rows, name: str, manifest: Manifest) -> Store:
    """Write the rows by table and date, then the manifest that names their files: until then nothing was added. `name`
    is that of the files, unused so far. Raises InputError for a disk that is full."""
    files = list(manifest.files)
    try:
        for (table, date), values in sorted(rows.items()):
            if not values:
                continue
            file = f"{table}/date={date}/{name}.parquet"
            place = os.path.join(store.folder, file)
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
            written = _table(values, TABLES[table])
            with replacing(place, private=True) as stream:
                pq.write_table(written, stream, compression="zstd", compression_level=9)
            files.append(FileRows(file, table, date, written.num_rows))
        manifest = msgspec.structs.replace(manifest, files=files)
        with replacing(os.path.join(store.folder, MANIFEST), private=True) as stream:
            stream.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    except (OSError, pa.ArrowException) as error:
        raise InputError(store.folder, f"cannot be written: {error}", hint="make room, and add again") from None
    return Store(store.folder, manifest)


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Rows as a table. Bytes that were no text are written as their escape."""
    columns = []
    for field, values in zip(schema, zip(*rows, strict=True), strict=True):
        try:
            columns.append(pa.array(values, field.type))
        except (UnicodeEncodeError, pa.ArrowInvalid):
            columns.append(pa.array([_clean(value) for value in values], field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _clean(value: Any) -> Any:
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
