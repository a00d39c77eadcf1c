"""What programs print of a GPU's memory before they have any of it: how much there is, and how much is free.

    Total memory: 2.94GiB                                                       TensorFlow 1.0 to 1.4
    Free memory: 105.88MiB
    totalMemory: 10.92GiB freeMemory: 198.00MiB                                 TensorFlow 1.5 to 1.15
    msg="inference compute" id=GPU-1 total="79.1 GiB" available="312.0 MiB"     Ollama

A GPU of which nearly nothing is free then has another program on it, of whomever: or one that was left behind. Of each
GPU the first such line counts, as a program that starts again in one process meets what it took itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import MAX_LINE, Telling, event
from topodiag.model.system import TOLD_OF, KernelEvent
from topodiag.model.topics import Topic
from topodiag.words.units import percent

MOST_FREE = 0.2
"""Part of a GPU that is free where others have most of it: a desktop takes less than the rest."""
NEAR = 4
"""Lines between the total and what is free of it."""
_SIZE = r"(\d{1,9}(?:\.\d{1,4})?) ?(bytes|[KMGT]iB|[KMGT]B)\b"
_TOTAL = re.compile(rf"^\s{{0,8}}(?:\S{{1,40}} )?Total memory: {_SIZE}\s*$")
_FREE = re.compile(rf"^\s{{0,8}}(?:\S{{1,40}} )?Free memory: {_SIZE}\s*$")
_BOTH = (
    re.compile(rf"\btotalMemory: {_SIZE},? {{1,4}}freeMemory: {_SIZE}"),
    re.compile(rf"\binference compute\b.{{0,300}}?\btotal=\"?{_SIZE}\"? available=\"?{_SIZE}"),
)
_NAME = re.compile(r"\bFound device (\d{1,3})\b|\bid=\"?(GPU-[\w-]{1,40}|\d{1,3})")
_LOADED = re.compile(r"\b(?:Created TensorFlow device|Creating TensorFlow device|runner started|model loaded)\b")
"""From here on the program has memory of its own."""
_UNITS = {
    "bytes": 1.0,
    **{f"{letter}{end}": 1024.0**power for power, letter in enumerate("KMGT", 1) for end in ("iB", "B")},
}


class FreeAtStart(Telling):
    """GPUs of which a program finds nearly nothing free before it begins."""

    kind = "free-at-start"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 20
    a_piece = "it says what is free of the GPUs of one program"

    def recognises(self, head: str) -> bool:
        return ("ree memory: " in head or "freeMemory: " in head or "inference compute" in head) and any(
            True for _ in _shares(head.split("\n"))
        )

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed: Parsed[KernelEvent] = Parsed()
        lines = [line for _, line in blob.lines()]
        parsed.lines = len(lines)
        for name, free, number in _shares(lines):
            if free < MOST_FREE:
                who = name if name.startswith("GPU") or not name else f"GPU{name}"
                said = f"{percent(free)} of the memory of {who or 'a GPU'} is free before the program has any"
                parsed.records.append(event(f"{TOLD_OF}gpu-taken", said, blob, number, lines[number - 1]))
        return parsed


def _shares(lines: Sequence[str]) -> Iterator[tuple[str, float, int]]:
    """Of lines numbered from 1: the GPU, the free part of its memory and the line that says it, once for each GPU."""
    name, total, at = "", 0.0, 0
    seen: set[str] = set()
    for number, whole in enumerate(lines, 1):
        line = whole[:MAX_LINE]
        if _LOADED.search(line) is not None:
            return
        named = _NAME.search(line)
        if named is not None:
            name = named[1] or named[2]
        both = next((found for pattern in _BOTH if (found := pattern.search(line)) is not None), None)
        free = _FREE.match(line)
        share = None
        if both is not None:
            share = _part(_bytes(both[3], both[4]), _bytes(both[1], both[2]))
        elif (whole_of := _TOTAL.match(line)) is not None:
            total, at = _bytes(whole_of[1], whole_of[2]), number
        elif free is not None and number - at <= NEAR:
            share = _part(_bytes(free[1], free[2]), total)
        if share is not None and name not in seen:
            seen.add(name)
            yield name, share, number


def _part(free: float, total: float) -> float | None:
    return free / total if 0 <= free <= total and total > 0 else None


def _bytes(number: str, unit: str) -> float:
    return float(number) * _UNITS[unit]


__all__ = ["FreeAtStart"]
