"""What a table is: columns with their meaning, their unit and what each is read from, and what gives the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from topodiag.lazy import dataclass
from topodiag.report.documents.from_model import plain_value, reading

Value = str | int | float | bool | list[str] | None
Row = tuple[Value, ...]

DTYPES = {
    "text": "string", "names": "string", "whole": "Int64", "number": "float64", "truth": "boolean", "list": "object",
}  # fmt: skip
"""Kind of a column and its dtype in pandas. What is not known is missing: <NA>, or NaN in a column of numbers.
A list is a text parted by blanks, or by commas in a column of names, and its length in a column of whole numbers."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `kind` is a key of DTYPES, `unit` is "" where the value has none, `path` the attribute of what the
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
            made: Value = value
            return made

        return cell


class Part:
    """A part of something: its attributes, and the node, the number or the name that it is of as `owner`."""

    def __init__(self, owner: Any, part: Any) -> None:
        self.owner = owner
        self._read = part

    def __getattr__(self, name: str) -> Any:
        return reading(name)(self._read)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of one kind of result. `items` takes what the result holds and gives what the rows are read from; a plain
    tuple is a row itself."""

    about: str
    columns: tuple[Column, ...]
    items: Callable[[Any], Iterable[Any]]

    def rows(self, held: Any) -> Iterator[Row]:
        """A tuple per row, column by column."""
        cells = [column.cell() for column in self.columns]
        for item in self.items(held):
            yield item if type(item) is tuple else tuple(cell(item) for cell in cells)


def columns(text: str) -> tuple[Column, ...]:
    """Columns by lines of `name kind [unit] [= path]: meaning`; without a path it is the name."""
    listed = []
    for line in filter(None, map(str.strip, text.splitlines())):
        head, _, about = line.partition(": ")
        head, _, path = head.partition(" = ")
        name, kind, *unit = head.split()
        if kind not in DTYPES:
            raise ValueError(f"{line!r}: a column is {', '.join(DTYPES)}")
        listed.append(Column(name, kind, about, " ".join(unit), path or name))
    return tuple(listed)


def _joined(values: Iterable[object], kind: str) -> str:
    return (", " if kind == "names" else " ").join("" if value is None else str(value) for value in values)
