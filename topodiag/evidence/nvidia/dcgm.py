"""What DCGM says of a GPU's health, in `dcgmi health`, `dcgmi diag` or the log of a program that watches with it.

    Detected clocks event due to thermal violation in GPU 2. Verify that the cooling on this machine is functional ...
    Detected 3 volatile double-bit ECC error(s) in GPU 1. Drain the GPU and reset it or reboot the node.

Each sentence counts by itself; a table breaks it over lines. What DCGM calls a failure of NVLink or IMEX need be none:
a card without a bridge has all links down, a tray without a job needs no IMEX channel. These are not read. Sentences:
DCGM, dcgmlib/dcgm_errors.h (DCGM_FR_CLOCKS_EVENT_THERMAL, DCGM_FR_VOLATILE_DBE_DETECTED).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.model.topics import Topic

MAX_INDEX = 255
MAX_LINE = 1000
MAX_RECORDS = 10_000

_CLOCKS = re.compile(r"clocks? (?:event|throttling) due to (thermal|power) violation in GPU ([0-9]{1,3})\b", re.I)
_MEMORY = re.compile(r"Detected ([0-9]{1,12}) volatile double-bit ECC error\(?s?\)? in GPU ([0-9]{1,3})\b", re.I)
_REASONS = {"thermal": "hw_thermal_slowdown", "power": "hw_power_brake_slowdown"}


@dataclass(frozen=True, slots=True)
class HealthLine:
    """One sentence: the GPU, the field or counter of the model, its value."""

    index: int
    name: str
    value: tuple[str, ...] | int
    line: int
    text: str


class Dcgm(Source[HealthLine]):
    """Clocks that are held down and memory errors, by DCGM's sentences."""

    kind = "dcgm"
    speaks_of = frozenset({Topic.GPUS})
    trust = 55

    def told(self, parsed: Parsed[HealthLine]) -> frozenset[Topic]:
        """Nothing as a whole: healthy GPUs are not named."""
        return frozenset()

    def recognises(self, head: str) -> bool:
        return any(True for _ in _sentences(enumerate(head.split("\n"), 1)))

    def parse(self, blob: Blob) -> Parsed[HealthLine]:
        parsed: Parsed[HealthLine] = Parsed(partial=True)
        parsed.lines = blob.data.count(b"\n") + 1
        for record in _sentences(blob.lines()):
            if len(parsed.records) < MAX_RECORDS:
                parsed.records.append(record)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[HealthLine], draft: NodeDraft) -> None:
        for record in parsed.records:
            entity = draft.gpu(index=record.index)
            origin = blob.origin(record.line, record.text)
            if isinstance(record.value, int):
                entity.count(record.name, record.value, origin)
            else:
                entity.offer(record.name, record.value, origin)


def _sentences(lines: Iterator[tuple[int, str]]) -> Iterator[HealthLine]:
    """The sentences of a text; one that a table broke is joined with the cell below it."""
    before = ""
    for number, whole in lines:
        cell = whole[:MAX_LINE].strip(" \t|>").rpartition("| ")[2].strip()
        done = False
        for text in dict.fromkeys((cell, f"{before} {cell}")):
            clocks, memory = _CLOCKS.search(text), _MEMORY.search(text)
            if clocks is not None and int(clocks[2]) <= MAX_INDEX:
                yield HealthLine(int(clocks[2]), "throttle", (_REASONS[clocks[1].lower()],), number, text)
                done = True
            if memory is not None and int(memory[2]) <= MAX_INDEX:
                yield HealthLine(int(memory[2]), "ecc_volatile_uncorrected", int(memory[1]), number, text)
                done = True
            if done:
                break
        before = "" if done else cell


__all__ = ["Dcgm", "HealthLine"]
