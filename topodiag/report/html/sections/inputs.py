"""What was read, each with its checksum, and by which version: so that the same page can be made again."""

from __future__ import annotations

import hashlib

from topodiag.model.finding import Input
from topodiag.model.maker import dialect_of_all
from topodiag.report.grid import Cell, Columns, Field
from topodiag.report.html.interface import Grid, Section, Sheet, grid_of
from topodiag.words.dialect import Dialect
from topodiag.words.units import grouped, plural

ROWS_SHOWN = 400
"""More inputs than these are one line for each kind."""


def section(sheet: Sheet) -> Section:
    """Never absent: it holds the data of the page."""
    inputs, spoken = sheet.result.inputs, dialect_of_all(sheet.result)
    grid = _kinds(inputs, spoken) if len(inputs) > ROWS_SHOWN else _files(inputs, spoken)
    return Section("inputs", "Inputs", {"grid": grid}, note=plural(len(inputs), "input") if inputs else "")


def _files(inputs: tuple[Input, ...], spoken: Dialect) -> Grid:
    columns: Columns[Input] = {
        Field("Input"): lambda file: file.path,
        Field("Kind"): lambda file: spoken.say(file.kind),
        Field("Lines", right=True): lambda file: _count(file.lines),
        Field("Not understood", right=True): lambda file: _count(file.unparsed),
        Field("SHA-256"): lambda file: file.sha256,
    }
    return grid_of("input-files", "What was read", columns, inputs)


def _kinds(inputs: tuple[Input, ...], spoken: Dialect) -> Grid:
    """One line for each kind."""
    kinds = grouped((file.kind, file) for file in inputs)
    columns: Columns[tuple[str, list[Input]]] = {
        Field("Kind"): lambda row: spoken.say(row[0]),
        Field("Inputs", right=True): lambda row: _count(len(row[1])),
        Field("Lines", right=True): lambda row: _count(sum(file.lines for file in row[1])),
        Field("Not understood", right=True): lambda row: _count(sum(file.unparsed for file in row[1])),
        Field("SHA-256 of their list"): lambda row: _digest(row[1]),
    }
    return grid_of("input-kinds", "What was read, by kind", columns, sorted(kinds.items()))


def _count(number: int) -> Cell:
    return Cell(f"{number:,}", number)


def _digest(files: list[Input]) -> str:
    """The checksum of the list that `sha256sum` would print of these files, by path."""
    listed = "".join(f"{file.sha256}  {file.path}\n" for file in sorted(files, key=lambda file: file.path))
    return hashlib.sha256(listed.encode("utf-8", "surrogateescape")).hexdigest()
