"""`amd-smi metric --json` and `amd-smi static --json`: errors by block of the chip, PCIe, product, bus id.

    {"gpu_data": [{"gpu": 5, "ecc_blocks": {"UMC": {"uncorrectable_count": 0}, "XGMI_WAFL": {"correctable_count": 41}},
                   "pcie": {"width": 16, "speed": {"value": 32, "unit": "GT/s"}, "replay_count": 0}}]}

ROCm 7 has the list below `gpu_data`, older releases have it bare. UMC counts are those of memory; the block of xGMI is
counted apart, as errors of links. Format: amdsmi_commands.py (metric, static), ROCm 6 and 7.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from topodiag.evidence import json_values as values
from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.pcie import MAX_WIDTH
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.lazy import dataclass, regex
from topodiag.model.maker import AMD_ID
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
        return head.lstrip()[:1] in ("{", "[") and _MARK.search(head) is not None and "nvidia" not in head.lower()

    def parse(self, blob: Blob) -> Parsed[GpuRecord]:
        parsed: Parsed[GpuRecord] = Parsed(lines=blob.data.count(b"\n") + 1)
        document, why = values.load(blob)
        if why:
            parsed.leave(blob, None, "", why)
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
    width = values.integer(values.member(pcie, "width"), low=1, high=MAX_WIDTH)
    speed = values.member(values.member(pcie, "speed"), "value")
    replays = values.integer(values.member(pcie, "replay_count"), high=MAX_COUNT)
    if width is not None:
        yield GpuRecord(number, "width", width, f"gpu {number}: pcie width {width}", pci=True)
    if isinstance(speed, int | float) and (gen := _GENS.get(float(speed))):
        yield GpuRecord(number, "gen", gen, f"gpu {number}: pcie speed {speed}", pci=True)
    if replays is not None:
        yield GpuRecord(number, "pcie_replay", replays, f"gpu {number}: replay_count {replays}", counter=True)


__all__ = ["AmdSmiJson", "GpuRecord"]
