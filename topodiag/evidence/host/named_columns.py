"""Tables that any script prints, judged by the names of their columns.

    GPU  links_active  links_expected                   index, ecc.uncorrected.volatile, sm_clock, util
    3    14            18                               3, 2, 345, 100

A column counts whose name is one of `named_values`, one of what is there beside one of what should be, or one of clocks
beside the load: there a busy GPU is compared with its busy siblings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from topodiag.evidence.host.contradictions import as_rows
from topodiag.evidence.host.named_values import fault_named, fault_of_value, words_of_name

MAX_LINE = 1000
MAX_ROWS = 5000
MAX_LINES = 20_000
"""Lines of a text that are looked at: a table that somebody hands over is shorter."""
_CHEAP = re.compile(
    r"ecc|dbe|slowdown|throttl|remap|retire|uncorrect|expect|want|should|desired|required|configured|links|nv_?link|state|status"
    r"|clo?c?k|mhz|reasons|lost|missing",
    re.IGNORECASE,
)
"""In every header of interest."""
FEWEST = 3
"""Busy rows that show what the clock of one would be."""
SLOW = 0.5
"""Share of the others' clock below which a busy GPU is slow: power caps keep it above."""
BUSY = 50.0

_HAVE = re.compile(r"\b(?:active|up|found|seen|actual|detected|present|have|got|current|online|visible)\b")
_WANT = re.compile(r"\b(?:expected|expect|want|wanted|should|desired|required|configured)\b|links? (?:total|max)\b")
_PARTS = (
    ("nvlink", re.compile(r"\b(?:nv ?)?links?\b")),
    ("gpu-count", re.compile(r"\bgpus?\b")),
    ("port-count", re.compile(r"\b(?:nics?|hcas?|rdma|ib devices?|adapters?)\b")),
    ("port-down", re.compile(r"\bports?\b")),
)
_CLOCK = re.compile(r"^(?:sm|clk)$|\bsm mhz\b|\b(?:sm|gr|graphics|gpu|core|shader) clo?c?k\b"
                    r"|\bclocks? (?:current )?(?:sm|gr|graphics)\b|\bgfx cl"
                    r"|\b(?:pclk|sclk|smclk)\b")  # fmt: skip
_NOT_NOW = re.compile(r"\b(?:max|min|limit|base|boost|target|mem|memory)\b")
_LOAD = re.compile(r"\b(?:util\w{0,8}|busy|load|gpu use|use)\b(?!.*\bmem)|^gfx$")
_STATE = re.compile(r"\b(?:state|status|link state)\b")
_STATES: tuple[tuple[str, re.Pattern[str], frozenset[str], frozenset[str]], ...] = (
    ("nvlink", re.compile(r"\bnv ?link|\bgpu\b.*\blink\b"),
     frozenset({"inactive", "down", "error"}), frozenset({"active", "up"})),
    ("gpu-lost", re.compile(r"\bgpu\b(?!.*\blink\b)"), frozenset({"lost", "missing", "fell off", "off bus"}),
     frozenset({"ok", "healthy", "up", "active", "present", "idle", "pass"})),
)  # fmt: skip
"""Tables of states, by what their columns are of: words of those that are not as their siblings are."""
_CELLS = (
    re.compile(r"\s{0,20},\s{0,20}"),
    re.compile(r"\s{0,20}\|\s{0,20}"),
    re.compile(r"\t\s{0,20}|\s{2,40}"),
    re.compile(r"\s{1,40}"),
)
"""How cells are told apart, the clearest first."""
_LEAD = re.compile(r"\s{0,20}(-?\d{1,15}(?:\.\d{1,6})?)(?:\s{0,2}[A-Za-z%\u00b0]{1,5})?\s{0,20}\Z")


@dataclass(frozen=True, slots=True)
class Cell:
    """A row of a table that says a fault: its line, the fault, and the columns that say it."""

    line: int
    fault: str
    text: str


def cells_of(lines: Sequence[str]) -> Iterator[Cell]:
    """The faults that tables among numbered lines (from 1) say."""
    at, lines = 0, lines[:MAX_LINES]
    while at < len(lines):
        head = _head(lines[at])
        if head is None:
            at += 1
            continue
        split, names = head
        rows: list[tuple[int, str, list[str]]] = []
        number = at + 1
        while number < len(lines) and len(rows) < MAX_ROWS:
            line = lines[number].strip(" \t|")
            cells = split.split(line) if len(line) <= MAX_LINE else []
            if len(cells) == len(names):
                rows.append((number + 1, line, cells))
            elif line.strip(" \t+-=|_"):
                break
            number += 1
        yield from judged(names, rows)
        at = max(number, at + 1)


def rows_of(lines: Sequence[str]) -> Iterator[Cell]:
    """The faults that lines with the same keys say, which are rows of a table."""
    for keys, rows in as_rows(lines):
        yield from judged(_in_context([words_of_name(key) for key in keys]), rows)


def _head(line: str) -> tuple[re.Pattern[str], list[str]] | None:
    """How the cells of a header are told apart, and its names; None where a line is no header of interest."""
    text = line.strip(" \t|#>\r")
    if not 6 <= len(text) <= MAX_LINE or ":" in text[-1:] or text[0].isdigit() or _CHEAP.search(text) is None:
        return None
    for split in _CELLS:
        names = _in_context([words_of_name(cell) for cell in split.split(text)])
        if len(names) < 2 or any(cell.replace(".", "").isdigit() for cell in split.split(text)):
            continue
        if (
            _states(names)
            or any(fault_named(cell) for cell in names)
            or _pair(names) is not None
            or _clocks(names) is not None
        ):
            return split, names
    return None


def _pair(names: Sequence[str]) -> tuple[str, int, int] | None:
    """Columns of what is there and of what should be: the fault, and their places."""
    wanted = [at for at, name in enumerate(names) if _WANT.search(name)]
    had = [at for at, name in enumerate(names) if _HAVE.search(name) and not _WANT.search(name)]
    if len(wanted) != 1 or len(had) != 1:
        return None
    said = f"{names[wanted[0]]} {names[had[0]]}"
    fault = next((fault for fault, pattern in _PARTS if pattern.search(said)), "")
    return (fault, had[0], wanted[0]) if fault else None


def _states(names: Sequence[str]) -> tuple[int, str, frozenset[str], frozenset[str]] | None:
    """The place of the states of parts, the fault, and the words of bad and good ones."""
    at = next((at for at, name in enumerate(names) if _STATE.search(name)), -1)
    of = " ".join(name for place, name in enumerate(names) if place != at)
    found = next(((fault, bad, good) for fault, part, bad, good in _STATES if part.search(f"{of} ")), None)
    return (at, *found) if at >= 0 and found is not None else None


def _odd(names: Sequence[str], rows: Sequence[tuple[int, str, list[str]]]) -> dict[int, tuple[str, str]]:
    """Rows whose state is bad where most are good: the fault and the word, by line."""
    found = _states(names)
    if found is None:
        return {}
    at, fault, bad, good = found
    words = {number: cells[at].strip().lower() for number, _, cells in rows}
    odd = {number: (fault, word) for number, word in words.items() if word in bad}
    return odd if len(odd) < sum(word in good for word in words.values()) else {}


def _clocks(names: Sequence[str]) -> tuple[int, int] | None:
    """The places of the clock now and of the load."""
    clock = next((at for at, name in enumerate(names) if _CLOCK.search(name) and not _NOT_NOW.search(name)), -1)
    load = next((at for at, name in enumerate(names) if _LOAD.search(name)), -1)
    return (clock, load) if clock >= 0 and load >= 0 else None


def _in_context(names: Sequence[str]) -> list[str]:
    """Names that say alone not of which memory they speak, with what the others say: RAS tables of AMD name blocks."""
    blocks = any(re.search(r"\b(?:block|ras|gpu|hbm|ecc)\b", name) for name in names)
    plain = re.compile(r"uncorrect(?:able|ed)(?: errors?| count)?")
    return [f"ras {name}" if blocks and plain.fullmatch(name) else name for name in names]


def judged(names: Sequence[str], rows: Sequence[tuple[int, str, list[str]]]) -> Iterator[Cell]:
    """The rows, each with its number and its text, that say a fault by the names of their columns (as words)."""
    pair, clocks = _pair(names), _clocks(names)
    slow = _slow(clocks, rows) if clocks is not None else {}
    odd = _odd(names, rows)
    for number, line, cells in rows:
        fault, said = next(
            (
                (fault, name)
                for name, cell in zip(names, cells, strict=True)
                if (fault := fault_of_value(name, _bare(cell)))
            ),
            ("", ""),
        )
        if not fault and pair is not None:
            had, wanted = _number(cells[pair[1]]), _number(cells[pair[2]])
            if had is not None and wanted is not None and 0 <= had < wanted:
                fault, said = pair[0], f"{had:g} of {wanted:g}"
        if not fault and number in odd:
            fault, said = odd[number]
        if not fault and number in slow:
            fault, said = "gpu-clocks", slow[number]
        if fault:
            yield Cell(number, fault, f"{said}: {' '.join(line.split())}"[:300])


def _slow(places: tuple[int, int], rows: Sequence[tuple[int, str, list[str]]]) -> dict[int, str]:
    """Busy rows whose clock is far below that of all the other busy ones, by line."""
    busy = {
        number: clock
        for number, _, cells in rows
        if (clock := _number(cells[places[0]])) and (_number(cells[places[1]]) or 0) >= BUSY
    }
    if len(busy) < FEWEST:
        return {}
    usual = median(busy.values())
    return {
        number: f"a clock of {clock:g}, {usual:g} on the others"
        for number, clock in busy.items()
        if clock < SLOW * usual
    }


def _bare(cell: str) -> str:
    number = _number(cell)
    return cell.strip().lower() if number is None or "x" in cell else f"{number:.0f}"


def _number(cell: str) -> float | None:
    """The number of a cell, in quotes or with a unit behind it."""
    cell = cell.strip(' "')
    found = _LEAD.match(cell)
    return float(found[1]) if found is not None else None


__all__ = ["Cell", "cells_of", "judged", "rows_of"]
