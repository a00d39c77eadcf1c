"""Tables for other programs: CSV and Parquet. Unknown values are empty."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import BinaryIO, TextIO

from topodiag.words.text import cell

Value = str | int | float | bool | None
Row = tuple[Value, ...]

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
