"""One value among many of its name that is lower than all others: ports and links of one machine come alike.

    ens1np0
        Speed: 400000Mb/s
    ens3np0
        Speed: 200000Mb/s            lower than the others, which agree

What a loop over the ports or the cards prints. Four and more of one name: three in four are equal, all others lower.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

from topodiag.evidence.host.verdict_lines import topic_of

MAX_LINES = 2000
LEAST = 4
LEAST_ROWS = 2
"""A head and two rows at least."""
_FIELD = re.compile(
    r"(?:^|[\s,;])(?P<name>[Ss]peed|[Rr]ate|[Ww]idth|pcie_(?:width|gen)|[Ll]nk[Ss]ta|active_(?:speed|width)|current_link_(?:speed|width))"
    r"\s{0,20}[:=]\s{0,20}(?:Speed )?x?(?P<value>\d{1,6}(?:\.\d)?)\s?(?P<unit>[GM]b(?:/s(?:ec)?|ps)|GT/s"
    r"|[xXG])?(?=[\s,;()]|$)"
)
_OF_PCIE = re.compile(r"pcie|[Ww]idth|lnksta|current_link", re.IGNORECASE)
_PCIE_UNITS = ("GT/s", "x", "X")


@dataclass(frozen=True, slots=True)
class Odd:
    """A value below those of its siblings: the fault, its line, and a sentence."""

    fault: str
    line: int
    text: str
    said: str


_CELLS = re.compile(r"\s{2,}|\t|\s?\|\s?")
_BAD_CELL = re.compile(
    r"(?:not[ -](?:loaded|found|ok|active|present|running|set)|missing|down|fail(?:ed)?|inactive|absent|unhealthy"
    r"|abnormal|bad)\Z",
    re.IGNORECASE,
)
"""Cells of a table that are bad whatever the column."""


def odd_ones(text: str) -> list[Odd]:
    """Values that are lower, or cells that are worse, than the ones beside them, in the order of the text."""
    if text.count("\n") > MAX_LINES:
        return []
    return [*_low_values(text), *_bad_cells(text)]


def _bad_cells(text: str) -> list[Odd]:
    """Cells of a table with a head that are bad where most of their column are not, by what the head says it is."""
    return [odd for rows in _tables(text) for odd in _bad_of(rows)]


Row = tuple[int, str, list[str]]
"""Number, line and cells."""


def _tables(text: str) -> list[list[Row]]:
    """Lines below each other with as many cells."""
    tables: list[list[Row]] = []
    for number, line in enumerate(text.split("\n"), 1):
        cells = [cell.strip() for cell in _CELLS.split(line.strip()[:400]) if cell.strip()]
        if not tables or not tables[-1] or len(tables[-1][0][2]) != len(cells):
            tables.append([])
        if len(cells) > 1:
            tables[-1].append((number, line, cells))
    return [rows for rows in tables if len(rows) > LEAST_ROWS]


def _bad_of(rows: list[Row]) -> list[Odd]:
    head, body = rows[0][2], rows[1:]
    made = []
    for at in range(1, len(head)):
        bad = [row for row in body if _BAD_CELL.match(row[2][at])]
        topic = topic_of(head[at], "bad") if bad and len(bad) * 2 <= len(body) else None
        if topic is not None and topic.fault:
            made += [
                Odd(topic.fault, number, line, f"{cells[0]}: {head[at]} {cells[at]}") for number, line, cells in bad
            ]
    return made


def _low_values(text: str) -> list[Odd]:
    """Values that are lower than the ones beside them."""
    seen: dict[tuple[str, str], list[tuple[float, int, str, str]]] = defaultdict(list)
    before = ""
    for number, line in enumerate(text.split("\n"), 1):
        found = _FIELD.search(line[:300])
        if found is not None:
            whose = line[: found.start()].strip(" :|=-") or before
            unit = found["unit"] or ""
            seen[found["name"].lower(), unit].append((float(found["value"]), number, line, whose))
        elif line.strip():
            before = line.strip()
    return [odd for (name, unit), values in seen.items() for odd in _odd_of(name, unit, values)]


def _odd_of(name: str, unit: str, values: list[tuple[float, int, str, str]]) -> list[Odd]:
    usual, count = Counter(value for value, *_ in values).most_common(1)[0]
    low = [each for each in values if each[0] < usual]
    if len(values) < LEAST or count * 4 < len(values) * 3 or len(low) + count < len(values):
        return []
    fault = "pcie" if unit in _PCIE_UNITS or (not unit and _OF_PCIE.search(name)) else "link-slow"
    if fault == "pcie" and "speed" in name + unit.replace("GT/s", "speed"):
        return []  # a card at rest lowers its own link
    return [
        Odd(fault, number, line, f"{whose[:60]}: {name} {value:g}{unit}, and {count} others {usual:g}{unit}")
        for value, number, line, whose in low
        if value > 0
    ]


__all__ = ["Odd", "odd_ones"]
