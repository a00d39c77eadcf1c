"""`rocm-smi` without options, or any part of it as `--json`: clocks and load of AMD GPUs.

    Device  Node  IDs              Temp        Power     Partitions          SCLK     MCLK     Fan  Perf  PwrCap  VRAM%  GPU%
    0       2     0x74a1,   28851  61.0C       612.0W    NPS1, SPX, 0        2097Mhz  1300Mhz  0%   auto  750.0W  71%    100%

    {"card0": {"Card Series": "AMD Instinct MI300X", "PCI Bus": "0000:05:00.0", "sclk clock speed:": "(132Mhz)"}}

Older releases begin the header with `GPU  Temp (DieEdge)  AvgPwr  SCLK`. Only what the columns say is read: the highest
clock, the product and the links are not in this table. Format: ROCm 3 to 7, rocm_smi.py, showAllConcise.
"""  # noqa: E501 - a row of the table is that long

from __future__ import annotations

import re

from topodiag.evidence import json_values as values
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.lazy import dataclass, regex
from topodiag.model.devices import AMD as AMD_ID
from topodiag.model.topics import Topic
from topodiag.words.dialect import Maker

MAX_LINE = 400
MAX_GPUS = 256
MAX_MHZ = 20_000
_HEAD = 65_536
MOST = 100
"""Percent of anything."""

_HEADER = regex(r"^[ \t>|]{0,20}(?:GPU|Device) [^\n]{0,200}\bSCLK {1,10}MCLK\b[^\n]{0,80}\bGPU% *$", re.MULTILINE)
_ROW = regex(
    r"([0-9]{1,3}) [^\n]{0,200}?\s([0-9]{1,5})Mhz\s{1,10}(?:[0-9]{1,5}Mhz|N/A)\s[^\n]{0,80}?\s"
    r"(?:([0-9]{1,3})%\s{1,10})?([0-9]{1,3})% *\Z"
)


_JSON = regex(r"\A\s*\{[\s\S]{0,4000}?\"card\d{1,3}\"\s{0,9}:\s{0,9}\{\s{0,40}\"")
_CARD = regex(r"card(\d{1,3})")
_CLOCK = regex(r"\(?(\d{1,5})Mhz\)?", re.IGNORECASE)
_NAMES = ("Device Name", "Card Series", "Card series", "Card SKU")
"""Keys that hold the product, the plainest first; the last tells it on cards that name no series."""


@dataclass(frozen=True, slots=True)
class RocmRow:
    """One GPU: its number, its shader clock, its load and what is used of its memory in percent; of the JSON its
    product and its place."""

    index: int
    clock_mhz: int | None
    load: int | None
    used: int | None
    line: int | None
    text: str
    name: str = ""
    bus_id: str = ""


class RocmSmi(Source[RocmRow]):
    """Clock and load of AMD GPUs."""

    kind = "rocm-smi"
    maker = Maker.AMD
    speaks_of = frozenset({Topic.GPUS})
    trust = 65

    def recognises(self, head: str) -> bool:
        return _HEADER.search(head) is not None or _JSON.match(head) is not None

    def parse(self, blob: Blob) -> Parsed[RocmRow]:
        parsed: Parsed[RocmRow] = Parsed(partial=True)
        if _JSON.match(blob.text[:_HEAD]) is not None:
            return _of_json(blob, parsed)
        in_table = False
        for number, whole in blob.lines():
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
            entity = draft.gpu(index=row.index, bus_id=row.bus_id or None)
            origin = blob.origin(row.line, row.text)
            entity.offer("name", row.name or None, origin)
            if row.bus_id:
                draft.pci(row.bus_id).offer("vendor", AMD_ID, origin)
            if row.clock_mhz is not None and 0 < row.clock_mhz <= MAX_MHZ:
                entity.offer("sm_clock_mhz", row.clock_mhz, origin)
            if row.load is not None and row.load <= MOST:
                entity.offer("utilization", row.load, origin)
            if row.used is not None:
                entity.offer("memory_used_share", row.used / MOST, origin)


def _of_json(blob: Blob, parsed: Parsed[RocmRow]) -> Parsed[RocmRow]:
    document, why = values.load(blob)
    if why:
        parsed.leave(blob, None, "", why)
    for key, card in list(document.items())[:MAX_GPUS] if isinstance(document, dict) else ():
        number = _CARD.fullmatch(str(key))
        if number is None or not isinstance(card, dict) or int(number[1]) >= MAX_GPUS:
            continue
        clock = next((found for name, text in card.items() if name.startswith("sclk clock speed")
                      and (found := _CLOCK.fullmatch(str(text).strip()))), None)  # fmt: skip
        load, used = (_percent(str(card.get(name, ""))) for name in ("GPU use (%)", "GPU Memory Allocated (VRAM%)"))
        product = next((text for name in _NAMES if (text := values.text(card.get(name))) and text != "N/A"), "")
        place = values.text(card.get("PCI Bus")) or ""
        mhz = int(clock[1]) if clock is not None else None
        said = ", ".join(f"{name}: {card[name]}" for name in list(card)[:4])
        parsed.records.append(RocmRow(int(number[1]), mhz, load, used, None, f"{key}: {said}"[:400], product, place))
    return parsed


def _percent(cell: str | None) -> int | None:
    known = cell is not None and cell.isdecimal() and cell.isascii() and len(cell) < 4
    return int(cell) if known and cell is not None and int(cell) <= MOST else None
