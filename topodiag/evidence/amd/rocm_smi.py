"""`rocm-smi` without options, or any part of it as `--json`: clocks and load of AMD GPUs.

    Device  Node  IDs              Temp        Power     Partitions          SCLK     MCLK     Fan  Perf  PwrCap  VRAM%  GPU%
    0       2     0x74a1,   28851  61.0C       612.0W    NPS1, SPX, 0        2097Mhz  1300Mhz  0%   auto  750.0W  71%    100%

    {"card0": {"Card Series": "AMD Instinct MI300X", "PCI Bus": "0000:05:00.0", "sclk clock speed:": "(132Mhz)"}}

Older releases begin the header with `GPU  Temp (DieEdge)  AvgPwr  SCLK`. Only what the columns say is read: the highest
clock, the product and the links are not in this table. Format: ROCm 3 to 7, rocm_smi.py, showAllConcise.
"""  # noqa: E501 - a row of the table is that long

from __future__ import annotations

from itertools import pairwise

from topodiag.evidence import json_values as values
from topodiag.evidence.interface import MAX_GPUS, reading, to_int
from topodiag.evidence.page import OfPage, Page
from topodiag.model.devices import AMD as AMD_ID

MAX_MHZ = 20_000
MOST = 100
"""Percent of anything."""

_COLUMNS = {"SCLK", "MCLK", "GPU%"}
_NAMES = ("Device Name", "Card Series", "Card series", "Card SKU")
"""Keys that hold the product, the plainest first; the last tells it on cards that name no series."""


class RocmSmi(OfPage):
    """Clock and load of AMD GPUs."""

    def read_page(self, page: Page) -> None:
        if page.blob.text.lstrip()[:1] == "{":
            _read_json(page)
            return
        in_table = False
        for line in page.bare_lines():
            words = line.text.split()
            in_table = in_table or set(words) >= _COLUMNS
            pairs = pairwise(words)
            clocks = [word for word, after in pairs if word.endswith("Mhz") and after.endswith(("Mhz", "N/A"))]
            index = to_int(words[0], low=0, high=MAX_GPUS - 1) if in_table and clocks and words[-1][-1] == "%" else None
            if index is not None:
                used = words[-2] if words[-2].endswith("%") else None
                line.put(page.draft.gpu(index=index), **_fields(clocks[0], words[-1], used))


def _fields(clock: str | None, load: str | None, used: str | None) -> dict[str, object]:
    """The shader clock in MHz, the load, and what is used of the memory in percent."""
    share = to_int(used, low=0, high=MOST)
    return {
        "sm_clock_mhz": to_int(clock, low=1, high=MAX_MHZ),
        "utilization": to_int(load, low=0, high=MOST),
        "memory_used_share": None if share is None else share / MOST,
    }


def _read_json(page: Page) -> None:
    document = values.document_of(page.blob, page.parsed)
    for key, card in list(document.items())[:MAX_GPUS] if isinstance(document, dict) else ():
        number = to_int(str(key).removeprefix("card"), low=0, high=MAX_GPUS - 1)
        if number is None or not isinstance(card, dict):
            continue
        texts = {name: values.text(str(value)) for name, value in card.items()}
        clock = next((text for name, text in texts.items() if name.startswith("sclk clock speed")), None) or ""
        origin = page.blob.origin(text=f"{key}: {', '.join(f'{name}: {card[name]}' for name in list(card)[:4])}"[:400])
        place = texts.get("PCI Bus")
        product = next(filter(None, (reading(texts.get(name)) for name in _NAMES)), None)
        cells = _fields(clock.lstrip("("), texts.get("GPU use (%)"), texts.get("GPU Memory Allocated (VRAM%)"))
        page.draft.gpu(index=number, bus_id=place).put(origin, name=product, **cells)
        if place is not None:
            page.draft.pci(place).offer("vendor", AMD_ID, origin)
        page.parsed.records.append(0)
