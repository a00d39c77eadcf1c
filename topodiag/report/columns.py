"""What the columns of tables are: their meaning, their unit and what each is read from (tables.toml)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from topodiag.lazy import dataclass
from topodiag.report.documents.from_model import plain_value, reading

Value = str | int | float | bool | list[str] | None
Row = tuple[Value, ...]

KINDS = {"text": str, "names": str, "whole": int, "number": float, "truth": bool, "list": str}
"""Kind of a column and its type in Python. A list is a text parted by blanks, or by commas in a column of names, and
its length in a column of whole numbers."""


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
    return (", " if kind == "names" else " ").join("" if value is None else str(value) for value in values)
