"""`nvidia-smi --query-gpu=... --format=csv`: a table whose columns the user chose.

    index, pci.bus_id, pcie.link.gen.current, pcie.link.width.current, utilization.gpu [%]
    2, 00000000:75:00.0, 3, 8, 100 %

The columns are found by the header, or by the echoed command where `noheader` left the header out. Cells are offered by
the same code as `nvidia-smi -q`. A table that repeats itself (`-l`) tells of each GPU its busiest moment. Field names:
`nvidia-smi --help-query-gpu` and `--help-query-remapped-rows`, drivers R384 to R610.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from topodiag.evidence.interface import MAX_GPUS, MAX_LINE, Blob, to_float, to_int
from topodiag.evidence.nvidia.nvidia_smi_xml import SmiReport, XmlField, fill_report
from topodiag.evidence.nvidia.nvidia_words import EVENT_REASONS, fill_lost
from topodiag.evidence.page import OfPage, Page
from topodiag.lazy import dataclass, regex
from topodiag.words.own_data import own_data, patterns

MAX_COLUMNS = 200
MAX_ROWS = 100_000

_LINK = "pci/pci_gpu_link_info"
_REASONS = "clocks_event_reasons/clocks_event_reason_"
_PATHS: Mapping[str, str] = own_data("evidence/nvidia/names")["query"]
"""Columns by name, as the elements of the full report that hold the same value."""

_ALSO = regex(own_data("evidence/nvidia/names")["other-columns"]["names"])
"""Columns that make a header, and of which nothing is read."""

_MASKS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_LIKE = patterns("evidence/nvidia/lines", "query")
_MIN_KNOWN = 2
"""Columns of these that make a header: one word and a comma is any text."""


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One GPU at one moment: cells by column, with the line they stand on."""

    cells: tuple[tuple[str, str], ...]
    line: int
    text: str
    ordered: bool

    def cell(self, path: str) -> str:
        return next((text for column, text in self.cells if _PATHS.get(column) == path), "")

    @property
    def load(self) -> int:
        return to_int(self.cell("utilization/gpu_util"), low=0, high=100) or 0


class NvidiaSmiQuery(OfPage):
    """GPUs by the columns of a query."""

    def recognises(self, head: str) -> bool:
        asked = any(f"--query-{name}" in head for name in ("gpu", "remapped-rows"))
        if not asked and _LIKE["mark"].search(head) is None:
            return False
        return any(True for _ in _rows(Blob("", head.encode())))

    def read_page(self, page: Page) -> None:
        fill_lost(page.blob, page.draft)
        listed = list(islice(_rows(page.blob), MAX_ROWS))
        rows = _busiest(listed)
        named = all(row.cell("index") for row in rows)
        ordered = named or (len(rows) > 1 and all(row.ordered for row in rows))
        versions = ((row, row.cell("driver_version")) for row in rows)
        driver = [XmlField("driver_version", version, row.line, row.text) for row, version in versions if version]
        report = SmiReport(driver[:1])
        for place, row in enumerate(rows):
            index = to_int(row.cell("index"), low=0, high=MAX_GPUS) if named else place
            gpu = report.gpu(index) if index is not None else None
            if gpu is not None:
                gpu.bus_id = gpu.bus_id or row.cell("bus_id")
                for xml_field in _fields(row):
                    report.add(gpu, xml_field)
        fill_report(page, report, ordered=ordered)
        for row in rows:
            capability = to_float(row.cell("compute_cap"), low=1, high=100)
            index = to_int(row.cell("index"), low=0, high=MAX_GPUS)
            if capability is not None and index is not None:
                origin = page.blob.origin(row.line, row.text)
                page.draft.gpu(index=index).offer("sm", round(capability * 10), origin)
        page.parsed.records = [row.line for row in listed]


def _rows(blob: Blob) -> Iterator[QueryRow]:
    """The rows below headers, and those of commands that print none."""
    columns, picked = _asked_later(blob.text), False
    for number, whole in blob.lines():
        line = whole[:MAX_LINE].strip().lstrip(">| \t")
        asked = _LIKE["command"].search(line)
        if asked is not None:
            columns = _columns(asked[1].split(","))
            picked = not {"-i", "--id"}.isdisjoint(line.replace("=", " ").split())
            continue
        cells = [cell.strip() for cell in line.split(",", MAX_COLUMNS)]
        header = _columns(cells)
        if header:
            columns = header
        elif columns and len(cells) == len(columns) and _is_row(columns, cells):
            yield QueryRow(tuple(zip(columns, cells, strict=True)), number, line, not picked)
        elif line and columns:
            columns = () if line.startswith(("$", "#")) or "$ " in line[:80] else columns


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
        key = (name, tuple(column for column, _ in row.cells))
        if key not in best or row.load > best[key].load:
            best[key] = row
    return list(best.values())[: MAX_GPUS * 4]


def _fields(row: QueryRow) -> list[XmlField]:
    xml_fields: list[XmlField] = []
    for column, text in row.cells:
        path, reason = _PATHS.get(column), _LIKE["reason"].fullmatch(column)
        if column in _MASKS:
            mask = to_int(text, low=0, high=2**63)
            for bit, name in EVENT_REASONS.items() if mask is not None else ():
                word = "Active" if (mask or 0) & bit else "Not Active"
                xml_fields.append(XmlField(_REASONS + name, word, row.line, row.text))
        elif reason is not None:
            xml_fields.append(XmlField(_REASONS + reason[1], text, row.line, row.text))
        elif path is not None:
            xml_fields.append(XmlField(path, text, row.line, row.text))
    top = dict(row.cells).get("pcie.link.gen.max")
    if top is not None and "pcie.link.gen.gpumax" not in dict(row.cells):
        # That of GPU and slot together: without the GPU's own it stands for it.
        xml_fields.append(XmlField(f"{_LINK}/pcie_gen/max_device_link_gen", top, row.line, row.text))
    return xml_fields
