"""What was read, each with its checksum, and by which version: so that the same page can be made again."""

from __future__ import annotations

import hashlib
from collections import defaultdict

from topodiag.model.finding import Input
from topodiag.model.maker import dialect_of_all
from topodiag.report.html.interface import Cell, Grid, Section, Sheet
from topodiag.words.dialect import Dialect
from topodiag.words.fold import plural

ROWS_SHOWN = 400
"""More inputs than these are one line for each kind."""


def section(sheet: Sheet) -> Section:
    """Never absent: it holds the data of the page."""
    inputs, spoken = sheet.result.inputs, dialect_of_all(sheet.result.nodes, sheet.result.jobs, sheet.result.benchmarks)
    many = len(inputs) > ROWS_SHOWN
    grid = _kinds(inputs, spoken) if many else _files(inputs, spoken)
    return Section("inputs", "Inputs", {"grid": grid}, note=plural(len(inputs), "input") if inputs else "")


def _files(inputs: tuple[Input, ...], spoken: Dialect) -> Grid:
    rows = [
        [Cell(one.path), Cell(spoken.say(one.kind)), Cell(f"{one.lines:,}", one.lines),
         Cell(f"{one.unparsed:,}", one.unparsed), Cell(one.sha256)]
        for one in inputs
    ]  # fmt: skip
    heads = ("Input", "Kind", "Lines", "Not understood", "SHA-256")
    return Grid("input-files", "What was read", heads, rows, right=frozenset({2, 3}))


def _kinds(inputs: tuple[Input, ...], spoken: Dialect) -> Grid:
    """One line for each kind; its checksum is that of the list `sha256sum` would print of its files, by path."""
    kinds: dict[str, list[Input]] = defaultdict(list)
    for one in inputs:
        kinds[one.kind].append(one)
    rows = []
    for kind, members in sorted(kinds.items()):
        listed = "".join(f"{member.sha256}  {member.path}\n" for member in sorted(members, key=lambda item: item.path))
        digest = hashlib.sha256(listed.encode("utf-8", "surrogateescape")).hexdigest()
        lines, unread = sum(member.lines for member in members), sum(member.unparsed for member in members)
        rows.append([Cell(spoken.say(kind)), Cell(f"{len(members):,}", len(members)), Cell(f"{lines:,}", lines),
                     Cell(f"{unread:,}", unread), Cell(digest)])  # fmt: skip
    heads = ("Kind", "Inputs", "Lines", "Not understood", "SHA-256 of their list")
    return Grid("input-kinds", "What was read, by kind", heads, rows, right=frozenset({1, 2, 3}))
