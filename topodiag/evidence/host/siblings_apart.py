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

MAX_LINES = 2000
LEAST = 4
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


def odd_ones(text: str) -> list[Odd]:
    """Values that are lower than the ones beside them, in the order of the text."""
    if text.count("\n") > MAX_LINES:
        return []
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
