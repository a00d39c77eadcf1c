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

from topodiag.evidence.interface import reading
from topodiag.evidence.nvidia.nvidia_smi_xml import SmiGpu, SmiReport, XmlField, fill_report
from topodiag.evidence.nvidia.nvidia_words import LOST, fill_lost
from topodiag.evidence.page import Line, OfPage, Page
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
class _Row:
    """What the rows of one GPU say beside what `nvidia-smi -q -x` says: the line that names it, whether that was a row
    of the table, its second row (temperature, power, memory and load), and the numbers there by their names in
    `_LIKE["reading"]`."""

    gpu: SmiGpu
    first: Line
    in_table: bool = False
    lost: bool = False
    second: Line | None = None
    readings: dict[str, str] = field(default_factory=dict)


class NvidiaSmiTable(OfPage):
    """GPUs with name, bus id, MIG, persistence, load, performance state, uncorrected errors; the driver's versions."""

    def recognises(self, head: str) -> bool:
        if _LIKE["first_row"].search(head) is not None or LOST.search(head) is not None:
            return True
        lines = [line.lstrip(" \t>") for line in head.split("\n")]
        linked = any(line.lstrip("|").lstrip().startswith("Link ") for line in lines)
        listed = not linked and _LIKE["listed"].search(head) is not None
        return listed or any(line.startswith(_TITLE) for line in lines)

    def read_page(self, page: Page) -> None:
        fill_lost(page.blob, page.draft)
        table = _Table()
        for whole in page.cut_lines():
            line = Line(page, whole.number, whole.text.rstrip().lstrip("> \t"))
            if line.text.startswith(_TITLE):
                table.open = None
                for match in _LIKE["version"].finditer(line.text):
                    name = "cuda_version" if match[1] == "CUDA" else "driver_version"
                    table.add(None, line, **{name: match[2]})
                    page.parsed.records.append(line.number)
            elif LOST.search(line.text):
                page.parsed.records.append(line.number)
            elif listed := _LIKE["listed"].match(line.text):
                table.add(table.row(int(listed[1]), line), line, uuid=listed[3], product_name=listed[2])
            else:
                table.read_row(line)
        fill_report(page, table.report, ordered=True)
        cells = []
        for row in table.rows.values():
            page.parsed.records.append(row.first.number)
            if row.second is not None and row.lost:
                why = "GPU is lost (its readings are ERR!)"
                page.draft.gpu(index=row.gpu.order).offer("lost", why, row.second.origin)
            elif row.second is not None:
                cells.append(tables.Row(_cells(row, row.second.text), row.second.origin))
        page.draft.tables.append(tables.Table(tuple(cells)))


def _cells(row: _Row, text: str) -> dict[str, str]:
    """What the second row of a GPU says beside the fields of the model."""
    product = row.gpu.fields.get("product_name")
    cells = {
        tables.GPU: str(row.gpu.order),
        tables.PRODUCT: product.text if product is not None else "",
        tables.FAILED_READING: next((word for word in ("ERR!", "Unknown Error") if word in text), ""),
        tables.COMPUTE_MODE: "Prohibited" if "Prohibited" in text else "",
        tables.CELSIUS: row.readings.get("celsius", ""),
        tables.MEMORY_MIB: row.readings.get("memory", ""),
    }
    return {name: cell for name, cell in cells.items() if cell}


class _Table:
    """The table as far as it is read, by the numbers of its GPUs; `open` is the GPU that the next row may be of."""

    def __init__(self) -> None:
        self.report = SmiReport()
        self.rows: dict[int, _Row] = {}
        self.open: _Row | None = None

    def row(self, index: int, line: Line) -> _Row | None:
        """The rows of a GPU, None for one too many."""
        gpu = self.report.gpu(index)
        return self.rows.setdefault(index, _Row(gpu, line)) if gpu is not None else None

    def add(self, row: _Row | None, line: Line, **texts: str) -> None:
        """What a line says of elements of a GPU, or of the driver; a cell without a reading says nothing."""
        for path, text in texts.items():
            if reading(text) is not None:
                self.report.add(row.gpu if row is not None else None, XmlField(path, text, line.number, line.text))

    def read_row(self, line: Line) -> None:
        """The first row begins a GPU, a rule of dashes ends it."""
        row, self.open = self.open, None
        if (first := _LIKE["first_row"].match(line.text)) is not None:
            index, name, persistence, bus_id, screen, errors = first.groups()
            row = self.row(int(index), line)
            if row is None or row.in_table:
                return  # the same table once more: the first reading stays
            row.in_table, row.gpu.bus_id = True, bus_id
            self.add(row, line, product_name="" if name.endswith("...") else name,
                     persistence_mode=_SWITCHES.get(persistence, ""), display_active=_SWITCHES.get(screen, ""),
                     **{"ecc_errors/volatile/double_bit/total": errors.strip()})  # fmt: skip
        else:
            cells = line.text.split("|")
            if row is None or len(cells) != 5 or cells[0]:
                return
            load, _, mode = cells[3].strip().partition(" ")
            if mode and (load in ("N/A", "ERR!") or load.endswith("%")):
                self._second_row(row, cells, line)
                self.add(row, line, **{"utilization/gpu_util": load}, compute_mode=_COMPUTE_MODES.get(mode.strip(), ""))
            elif not cells[1].strip() and not cells[2].strip():
                self.add(row, line, **{"mig_mode/current_mig": load.rstrip("*")})
        self.open = row

    def _second_row(self, row: _Row, cells: list[str], line: Line) -> None:
        if row.second is None:
            row.second = line
            for match in _LIKE["reading"].finditer(" ".join(cells[1:3])):
                row.readings |= {name: digits for name, digits in match.groupdict().items() if digits}
        self.add(row, line, **{path: row.readings.get(name, "") for name, path in _OF_READING.items()})
        row.lost |= cells[1].count("ERR!") >= LOST_READINGS


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
