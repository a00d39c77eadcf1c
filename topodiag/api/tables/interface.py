"""What a table is: columns with their meaning and unit, and a function that gives the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from topodiag.lazy import dataclass

Value = str | int | float | bool | list[str] | None
Row = tuple[Value, ...]

DTYPES = {"text": "string", "whole": "Int64", "number": "float64", "truth": "boolean", "list": "object"}
"""Kind of a column and its dtype in pandas. What is not known is missing: <NA>, or NaN in a column of numbers."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `kind` is a key of DTYPES, `unit` is "" where the value has none."""

    name: str
    kind: str
    about: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of one kind of result: `rows` takes what the result holds and gives a tuple per row, column by column."""

    about: str
    columns: tuple[Column, ...]
    rows: Callable[[Any], Iterable[Row]]


def columns(text: str) -> tuple[Column, ...]:
    """Columns by lines of `name kind [unit]: meaning`."""
    made = []
    for line in filter(None, map(str.strip, text.splitlines())):
        head, _, about = line.partition(": ")
        name, kind, *unit = head.split()
        if kind not in DTYPES:
            raise ValueError(f"{line!r}: a column is {', '.join(DTYPES)}")
        made.append(Column(name, kind, about, " ".join(unit)))
    return tuple(made)


def flat(part: msgspec.Struct, *names: str) -> Row:
    """These fields of a part of a document; lists of names joined by blanks."""
    return tuple(_cell(getattr(part, name)) for name in names)


def _cell(value: Any) -> Value:
    if isinstance(value, (list, tuple)):
        return joined(value)
    cell: Value = value
    return cell


def joined(values: Iterable[object], by: str = " ") -> str:
    return by.join("" if value is None else str(value) for value in values)
