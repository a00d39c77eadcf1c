"""Tables for other programs: CSV and Parquet, in which unknown values are empty; and what the columns of tables are:
their meaning, their unit and what each is read from (tables.toml)."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, BinaryIO, TextIO

from topodiag.lazy import dataclass
from topodiag.report.documents.from_model import plain_value, reading
from topodiag.words.own_data import own_data
from topodiag.words.text import cell

Value = str | int | float | bool | list[str] | None
Row = tuple[Value, ...]

KINDS = {"text": str, "names": str, "steps": str, "whole": int, "number": float, "truth": bool, "list": str}
"""Kind of a column and its type in Python. A list is a text parted by blanks, by commas in a column of names, by bars
in one of steps, and its length in a column of whole numbers."""
_GLUE = {"names": ", ", "steps": " | "}
ROWS_AT_ONCE = 1 << 17
"""Rows that are objects of Python at the same time: of a large job there are millions."""
_PARQUET = {str: "string", int: "int64", float: "double", bool: "bool"}


def write_csv(columns: Iterable[str], rows: Iterable[Row], stream: TextIO) -> None:
    """The rows with a heading. Line ends within a value become blanks, NUL and the like their escapes."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_plain(value) for value in row])


def _plain(value: Value) -> Value:
    """Cells are read in terminals and spreadsheets alike."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return cell(value) if isinstance(value, str) else value


def write_parquet(columns: Mapping[str, type | str], rows: Iterable[Row], stream: BinaryIO) -> None:
    """The rows; the type of each column is Python's, or Parquet's by its name."""
    import pyarrow as pa  # noqa: PLC0415 - slow to load
    import pyarrow.parquet as pq  # noqa: PLC0415

    names = {column: kind if isinstance(kind, str) else _PARQUET[kind] for column, kind in columns.items()}
    schema = pa.schema([(column, pa.type_for_alias(name)) for column, name in names.items()])
    left = iter(rows)
    with pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        while some := list(islice(left, ROWS_AT_ONCE)):
            values = [
                [_utf8(value) if isinstance(value, str) else value for value in column]
                for column in zip(*some, strict=True)
            ]
            writer.write_table(pa.table(dict(zip(columns, values, strict=True)), schema=schema))


def _utf8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `kind` is a key of KINDS, `unit` is "" where the value has none, `path` the attribute of what the
    row is of."""

    name: str
    kind: str
    about: str
    unit: str = ""
    path: str = ""

    def cell(self) -> Callable[[Any], Value]:
        """What reads the value of a row."""
        read, kind = reading(self.path), self.kind

        def cell(item: Any) -> Value:
            value = plain_value(read(item))
            if isinstance(value, dict):
                value = [f"{key}={item}" for key, item in value.items()]
            if isinstance(value, (list, tuple)):
                value = list(value) if kind == "list" else len(value) if kind == "whole" else _joined(value, kind)
            written: Value = value
            return written

        return cell


def columns(text: str) -> tuple[Column, ...]:
    """Columns by lines of `name kind [unit] [= path]: meaning`; without a path it is the name."""
    listed = []
    for line in filter(None, map(str.strip, text.splitlines())):
        head, _, about = line.partition(": ")
        head, _, path = head.partition(" = ")
        name, kind, *unit = head.split()
        if kind not in KINDS:
            raise ValueError(f"{line!r}: a column is {', '.join(KINDS)}")
        listed.append(Column(name, kind, about, " ".join(unit), path or name))
    return tuple(listed)


def _joined(values: Iterable[object], kind: str) -> str:
    return _GLUE.get(kind, " ").join("" if value is None else str(value) for value in values)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of one kind of result. `items` takes what the result holds and gives what the rows are read from; a plain
    tuple is a row itself."""

    about: str
    columns: tuple[Column, ...]
    items: Callable[[Any], Iterable[Any]]

    @property
    def types(self) -> dict[str, type]:
        """The type of each column in Python."""
        return {column.name: KINDS[column.kind] for column in self.columns}

    def rows(self, held: Any) -> Iterator[Row]:
        """A tuple per row, column by column."""
        cells = [column.cell() for column in self.columns]
        for item in self.items(held):
            yield item if type(item) is tuple else tuple(cell(item) for cell in cells)


def table_of(kind: str, name: str, items: Callable[[Any], Iterable[Any]] | None = None) -> Table:
    """A table of tables.toml. Without `items` its rows are read from what it names itself."""
    held = own_data("report/tables")[kind][name]
    return Table(held["about"], columns(held["columns"]), items or reading(held["rows"]))
