"""`rocm-smi` without options: clocks and load of AMD GPUs.

    Device  Node  IDs              Temp        Power     Partitions          SCLK     MCLK     Fan  Perf  PwrCap  VRAM%  GPU%
    0       2     0x74a1,   28851  61.0C       612.0W    NPS1, SPX, 0        2097Mhz  1300Mhz  0%   auto  750.0W  71%    100%

Older releases begin the header with `GPU  Temp (DieEdge)  AvgPwr  SCLK`. Only what the columns say is read: the highest
clock, the product and the links are not in this table. Format: ROCm 3 to 7, rocm_smi.py, showAllConcise.
"""  # noqa: E501 - a row of the table is that long

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.lazy import dataclass, regex
from topodiag.model.topics import Topic
from topodiag.words.dialect import Maker

MAX_LINE = 400
MAX_GPUS = 256
MAX_MHZ = 20_000
MOST = 100
"""Percent of anything."""

_HEADER = regex(r"^[ \t>|]{0,20}(?:GPU|Device) [^\n]{0,200}\bSCLK {1,10}MCLK\b[^\n]{0,80}\bGPU% *$", re.MULTILINE)
_ROW = regex(
    r"([0-9]{1,3}) [^\n]{0,200}?\s([0-9]{1,5})Mhz\s{1,10}(?:[0-9]{1,5}Mhz|N/A)\s[^\n]{0,80}?\s"
    r"(?:([0-9]{1,3})%\s{1,10})?([0-9]{1,3})% *\Z"
)


@dataclass(frozen=True, slots=True)
class RocmRow:
    """One GPU: its number, its shader clock, its load and what is used of its memory in percent."""

    index: int
    clock_mhz: int
    load: int
    used: int | None
    line: int
    text: str


class RocmSmi(Source[RocmRow]):
    """Clock and load of AMD GPUs."""

    kind = "rocm-smi"
    maker = Maker.AMD
    speaks_of = frozenset({Topic.GPUS})
    trust = 65

    def recognises(self, head: str) -> bool:
        return _HEADER.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[RocmRow]:
        parsed: Parsed[RocmRow] = Parsed(partial=True)
        in_table = False
        for number, whole in blob.lines():
            parsed.lines = number
            line = whole[:MAX_LINE].strip(" \t>|")
            if _HEADER.match(line):
                in_table = True
            match = _ROW.match(line) if in_table else None
            if match is not None and len(parsed.records) < MAX_GPUS:
                parsed.records.append(
                    RocmRow(int(match[1]), int(match[2]), int(match[4]), _percent(match[3]), number, line)
                )
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[RocmRow], draft: NodeDraft) -> None:
        for row in parsed.records:
            entity, origin = draft.gpu(index=row.index), blob.origin(row.line, row.text)
            if 0 < row.clock_mhz <= MAX_MHZ:
                entity.offer("sm_clock_mhz", row.clock_mhz, origin)
            if row.load <= MOST:
                entity.offer("utilization", row.load, origin)
            if row.used is not None:
                entity.offer("memory_used_share", row.used / MOST, origin)


def _percent(cell: str | None) -> int | None:
    return int(cell) if cell is not None and int(cell) <= MOST else None


__all__ = ["RocmRow", "RocmSmi"]
