"""Lines of one report that contradict each other: what should be there, and what is.

    gpus in lspci      : 8             NVLINK CHECK              gpu2: sm=480MHz util=100%
    gpus in nvidia-smi : 7             GPU2 FAIL (12/18)         gpu3: sm=1965MHz util=100%

Two counts of the same noun, by words that say which of them is what should be; a verdict beside a ratio, under the
heading that names the part; lines with the same keys, which are rows of a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_LINE = 1000
MAX_LINES = 20_000
APART = 8
"""Lines between two counts of the same noun: a report, not a log."""
_COUNT = re.compile(r"\s{0,20}([A-Za-z][\w /()-]{2,60}?)\s{0,30}[:=]\s{0,10}(\d{1,4})\s*\Z")
_WANT = re.compile(r"\b(?:expected|lspci|pci|bus|configured|required|wanted|should be|installed|physical)\b", re.I)
_HAVE = re.compile(
    r"\b(?:nvidia-smi|nvml|driver|cuda|found|detected|visible|seen|actual|active|healthy|available|reported|rocm-smi)\b",
    re.I,
)
_NOUNS = (
    ("nvlink", re.compile(r"\bnv_?links?\b", re.IGNORECASE)),
    ("gpu-count", re.compile(r"(?<![\w-])gpus?(?![\w-])|\bgpu[ _]count\b|\baccelerators?\b", re.IGNORECASE)),
    ("port-count", re.compile(r"\b(?:nics?|hcas?|ib devices?|rdma devices?)\b", re.IGNORECASE)),
)
_RATIO = re.compile(
    r"(?!.{0,300}\b(?:re-?try|attempt|step|epoch|batch|trial)\w{0,8}\b).{0,200}?"
    r"\b(?:FAIL(?:ED)?|BAD|CRITICAL|NOT OK|UNHEALTHY)\b.{0,40}?(?<![\d/.])(\d{1,3})/(\d{1,3})(?![\d/.])",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\d/\d{1,3} (?:\w{1,12} )?(?:gpus?|nics?|hcas?)\b|\b(?:gpus?|nics?|hcas?)(?: count)? ?[:=(]? ?\d{1,3}/\d",
    re.IGNORECASE,
)
"""A heading names the part of links alone; of others the ratio itself says what it counts."""
_HEADING = re.compile(r"[\s=#*-]{0,12}([A-Za-z][\w /-]{3,60}?)[\s:=*-]{0,12}\Z")
_KEYED = re.compile(
    r"(?<![\w.])([A-Za-z][\w%]{1,30})\s{0,2}[=:]\s{0,2}(\d{1,9}(?:\.\d{1,6})?)\s{0,1}([A-Za-z%]{0,4})(?![\w.:])"
)
FEWEST_ROWS = 3


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A line that says less than another says should be: its number, the fault, and both in words."""

    line: int
    fault: str
    text: str


def contradictions(lines: Sequence[str]) -> Iterator[Contradiction]:
    """Of numbered lines (from 1)."""
    yield from _counts(lines[:MAX_LINES])
    yield from _ratios(lines[:MAX_LINES])


def _counts(lines: Sequence[str]) -> Iterator[Contradiction]:
    wanted: dict[str, tuple[int, int, str]] = {}
    had: dict[str, tuple[int, int, str]] = {}
    for number, whole in enumerate(lines, 1):
        found = _COUNT.match(whole[:MAX_LINE]) if len(whole) <= MAX_LINE else None
        noun = next((fault for fault, pattern in _NOUNS if pattern.search(found[1])), "") if found is not None else ""
        if found is None or not noun:
            continue
        wants, has = _WANT.search(found[1]) is not None, _HAVE.search(found[1]) is not None
        if wants == has:
            continue
        own, other = (wanted, had) if wants else (had, wanted)
        own[noun] = (number, int(found[2]), " ".join(whole.split()))
        beside = other.get(noun)
        if beside is None or number - beside[0] > APART:
            continue
        should, there = (own[noun], beside) if wants else (beside, own[noun])
        if 0 <= there[1] < should[1]:
            yield Contradiction(there[0], noun, f"{should[2]}; {there[2]}"[:300])
        wanted.pop(noun, None)
        had.pop(noun, None)


def _ratios(lines: Sequence[str]) -> Iterator[Contradiction]:
    """Verdicts beside a ratio, by the part that the line or the heading above it names."""
    heading = ""
    for number, whole in enumerate(lines, 1):
        line = whole[:MAX_LINE]
        head = _HEADING.fullmatch(line)
        found = _RATIO.match(line) if "/" in line else None
        if found is not None and int(found[1]) < int(found[2]):
            fault = next((fault for fault, pattern in _NOUNS if pattern.search(f"{line} {heading}")), "")
            if fault and (fault == "nvlink" or _COUNTED.search(line) is not None):
                yield Contradiction(number, fault, " ".join(f"{heading} {line}".split())[:300])
        elif head is not None:
            heading = head[1]


def as_rows(lines: Sequence[str]) -> Iterator[tuple[list[str], list[tuple[int, str, list[str]]]]]:
    """Runs of lines with the same keys, as the names and rows of a table."""
    names: list[str] = []
    rows: list[tuple[int, str, list[str]]] = []
    for number, whole in enumerate(lines[:MAX_LINES], 1):
        pairs = _KEYED.findall(whole[:MAX_LINE]) if "=" in whole or ":" in whole else []
        keys = [key for key, _, _ in pairs]
        if len(keys) >= 2 and keys == names:
            rows.append((number, whole.strip(), [f"{value}{unit}" for _, value, unit in pairs]))
            continue
        if len(rows) >= FEWEST_ROWS:
            yield names, rows
        names, rows = (
            keys,
            [(number, whole.strip(), [f"{value}{unit}" for _, value, unit in pairs])] if len(keys) >= 2 else [],
        )
    if len(rows) >= FEWEST_ROWS:
        yield names, rows


__all__ = ["Contradiction", "as_rows", "contradictions"]
