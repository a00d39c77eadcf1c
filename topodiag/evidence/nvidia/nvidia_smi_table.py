"""`nvidia-smi` alone and `nvidia-smi -L`: which GPUs there are, and the little that the table says of each.

    |   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0 |
    | N/A   41C    P0             69W /  700W |       0MiB /  81559MiB |      0%      Default |
    |                                         |                        |             Disabled |

Three rows for each GPU (two before R450), cells between bars; a name that ends in dots was cut by the tool. The line
that stands in place of a report when a GPU has fallen off the bus is read too. Format: drivers R384 to R610.

The table of processes below `nvidia-smi`'s own, with it or pasted alone: which program has which GPU open.

    |  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
    |    3   N/A  N/A          990121      C   ./gpu_burn                             9121MiB |
    |    0     31794    C   python                                        5371MiB |

    # gpu         pid   type     sm    mem    enc    dec    command
        5      118330     C     44     19      -      -    blender

The last two lines are of `nvidia-smi pmon`. Programs that only draw (type G) are left out. Long names are cut at their
start by the tool. Format: drivers R384 to R610.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import MAX_GPUS, MAX_LINE, Blob, Parsed, Source, reading
from topodiag.evidence.nvidia.nvidia_smi_xml import SmiReport, XmlField, XmlGpu, fill_report
from topodiag.evidence.nvidia.nvidia_words import LOST, fill_lost
from topodiag.evidence.page import OfPage, Page
from topodiag.lazy import dataclass
from topodiag.model import tables
from topodiag.model.provenance import Fact, known
from topodiag.model.system import Process
from topodiag.words.own_data import own_data, patterns

LOST_READINGS = 2
"""Readings of temperature, performance and power that are ERR! when the GPU does not answer; one is a dead sensor."""

_LIKE = patterns("evidence/nvidia/lines", "table")
_TITLE = "| NVIDIA-SMI "

_COMPUTE_MODES: Mapping[str, str] = own_data("evidence/nvidia/names")["table-compute-modes"]
_SWITCHES = {"On": "Enabled", "Off": "Disabled"}
_OF_READING = {
    "pstate": "performance_state", "power": "power_readings/power_draw", "limit": "power_readings/power_limit",
    "used": "fb_memory_usage/used", "memory": "fb_memory_usage/total",
}  # fmt: skip
"""Numbers of the second row, by their names in `_LIKE["reading"]`, as elements of `nvidia-smi -q -x`."""


@dataclass(slots=True)
class TableGpu:
    """One GPU of the table or of the list: what `nvidia-smi -q -x` says of it, too, and the line that names it."""

    report: XmlGpu
    line: int
    in_table: bool = False
    lost: bool = False
    second: tuple[int, str] = (0, "")
    """Its second row: temperature, power, memory and load."""
    readings: dict[str, str] = field(default_factory=dict)
    """The numbers of that row, by their names in `_LIKE["reading"]`."""

    def add(self, path: str, text: str, number: int, line: str) -> None:
        """What a line says of an element; a cell without a reading says nothing."""
        if reading(text) is not None:
            self.report.fields.append(XmlField(path, text, number, line))


class NvidiaSmiTable(Source):
    """GPUs with name, bus id, MIG, persistence, load, performance state, uncorrected errors; the driver's versions."""

    def recognises(self, head: str) -> bool:
        if _LIKE["first_row"].search(head) is not None or LOST.search(head) is not None:
            return True
        lines = [line.lstrip(" \t>") for line in head.split("\n")]
        linked = any(line.lstrip("|").lstrip().startswith("Link ") for line in lines)
        listed = not linked and _LIKE["listed"].search(head) is not None
        return listed or any(line.startswith(_TITLE) for line in lines)

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        parsed: Parsed[int] = Parsed()
        fill_lost(blob, draft)
        driver: list[XmlField] = []
        gpus: dict[int, TableGpu] = {}
        row: TableGpu | None = None
        for number, whole in blob.lines():
            line = whole[:MAX_LINE].rstrip().lstrip("> \t")
            if line.startswith(_TITLE):
                row = None
                for match in _LIKE["version"].finditer(line):
                    name = "cuda_version" if match[1] == "CUDA" else "driver_version"
                    driver.append(XmlField(name, match[2], number, line))
                    parsed.records.append(number)
            elif LOST.search(line):
                parsed.records.append(number)
            elif listed := _LIKE["listed"].match(line):
                gpu = _gpu(gpus, int(listed[1]), number)
                if gpu is not None:
                    gpu.add("uuid", listed[3], number, line)
                    gpu.add("product_name", listed[2], number, line)
            else:
                row = _row(gpus, row, number, line)
        fill_report(blob, SmiReport(driver, [gpu.report for gpu in gpus.values()]), draft, ordered=True)
        for gpu in gpus.values():
            if gpu.lost:
                why = "GPU is lost (its readings are ERR!)"
                draft.gpu(index=gpu.report.order).offer("lost", why, blob.origin(*gpu.second))
        rows = [gpu for gpu in gpus.values() if gpu.second[0] and not gpu.lost]
        draft.tables.append(tables.Table(tuple(tables.Row(_cells(gpu), blob.origin(*gpu.second)) for gpu in rows)))
        parsed.records += [gpu.line for gpu in gpus.values()]
        return parsed


def _cells(gpu: TableGpu) -> dict[str, str]:
    """What the second row of a GPU says beside the fields of the model."""
    text = gpu.second[1]
    cells = {
        tables.GPU: str(gpu.report.order),
        tables.PRODUCT: next((field.text for field in gpu.report.fields if field.path == "product_name"), ""),
        tables.FAILED_READING: next((word for word in ("ERR!", "Unknown Error") if word in text), ""),
        tables.COMPUTE_MODE: "Prohibited" if "Prohibited" in text else "",
        tables.CELSIUS: gpu.readings.get("celsius", ""),
        tables.MEMORY_MIB: gpu.readings.get("memory", ""),
    }
    return {name: cell for name, cell in cells.items() if cell}


def _gpu(gpus: dict[int, TableGpu], index: int, number: int) -> TableGpu | None:
    if index not in gpus and len(gpus) < MAX_GPUS:
        gpus[index] = TableGpu(XmlGpu(index, "", []), number)
    return gpus.get(index)


def _row(gpus: dict[int, TableGpu], row: TableGpu | None, number: int, line: str) -> TableGpu | None:
    """The GPU whose rows these are, after this line: the first row begins it, a rule of dashes ends it."""
    if (first := _LIKE["first_row"].match(line)) is not None:
        index, name, persistence, bus_id, screen, errors = first.groups()
        gpu = _gpu(gpus, int(index), number)
        if gpu is None or gpu.in_table:
            return None  # the same table once more: the first reading stays
        gpu.in_table, gpu.report.bus_id = True, bus_id
        gpu.add("product_name", "" if name.endswith("...") else name, number, line)
        gpu.add("persistence_mode", _SWITCHES.get(persistence, ""), number, line)
        gpu.add("display_active", _SWITCHES.get(screen, ""), number, line)
        gpu.add("ecc_errors/volatile/double_bit/total", errors.strip(), number, line)
        return gpu
    cells = line.split("|")
    if row is None or len(cells) != 5 or cells[0]:
        return None
    load, _, mode = cells[3].strip().partition(" ")
    if mode and (load in ("N/A", "ERR!") or load.endswith("%")):
        _second_row(row, cells, number, line)
    elif not cells[1].strip() and not cells[2].strip():
        row.add("mig_mode/current_mig", load.rstrip("*"), number, line)
    return row


def _second_row(gpu: TableGpu, cells: list[str], number: int, line: str) -> None:
    if not gpu.second[0]:
        gpu.second = number, line
        for match in _LIKE["reading"].finditer(" ".join(cells[1:3])):
            gpu.readings |= {name: digits for name, digits in match.groupdict().items() if digits}
    load, _, mode = cells[3].strip().partition(" ")
    for name, path in _OF_READING.items():
        gpu.add(path, gpu.readings.get(name, ""), number, line)
    gpu.add("utilization/gpu_util", load, number, line)
    gpu.add("compute_mode", _COMPUTE_MODES.get(mode.strip(), ""), number, line)
    gpu.lost |= cells[1].count("ERR!") >= LOST_READINGS


MAX_ROWS = 4096


class SmiProcesses(OfPage):
    """Processes that compute, by GPU."""

    def read_page(self, page: Page) -> None:
        rows: dict[int, list[tuple[int, Fact[str]]]] = {}
        sampled = False
        for line in page.lines():
            sampled = sampled or line.bare.split()[:3] == ["#", "gpu", "pid"]
            row = _LIKE["row"].match(line.text) or (_LIKE["sample"].match(line.text) if sampled else None)
            if row is not None and len(page.parsed.records) < MAX_ROWS:
                rows.setdefault(int(row[2]), []).append((int(row[1]), known(row[3].strip(), line.origin)))
                page.mark(line.number)
        for pid in rows.keys() - {process.pid for process in page.draft.processes}:
            gpus = tuple(dict.fromkeys(gpu for gpu, _ in rows[pid]))
            page.draft.processes.append(Process(pid, gpus, rows[pid][0][1]))
