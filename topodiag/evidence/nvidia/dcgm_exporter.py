"""Metrics of NVIDIA's DCGM exporter: `curl HOST:9400/metrics`, in any choice of fields.

    DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-...",pci_bus_id="00000000:07:00.0",modelName="...",Hostname="n1"} 1980

Fields: dcgmlib/dcgm_fields.h of DCGM; each is what the driver's own tools say by another name. What a GPU does not have
is a number near the highest of its type (DCGM_INT32_BLANK and the like). Of several scrapes in one text the last
counts. Totals over the NVLinks of a GPU name no link, and are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source, reading
from topodiag.evidence.metrics_text import Sample, samples_of, whole
from topodiag.evidence.nvidia.nvidia_words import FABRIC_STATES, NVML_ERRORS, event_reasons
from topodiag.evidence.sentences import report
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import normalise_bus_id
from topodiag.model.events import Trust
from topodiag.model.provenance import NotObserved, Origin
from topodiag.model.system import KernelEvent
from topodiag.model.topics import Topic

MAX_INDEX = 255
MAX_LINKS = 64
MAX_RECORDS = 20_000
MAX_MHZ = 20_000
MAX_WATTS = 20_000
_BLANKS = range((1 << 31) - 16, (1 << 31) - 8)
_FP_BLANK = 1 << 47
_MARK = regex(r"^[ \t]{0,16}DCGM_(?:FI_DEV|EXP)_[A-Z0-9_]{1,80}\{", re.MULTILINE)
_UUID = regex(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LINK = regex(r"NVLINK_(CRC_FLIT|CRC_DATA|REPLAY|RECOVERY)_ERROR_COUNT_L([0-9]{1,2})")
_TOTAL = regex(r"NVLINK_(CRC_FLIT|CRC_DATA|REPLAY|RECOVERY)_ERROR_COUNT_TOTAL")
_MOST = {"CRC_FLIT": 10_000, "CRC_DATA": 10_000, "REPLAY": 100, "RECOVERY": 10}
"""Totals from which links have errors: those of one link in `checks/nvlink/errors.py`."""
_XIDS = ("DCGM_FI_DEV_XID_ERRORS", "DCGM_EXP_XID_ERRORS_COUNT")
_PARTS = ("nvswitch", "nvlink", "cpu", "GPU_I_ID")
"""Labels of samples that are not of a whole GPU."""

Convert = Callable[[float], Any]


def _between(low: int, high: int) -> Convert:
    def convert(value: float) -> int | None:
        number = whole(value)
        return number if number is not None and low <= number <= high else None

    return convert


def _watts(value: float) -> float | None:
    return value if 0 < value <= MAX_WATTS else None


def _reasons(value: float) -> tuple[str, ...] | None:
    mask = whole(value)
    return None if mask is None else event_reasons(mask)


_OF_GPU: dict[str, tuple[str, Convert]] = {
    "SM_CLOCK": ("sm_clock_mhz", _between(1, MAX_MHZ)),
    "MAX_SM_CLOCK": ("max_sm_clock_mhz", _between(1, MAX_MHZ)),
    "GPU_UTIL": ("utilization", _between(0, 100)),
    "MEM_COPY_UTIL": ("memory_utilization", _between(0, 100)),
    "FB_USED": ("memory_used_mib", _between(0, 1 << 30)),
    "POWER_USAGE": ("power_w", _watts),
    "ENFORCED_POWER_LIMIT": ("power_limit_w", _watts),
    "PSTATE": ("pstate", _between(0, 15)),
    "CLOCK_THROTTLE_REASONS": ("throttle", _reasons),
    "CLOCKS_EVENT_REASONS": ("throttle", _reasons),
}
_OF_PCI: dict[str, tuple[str, Convert]] = {
    "PCIE_LINK_GEN": ("gen", _between(1, 8)),
    "PCIE_LINK_WIDTH": ("width", _between(1, 32)),
    "PCIE_MAX_LINK_GEN": ("slot_max_gen", _between(1, 8)),
    "PCIE_MAX_LINK_WIDTH": ("max_width", _between(1, 32)),
}
_COUNTERS = {
    "ECC_SBE_VOL_TOTAL": "ecc_volatile_corrected",
    "ECC_DBE_VOL_TOTAL": "ecc_volatile_uncorrected",
    "ECC_SBE_AGG_TOTAL": "ecc_aggregate_corrected",
    "ECC_DBE_AGG_TOTAL": "ecc_aggregate_uncorrected",
    "RETIRED_SBE": "retired_single_bit",
    "RETIRED_DBE": "retired_double_bit",
    "RETIRED_PENDING": "retired_pending",
    "CORRECTABLE_REMAPPED_ROWS": "remapped_correctable",
    "UNCORRECTABLE_REMAPPED_ROWS": "remapped_uncorrectable",
    "ROW_REMAP_PENDING": "remapped_pending",
    "ROW_REMAP_FAILURE": "remapped_failure",
}


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One sample of one GPU: the name of the field without what all have in front."""

    index: int
    bus_id: str | None
    uuid: str | None
    field: str
    sample: Sample


class DcgmExporter(Source[GpuSample]):
    """Facts of GPUs from a scrape of the DCGM exporter."""

    kind = "dcgm-exporter"
    speaks_of = frozenset({Topic.GPUS})
    trust = 65
    a_piece = "GPUs of some pods, or the lines that somebody searched for, look the same"

    def recognises(self, head: str) -> bool:
        return "DCGM_" in head and _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[GpuSample]:
        parsed: Parsed[GpuSample] = Parsed(partial=True)
        parsed.lines = blob.data.count(b"\n") + 1
        latest: dict[tuple[int, str, str], GpuSample] = {}
        hosts: dict[str, int] = {}
        for sample in samples_of(blob, "DCGM_"):
            hosts.setdefault(sample.labels.get("Hostname", ""), sample.line)
            record = _record(sample)
            if record is None or len(latest) >= MAX_RECORDS:
                continue
            key = (record.index, record.field, sample.labels.get("xid", ""))
            latest.pop(key, None)
            latest[key] = record
        if len(hosts) > 1:
            why = f"metrics of {len(hosts)} hosts in one text: give each host's own"
            parsed.leave(blob, sorted(hosts.values())[1], "", why)
            return parsed
        parsed.records.extend(latest.values())
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[GpuSample], draft: NodeDraft) -> None:
        totals = False
        buses = {record.index: record.bus_id for record in parsed.records if record.bus_id is not None}
        for record in parsed.records:
            _offer(blob, replace(record, bus_id=buses.get(record.index)), draft)
            total = _TOTAL.fullmatch(record.field)
            totals = totals or (total is not None and record.sample.value > 0)
            if total is not None and record.sample.value >= _MOST[total[1]]:
                text = f"GPU {record.index}: {record.field} is {record.sample.value:.0f}"
                draft.reports.append(
                    report("nvlink.errors", text, blob, record.sample.line, record.sample.text, trust=Trust.PERSON)
                )
        if totals:
            why = "the DCGM exporter gives totals of a GPU: its fields DCGM_FI_DEV_NVLINK_*_ERROR_COUNT_L0.. name links"
            draft.missing.append(NotObserved("which NVLinks have errors", why))


def _record(sample: Sample) -> GpuSample | None:
    """The sample as one of a whole GPU; None for others, and where the GPU has no such value."""
    labels = sample.labels
    index = labels.get("gpu", "")
    is_gpu = index.isascii() and index.isdigit() and len(index) <= 3 and int(index) <= MAX_INDEX
    if not is_gpu or any(labels.get(part) for part in _PARTS) or sample.value >= _FP_BLANK or sample.value in _BLANKS:
        return None
    uuid = labels.get("UUID", "")
    return GpuSample(
        int(index),
        normalise_bus_id(labels.get("pci_bus_id", "")),
        uuid if _UUID.fullmatch(uuid) else None,
        sample.name.removeprefix("DCGM_FI_DEV_"),
        sample,
    )


def _offer_once(entity: Entity, name: str, value: str | None, origin: Origin) -> None:
    """What every sample of a GPU repeats."""
    if name not in entity.offers:
        entity.offer(name, value, origin)


def _offer(blob: Blob, record: GpuSample, draft: NodeDraft) -> None:
    sample = record.sample
    origin = blob.origin(sample.line, sample.text)
    gpu = draft.gpu(index=record.index, bus_id=record.bus_id, uuid=record.uuid)
    if record.uuid is not None:
        _offer_once(gpu, "uuid", record.uuid, origin)
    _offer_once(gpu, "name", reading(sample.labels.get("modelName")), origin)
    _offer_once(gpu, "vbios", reading(sample.labels.get("DCGM_FI_DEV_VBIOS_VERSION")), origin)
    driver = reading(sample.labels.get("DCGM_FI_DRIVER_VERSION"))
    _offer_once(draft.single("os"), "driver_version", driver, origin)
    if sample.name in _XIDS:
        _xid(blob, record, draft)
    elif record.field in _OF_GPU:
        name, convert = _OF_GPU[record.field]
        gpu.offer(name, convert(sample.value), origin)
    elif record.field in _COUNTERS:
        gpu.count(_COUNTERS[record.field], whole(sample.value), origin)
    elif record.field == "FABRIC_MANAGER_STATUS":
        state = FABRIC_STATES.get(min(whole(sample.value) or 0, 3)) if sample.value <= 4 else None
        gpu.child("fabric", 0).offer("state", state, origin)
        if sample.value == 3:
            gpu.child("fabric", 0).offer("status", "success", origin)
    elif record.field == "FABRIC_MANAGER_ERROR_CODE" and (code := whole(sample.value)):
        gpu.child("fabric", 0).offer("status", NVML_ERRORS.get(code, f"error {code}"), origin)
    elif (link := _LINK.fullmatch(record.field)) is not None and int(link[2]) < MAX_LINKS:
        gpu.child("nvlink", int(link[2])).count(link[1].lower(), whole(sample.value), origin)
    elif record.bus_id is not None and record.field in _OF_PCI:
        name, convert = _OF_PCI[record.field]
        draft.pci(record.bus_id).offer(name, convert(sample.value), origin)
    elif record.bus_id is not None and record.field == "PCIE_REPLAY_COUNTER":
        draft.pci(record.bus_id).count("replay", whole(sample.value), origin)


def _xid(blob: Blob, record: GpuSample, draft: NodeDraft) -> None:
    """The last Xid of a GPU, or one that was counted within the exporter's window: an event without a time."""
    sample = record.sample
    counted = sample.labels.get("xid", "")
    if sample.name == _XIDS[0]:
        code = whole(sample.value)
    else:
        code = int(counted) if re.fullmatch("[0-9]{1,4}", counted) else None
    if not code or code > 9999 or not sample.value:
        return
    if any(event.code == code and event.gpu == record.index for event in draft.events):
        return
    words = sample.labels.get("err_msg", "")[:120]
    text = f"Xid {code} by the DCGM exporter" + (f": {words}" if words else "")
    origin = blob.origin(sample.line, sample.text)
    draft.events.append(KernelEvent("xid", text, origin, None, record.bus_id, code, record.index, of_log=False))
