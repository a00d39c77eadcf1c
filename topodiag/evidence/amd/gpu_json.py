"""`amd-smi metric` and `amd-smi static`, with `--json` or without: errors by block of the chip, PCIe, product, place.

    {"gpu_data": [{"gpu": 5, "ecc_blocks": {"UMC": {"uncorrectable_count": 0}, "XGMI_WAFL": {"correctable_count": 41}},
                   "pcie": {"width": 16, "speed": {"value": 32, "unit": "GT/s"}, "replay_count": 0}}]}

    GPU: 5
        ECC_BLOCKS:
            XGMI_WAFL:
                CORRECTABLE_COUNT: 41

ROCm 7 has the list below `gpu_data`, older releases have it bare. The text is the same tree, indented. UMC counts are
those of memory; the block of xGMI is counted apart, as errors of links. Format: amdsmi_commands.py (metric, static),
ROCm 6 and 7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from topodiag.evidence import json_values as values
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.pcie import MAX_WIDTH
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.lazy import dataclass, regex
from topodiag.model.devices import AMD as AMD_ID
from topodiag.model.topics import Topic
from topodiag.words.dialect import Maker

MAX_GPUS = 256
MAX_COUNT = 2**63
_GENS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
"""PCIe generations by transfers a second of a lane, in 10^9 (PCI Express Base Specification 6.0)."""
MEMORY, LINKS = "UMC", "XGMI_WAFL"
"""The blocks of the memory controllers, and of xGMI (amdgpu_ras.h of Linux)."""
_MARK = regex(
    r"\"gpu\"\s{0,9}:\s{0,9}\d{1,3}\s{0,9},[\s\S]{0,4000}?\"(?:ecc|ecc_blocks|asic|xgmi_err|pcie)\"\s{0,9}:\s{0,9}\{"
)
_TEXT = regex(
    r"^[ \t>|]{0,20}GPU: \d{1,3}\s*\n(?:[^\n]{0,200}\n){0,60}?[ \t>|]{1,40}(?:ASIC|BUS|ECC|ECC_BLOCKS|PCIE):\s*$",
    re.MULTILINE,
)
_FIELD = regex(r"([A-Za-z0-9_]{1,60}):(?:\s{1,9}(\S.{0,200}))?\s*\Z")
_WITH_UNIT = regex(r"(\d{1,9}(?:\.\d{1,6})?)\s(GT/s|MHz|W|%|.?C)\Z")
MAX_LINE = 400
MAX_LINES = 200_000


@dataclass(frozen=True, slots=True)
class GpuRecord:
    """One value of one GPU: a field, a counter, or a field of its PCIe function."""

    gpu: int
    name: str
    value: Any
    text: str
    counter: bool = False
    pci: bool = False


class AmdSmiJson(Source[GpuRecord]):
    """Counters and facts of AMD's GPUs."""

    kind = "amd-smi-json"
    maker = Maker.AMD
    speaks_of = frozenset({Topic.GPUS})
    trust = 70
    a_piece = "it tells what its options asked for"

    def recognises(self, head: str) -> bool:
        if head.lstrip()[:1] in ("{", "["):
            return _MARK.search(head) is not None and "nvidia" not in head.lower()
        return _TEXT.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[GpuRecord]:
        parsed: Parsed[GpuRecord] = Parsed(lines=blob.data.count(b"\n") + 1)
        if blob.data.lstrip()[:1] in (b"{", b"["):
            document, why = values.load(blob)
            if why:
                parsed.leave(blob, None, "", why)
        else:
            document = _of_text(blob)
        gpus = document.get("gpu_data") if isinstance(document, dict) else document
        for _, gpu in values.objects(gpus, MAX_GPUS):
            number = values.integer(gpu.get("gpu"), high=MAX_GPUS - 1)
            if number is not None:
                parsed.records.extend(_of_gpu(number, gpu))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[GpuRecord], draft: NodeDraft) -> None:
        buses = {record.gpu: record.value for record in parsed.records if record.name == "bus_id"}
        for record in parsed.records:
            bus_id, origin = buses.get(record.gpu), blob.origin(None, record.text)
            entity = draft.gpu(index=record.gpu, bus_id=bus_id)
            if record.counter:
                entity.count(record.name, record.value, origin)
            elif record.pci:
                if bus_id is not None:
                    draft.pci(bus_id).offer(record.name, record.value, origin)
            elif record.name != "bus_id":
                entity.offer(record.name, record.value, origin)


def _of_gpu(number: int, gpu: dict[str, Any]) -> Iterator[GpuRecord]:
    bus_id = values.text(values.member(gpu.get("bus"), "bdf")) or values.text(gpu.get("bdf"))
    if bus_id is not None:
        yield GpuRecord(number, "bus_id", bus_id, "")
        yield GpuRecord(number, "vendor", AMD_ID, f"gpu {number}: bdf {bus_id}", pci=True)
        for key, field in (("max_pcie_width", "max_width"), ("max_pcie_speed", "max_gen")):
            held = values.member(gpu.get("bus"), key)
            made = _width(held) if field == "max_width" else _gen(held)
            if made is not None:
                yield GpuRecord(number, field, made, f"gpu {number}: {key} {values.shown(held)}", pci=True)
    numa = values.integer(values.member(gpu.get("numa"), "node"), low=0, high=4095)
    if numa is not None:
        yield GpuRecord(number, "numa", numa, f"gpu {number}: numa node {numa}")
    name = values.text(values.member(gpu.get("asic"), "market_name"))
    if name is not None and name.upper() != "N/A":
        yield GpuRecord(number, "name", name, f"gpu {number}: market_name {name}")
    yield from _errors(number, gpu)
    yield from _pcie(number, gpu.get("pcie"))


def _errors(number: int, gpu: dict[str, Any]) -> Iterator[GpuRecord]:
    blocks = gpu.get("ecc_blocks")
    if isinstance(blocks, dict) and isinstance(blocks.get(MEMORY), dict):
        sums = {"uncorrectable_count": 0, "correctable_count": 0}
        for block, counts in list(blocks.items())[:64]:
            for kind, short in (("uncorrectable_count", "uncorrected"), ("correctable_count", "corrected")):
                count = values.integer(values.member(counts, kind), high=MAX_COUNT)
                if count is None:
                    continue
                text = f"gpu {number}: {block} {kind} {count}"
                if block in (MEMORY, LINKS):
                    family = "ecc_volatile" if block == MEMORY else "xgmi"
                    yield GpuRecord(number, f"{family}_{short}", count, text, counter=True)
                else:
                    sums[kind] += count
        lost = sums["uncorrectable_count"]
        text = f"gpu {number}: uncorrectable_count {lost} in other blocks"
        yield GpuRecord(number, "ras_uncorrected", lost, text, counter=True)
        return
    totals = gpu.get("ecc")
    for kind, short in (("total_uncorrectable_count", "uncorrected"), ("total_correctable_count", "corrected")):
        count = values.integer(values.member(totals, kind), high=MAX_COUNT)
        if count is not None:
            yield GpuRecord(number, f"ecc_volatile_{short}", count, f"gpu {number}: {kind} {count}", counter=True)


def _pcie(number: int, pcie: object) -> Iterator[GpuRecord]:
    width, gen = _width(values.member(pcie, "width")), _gen(values.member(pcie, "speed"))
    replays = values.integer(values.member(pcie, "replay_count"), high=MAX_COUNT)
    if width is not None:
        yield GpuRecord(number, "width", width, f"gpu {number}: pcie width {width}", pci=True)
    if gen is not None:
        said = values.shown(values.member(pcie, "speed"))
        yield GpuRecord(number, "gen", gen, f"gpu {number}: pcie speed {said}", pci=True)
    if replays is not None:
        yield GpuRecord(number, "pcie_replay", replays, f"gpu {number}: replay_count {replays}", counter=True)


def _width(held: object) -> int | None:
    return values.integer(held, low=1, high=MAX_WIDTH)


def _gen(held: object) -> int | None:
    speed = values.member(held, "value") if isinstance(held, dict) else held
    return _GENS.get(float(speed)) if isinstance(speed, int | float) else None


def _of_text(blob: Blob) -> list[dict[str, Any]]:
    """The GPUs of the text as the JSON has them: what stands further to the right is below. Keys of fields are in lower
    case, those of the chip's blocks as they stand."""
    gpus: list[dict[str, Any]] = []
    stack: list[tuple[int, dict[str, Any]]] = []
    for number, whole in blob.lines():
        line = whole[:MAX_LINE].rstrip().lstrip(">|")
        field = _FIELD.match(line.strip())
        if field is None or number > MAX_LINES:
            continue
        at, value = len(line) - len(line.lstrip()), field[2]
        if field[1] == "GPU" and value is not None:
            if len(gpus) >= MAX_GPUS:
                break
            gpus.append({"gpu": _scalar(value)})
            stack = [(at, gpus[-1])]
            continue
        while stack and stack[-1][0] >= at:
            stack.pop()
        if not stack:
            continue
        above = stack[-1][1]
        if value is None:
            name = field[1] if len(stack) > 1 else field[1].lower()
            stack.append((at, above.setdefault(name, {}) if isinstance(above.get(name, {}), dict) else {}))
        else:
            above[field[1].lower()] = _scalar(value)
    return gpus


def _scalar(text: str) -> Any:
    if united := _WITH_UNIT.match(text):
        return {"value": float(united[1]), "unit": united[2]}
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else text


__all__ = ["AmdSmiJson", "GpuRecord"]
