"""`nvidia-smi --query-gpu=FIELDS --format=csv`: with its line of names, or with the command that asked before it.

    index, pci.bus_id, name, pcie.link.gen.current, pcie.link.width.current, utilization.gpu [%]
    0, 00000000:53:00.0, NVIDIA H100 80GB HBM3, 5, 16, 100 %

Names are brought to the elements of `nvidia-smi -q -x`, and the same code judges what they mean. Format: the help of
`nvidia-smi --help-query-gpu`, R450 to R610.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source, to_int
from topodiag.evidence.nvidia.lost_gpus import fill_lost
from topodiag.evidence.nvidia.nvidia_words import event_reasons
from topodiag.evidence.nvidia.smi_xml_facts import fill_report
from topodiag.evidence.nvidia.smi_xml_records import XmlField, XmlGpu, XmlRecord
from topodiag.model.topics import Topic

MAX_LINE = 4000
MAX_COLUMNS = 120
MAX_ROWS = 4096
MAX_INDEX = 1023

_ASKED = re.compile(r"nvidia-smi[^\n]{0,200}?--query-gpu[= ]([a-zA-Z0-9_.,]{3,3000})")
_UNIT = re.compile(r" \[[^\]]{1,12}\]$")
_NAME = re.compile(r"[a-z][a-z0-9_.]{1,60}")
_PLACES = frozenset({"index", "pci.bus_id", "gpu_bus_id", "uuid", "gpu_uuid"})

_LINK = "pci/pci_gpu_link_info"
_PATHS = {
    "name": "product_name", "gpu_name": "product_name", "uuid": "uuid", "gpu_uuid": "uuid",
    "persistence_mode": "persistence_mode", "compute_mode": "compute_mode", "mig.mode.current": "mig_mode/current_mig",
    "pstate": "performance_state", "utilization.gpu": "utilization/gpu_util",
    "clocks.sm": "clocks/sm_clock", "clocks.current.sm": "clocks/sm_clock", "clocks.max.sm": "max_clocks/sm_clock",
    "pcie.link.gen.current": f"{_LINK}/pcie_gen/current_link_gen",
    "pcie.link.gen.gpucurrent": f"{_LINK}/pcie_gen/current_link_gen",
    "pcie.link.gen.max": f"{_LINK}/pcie_gen/max_link_gen",
    "pcie.link.gen.gpumax": f"{_LINK}/pcie_gen/max_device_link_gen",
    "pcie.link.width.current": f"{_LINK}/link_widths/current_link_width",
    "pcie.link.width.max": f"{_LINK}/link_widths/max_link_width",
    "ecc.errors.uncorrected.volatile.total": "ecc_errors/volatile/double_bit/total",
    "ecc.errors.corrected.volatile.total": "ecc_errors/volatile/single_bit/total",
    "ecc.errors.uncorrected.aggregate.total": "ecc_errors/aggregate/double_bit/total",
    "retired_pages.pending": "retired_pages/pending_retirement",
    "remapped_rows.correctable": "remapped_rows/remapped_row_corr",
    "remapped_rows.uncorrectable": "remapped_rows/remapped_row_unc",
    "remapped_rows.pending": "remapped_rows/remapped_row_pending",
    "remapped_rows.failure": "remapped_rows/remapped_row_failure",
    "fabric.state": "fabric/state", "fabric.status": "fabric/status",
    "reset_status.reset_required": "gpu_reset_status/reset_required",
    "gpu_recovery_action": "gpu_recovery_action",
}  # fmt: skip
_MASKS = frozenset({"clocks_event_reasons.active", "clocks_throttle_reasons.active"})
_REASONS = ("clocks_event_reasons.", "clocks_throttle_reasons.")


class NvidiaSmiCsv(Source[XmlRecord]):
    """Rows of a query. Offers what the full query offers, as far as it was asked for."""

    kind = "nvidia-smi-csv"
    speaks_of = frozenset({Topic.GPUS})
    trust = 70

    def recognises(self, head: str) -> bool:
        return any(_columns(line[:MAX_LINE]) for line in head.split("\n")) or _ASKED.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[XmlRecord]:
        parsed: Parsed[XmlRecord] = Parsed()
        columns: tuple[str, ...] = ()
        for number, whole in blob.lines():
            parsed.lines = number
            line = whole[:MAX_LINE].strip("> \t")
            if asked := _ASKED.search(line):
                columns = tuple(asked[1].lower().split(",")[:MAX_COLUMNS])
            elif named := _columns(line):
                columns = named
            elif columns and len(parsed.records) < MAX_ROWS:
                record = _row(columns, line, number)
                if record is not None:
                    parsed.records.append(record)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[XmlRecord], draft: NodeDraft) -> None:
        fill_lost(blob, draft)
        first: dict[tuple[int, str], XmlGpu] = {}  # of a query that repeats (`-l 1`) the first reading of each GPU
        for row in parsed.records:
            if isinstance(row, XmlGpu):
                first.setdefault((row.order, row.bus_id), row)
        fill_report(blob, [row for row in first.values() if row.order >= 0], draft)
        fill_report(blob, [row for row in first.values() if row.order < 0], draft, ordered=False)


def _columns(line: str) -> tuple[str, ...]:
    """The names of a heading, or none: two or more that the query knows, one of which says which GPU or what of it."""
    cells = [_UNIT.sub("", cell.strip()) for cell in line.split(",")[:MAX_COLUMNS]]
    if len(cells) < 2 or not all(_NAME.fullmatch(cell) for cell in cells):
        return ()
    known = sum(cell in _PATHS or cell in _PLACES or cell in _MASKS for cell in cells)
    return tuple(cells) if known >= 2 and any("." in cell or cell in _PLACES for cell in cells) else ()


def _row(columns: Sequence[str], line: str, number: int) -> XmlGpu | None:
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != len(columns) or not any(cells):
        return None
    values = dict(zip(columns, cells, strict=True))
    index = to_int(values.get("index"), low=0, high=MAX_INDEX)
    bus_id = values.get("pci.bus_id") or values.get("gpu_bus_id") or ""
    if index is None and not bus_id and "uuid" not in values and "gpu_uuid" not in values:
        return None
    fields = tuple(_fields(values, number, line))
    return XmlGpu(-1 if index is None else index, bus_id, number, fields, complete=True)


def _fields(values: dict[str, str], number: int, line: str) -> Iterator[XmlField]:
    for name, text in values.items():
        if name in _PATHS:
            yield XmlField(_PATHS[name], text, number, line)
        elif name in _MASKS and (mask := to_int(text, low=0)) is not None:
            for reason in event_reasons(mask):
                yield XmlField(f"clocks_event_reasons/clocks_event_reason_{reason}", "Active", number, line)
            if not mask:
                yield XmlField("clocks_event_reasons/clocks_event_reason_gpu_idle", "Not Active", number, line)
        elif name.startswith(_REASONS):
            reason = name.partition(".")[2]
            yield XmlField(f"clocks_event_reasons/clocks_event_reason_{reason}", text, number, line)
    if "pcie.link.gen.max" in values and "pcie.link.gen.gpumax" not in values:
        # The plain maximum is that of GPU and slot together: without the GPU's own it stands for it.
        yield XmlField(f"{_LINK}/pcie_gen/max_device_link_gen", values["pcie.link.gen.max"], number, line)
