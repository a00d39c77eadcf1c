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

`nvidia-smi --query-gpu=... --format=csv`: a table whose columns the user chose.

    index, pci.bus_id, pcie.link.gen.current, pcie.link.width.current, utilization.gpu [%]
    2, 00000000:75:00.0, 3, 8, 100 %

The columns are found by the header, or by the echoed command where `noheader` left the header out. Cells are offered by
the same code as `nvidia-smi -q`. A table that repeats itself (`-l`) tells of each GPU its busiest moment. Field names:
`nvidia-smi --help-query-gpu` and `--help-query-remapped-rows`, drivers R384 to R610.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import MAX_GPUS, MAX_LINE, Blob, behind, reading, to_float, to_int
from topodiag.evidence.nvidia.nvidia_smi_xml import SmiGpu, SmiReport, XmlField, fill_report
from topodiag.evidence.nvidia.nvidia_words import EVENT_REASONS, LOST, fill_lost
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.lazy import dataclass, regex
from topodiag.model import tables
from topodiag.model.node import Process
from topodiag.model.provenance import Fact, known
from topodiag.words.own_data import own_data, patterns

LOST_READINGS = 2
"""Readings of temperature, performance and power that are ERR! when the GPU does not answer; one is a dead sensor."""

_LIKE = patterns("evidence/nvidia/lines", "table")
_TITLE = "| NVIDIA-SMI "

_NAMES = own_data("evidence/nvidia/names")
_COMPUTE_MODES: Mapping[str, str] = _NAMES["table-compute-modes"]
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
                    table.add(None, line, **{"cuda_version" if match[1] == "CUDA" else "driver_version": match[2]})
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


MAX_PROCESSES = 4096


class SmiProcesses(OfPage):
    """Processes that compute, by GPU."""

    def read_page(self, page: Page) -> None:
        rows: dict[int, list[tuple[int, Fact[str]]]] = {}
        sampled = False
        for line in page.lines():
            sampled = sampled or line.bare.split()[:3] == ["#", "gpu", "pid"]
            row = _LIKE["row"].match(line.text) or (_LIKE["sample"].match(line.text) if sampled else None)
            if row is not None and len(page.parsed.records) < MAX_PROCESSES:
                rows.setdefault(int(row[2]), []).append((int(row[1]), known(row[3].strip(), line.origin)))
                page.mark(line.number)
        for pid in rows.keys() - {process.pid for process in page.draft.processes}:
            gpus = tuple(dict.fromkeys(gpu for gpu, _ in rows[pid]))
            page.draft.processes.append(Process(pid, gpus, rows[pid][0][1]))


MAX_COLUMNS = 200
MAX_ROWS = 100_000

_LINK = "pci/pci_gpu_link_info"
_REASONS = "clocks_event_reasons/clocks_event_reason_"
_PATHS: Mapping[str, str] = _NAMES["query"]
"""Columns by name, as the elements of the full report that hold the same value."""

_ALSO = regex(_NAMES["other-columns"]["names"])
"""Columns that make a header, and of which nothing is read."""

_MASKS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_MIN_KNOWN = 2
"""Columns of these that make a header: one word and a comma is any text."""


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One GPU at one moment: cells by column, with the line they stand on. `ordered` is False where the command picked
    some of the GPUs."""

    cells: Mapping[str, str]
    line: Line
    ordered: bool

    def cell(self, path: str) -> str:
        return next((text for column, text in self.cells.items() if _PATHS.get(column) == path), "")

    def field(self, path: str, text: str) -> XmlField:
        return XmlField(path, text, self.line.number, self.line.text)

    @property
    def load(self) -> int:
        return to_int(self.cell("utilization/gpu_util"), low=0, high=100) or 0

    @property
    def index(self) -> int | None:
        return to_int(self.cell("index"), low=0, high=MAX_GPUS)


class NvidiaSmiQuery(OfPage):
    """GPUs by the columns of a query."""

    def recognises(self, head: str) -> bool:
        asked = any(f"--query-{name}" in head for name in ("gpu", "remapped-rows"))
        if not asked and _LIKE["mark"].search(head) is None:
            return False
        return any(True for _ in _rows(Page(Blob("", head.encode()), NodeDraft())))

    def read_page(self, page: Page) -> None:
        fill_lost(page.blob, page.draft)
        listed = list(islice(_rows(page), MAX_ROWS))
        rows = _busiest(listed)
        named = all(row.cell("index") for row in rows)
        ordered = named or (len(rows) > 1 and all(row.ordered for row in rows))
        driver = [row.field("driver_version", version) for row in rows if (version := row.cell("driver_version"))]
        report = SmiReport(driver[:1])
        for place, row in enumerate(rows):
            index = row.index if named else place
            gpu = report.gpu(index) if index is not None else None
            if gpu is not None:
                gpu.bus_id = gpu.bus_id or row.cell("bus_id")
                for xml_field in _fields(row):
                    report.add(gpu, xml_field)
        fill_report(page, report, ordered=ordered)
        for row in rows:
            capability = to_float(row.cell("compute_cap"), low=1, high=100)
            if capability is not None and row.index is not None:
                page.draft.gpu(index=row.index).offer("sm", round(capability * 10), row.line.origin)
        page.parsed.records = [row.line.number for row in listed]


def _rows(page: Page) -> Iterator[QueryRow]:
    """The rows below headers, and those of commands that print none."""
    columns, picked = _asked_later(page.blob.text), False
    for whole in page.cut_lines():
        line = Line(page, whole.number, whole.text.strip().lstrip(">| \t"))
        asked = _LIKE["command"].search(line.text)
        if asked is not None:
            columns = _columns(asked[1].split(","))
            picked = bool(behind(line.text, "-i", "--id"))
            continue
        cells = [cell.strip() for cell in line.text.split(",", MAX_COLUMNS)]
        header = _columns(cells)
        if header:
            columns = header
        elif columns and len(cells) == len(columns) and _is_row(columns, cells):
            yield QueryRow(dict(zip(columns, cells, strict=True)), line, not picked)
        elif line.text.startswith(("$", "#")) or "$ " in line.text[:80]:
            columns = ()


def _asked_later(text: str) -> tuple[str, ...]:
    """The columns of the only command of a text whose rows stand above it, without a header."""
    commands = _LIKE["command"].findall(text[: MAX_LINE * 50])
    return _columns(commands[0].split(",")) if len(commands) == 1 and "noheader" in text else ()


def _columns(cells: Sequence[str]) -> tuple[str, ...]:
    """The column names of a header, in lower case and without units; none where the cells are no header."""
    names = tuple(cell.partition(" [")[0].strip().lower() for cell in cells)
    known = sum(name in _PATHS or _LIKE["reason"].fullmatch(name) is not None for name in names)
    if known == 0 or len(names) < _MIN_KNOWN or "pid" in names:
        return ()
    return names if all(name in _PATHS or _ALSO.fullmatch(name) for name in names) else ()


def _is_row(columns: Sequence[str], cells: Sequence[str]) -> bool:
    """Whether cells can stand under the columns: an index is a number, a bus id has colons."""
    for column, cell in zip(columns, cells, strict=True):
        if column == "index" and not (cell.isascii() and cell.isdigit() and len(cell) < 4):
            return False
        if _PATHS.get(column) == "bus_id" and ":" not in cell and not cell.startswith("["):
            return False
    return True


def _busiest(rows: Sequence[QueryRow]) -> list[QueryRow]:
    """One row for each GPU and set of columns: the busiest, since clocks and links at rest are low by design."""
    best: dict[object, QueryRow] = {}
    for number, row in enumerate(rows):
        name = row.cell("index") or row.cell("bus_id") or row.cell("uuid") or number
        key = (name, *row.cells)
        if key not in best or row.load > best[key].load:
            best[key] = row
    return list(best.values())[: MAX_GPUS * 4]


def _fields(row: QueryRow) -> Iterator[XmlField]:
    for column, text in row.cells.items():
        reason = _LIKE["reason"].fullmatch(column)
        if column in _MASKS:
            mask = to_int(text, low=0, high=2**63)
            for bit, name in EVENT_REASONS.items() if mask is not None else ():
                yield row.field(_REASONS + name, "Active" if (mask or 0) & bit else "Not Active")
        elif reason is not None:
            yield row.field(_REASONS + reason[1], text)
        elif column in _PATHS:
            yield row.field(_PATHS[column], text)
    if "pcie.link.gen.max" in row.cells and "pcie.link.gen.gpumax" not in row.cells:
        # That of GPU and slot together: without the GPU's own it stands for it.
        yield row.field(f"{_LINK}/pcie_gen/max_device_link_gen", row.cells["pcie.link.gen.max"])
