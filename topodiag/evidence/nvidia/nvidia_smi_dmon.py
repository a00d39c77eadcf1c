"""`nvidia-smi dmon`: load and power of each GPU, a row for each GPU at each sample.

    # gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk
    # Idx      W      C      C      %      %      %      %      %      %    MHz    MHz
        0    112     35     40    100      0      0      0      0      0   2619   1980

The columns are those that `-s` asked for, found by the header, with a date and a time in front where `-o DT` did.
Of each GPU the sample with the highest load is taken, whole: a GPU that waits in a kernel shows it in each.

`dcgmi dmon -e FIELDS`: the fields of each GPU that somebody chose, a row for each GPU at each sample.

    #Entity   SMCLK        DVCCTR       TMPTR    GPUTL
    ID
    GPU 0     1980         0            58       100
    GPU 2     750          72           91       100

Columns are named by the short names of dcgmlib/src/dcgm_fields.cpp. Of each GPU the sample with the highest load is
taken, whole, as of `nvidia-smi dmon`; clock event reasons and errors of memory count wherever they stand.

`nvtop` as people paste it: the line of each GPU, with the PCIe link as it is at that moment.

    Device 0 [NVIDIA A100-SXM4-80GB] PCIe GEN 4@16x RX: 1.953 MiB/s TX: 976.6 KiB/s

A GPU without work rests its link at a lower generation. Format: nvtop 1.0 to 3.1 (src/interface.c, draw_devices).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.nvidia.nvidia_words import event_reasons
from topodiag.evidence.sentences import report
from topodiag.lazy import dataclass, regex
from topodiag.model.busid import unplaced
from topodiag.model.events import Trust
from topodiag.model.system import KernelEvent
from topodiag.model.topics import Topic
from topodiag.words.units import in_mhz

MAX_GPUS = 256
MAX_LINE = 1000
MAX_VALUE = 1_000_000

_HEADER = regex(r"[ \t>]{0,20}# ?(?:Date {1,10})?(?:Time {1,10})?gpu(?: {1,20}[a-z0-9]{2,12}){1,40} *\Z")
_MARK = regex(
    r"^[ \t>]{0,20}# ?(?:Date +)?(?:Time +)?gpu (?=[^\n]{0,300}\b(?:pwr|sm|gtemp|mclk|tviol)\b)", re.MULTILINE
)
_SIGNS = ("gtemp", "tviol")
"""Columns that are kept beside those that the model has: heat, and whether it holds the clock."""
HOT_C = 80
"""From here on, a GPU whose clock is half of its siblings' is held down by heat: a GPU at rest is cool."""
_COLUMNS = {"pwr": "power_w", "sm": "utilization", "mem": "memory_utilization", "pclk": "sm_clock_mhz"}
_TIME = ("Date", "Time")


@dataclass(frozen=True, slots=True)
class DmonRow:
    """One GPU at one moment: facts by name, only those that the tool could read."""

    index: int
    values: dict[str, int]
    line: int
    text: str
    signs: dict[str, int]


class NvidiaSmiDmon(Source[DmonRow]):
    """Load of the processors and of memory, power, and clock."""

    kind = "nvidia-smi-dmon"
    speaks_of = frozenset({Topic.GPUS})
    trust = 60
    """Below a report of one moment, whose values belong together."""

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[DmonRow]:
        parsed: Parsed[DmonRow] = Parsed()
        columns: list[str] = []
        busiest: dict[int, DmonRow] = {}
        for number, whole in blob.lines():
            parsed.lines = number
            line = whole[:MAX_LINE].strip(" \t>\r\n")
            if _HEADER.match(line):
                columns = line.lstrip("# ").split()
            elif columns and line and not line.startswith("#"):
                row = _row(columns, number, line)
                if row is None:
                    columns = []  # the table ended, and its header with it
                elif row.index in busiest or len(busiest) < MAX_GPUS:
                    busiest[row.index] = max(busiest.get(row.index, row), row, key=_load)
        parsed.records += busiest.values()
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[DmonRow], draft: NodeDraft) -> None:
        for record in parsed.records:
            gpu = draft.gpu(index=record.index)
            origin = blob.origin(record.line, record.text)
            for name, value in record.values.items():
                gpu.offer(name, float(value) if name == "power_w" else value, origin)
        for record, words in _held_by_heat(parsed.records):
            text = f"GPU {record.index} {words}: {' '.join(record.text.split())}"
            draft.reports.append(report("gpu.clocks", text, blob, record.line, record.text, trust=Trust.PERSON))


def _row(columns: list[str], number: int, line: str) -> DmonRow | None:
    cells = line.split()
    index = columns.index("gpu")
    if len(cells) != len(columns) or columns[:index] != [each for each in _TIME if each in columns]:
        return None
    if (gpu := _number(cells[index])) is None or gpu >= MAX_GPUS:
        return None
    read = {_COLUMNS[name]: _number(cell) for name, cell in zip(columns, cells, strict=True) if name in _COLUMNS}
    signs = {name: _number(cell) for name, cell in zip(columns, cells, strict=True) if name in _SIGNS}
    return DmonRow(gpu, _known(read), number, line, _known(signs))


def _known(read: Mapping[str, int | None]) -> dict[str, int]:
    return {name: value for name, value in read.items() if value is not None}


def _held_by_heat(rows: Sequence[DmonRow]) -> Iterator[tuple[DmonRow, str]]:
    """GPUs that the tool says heat holds down, and hot ones far slower than the others, where no load is shown."""
    clocks = [row.values["sm_clock_mhz"] for row in rows if "sm_clock_mhz" in row.values]
    for row in rows:
        clock = row.values.get("sm_clock_mhz")
        if row.signs.get("tviol") == 1:
            yield row, "is held down by heat (tviol)"
        elif (
            clock and "utilization" not in row.values and row.signs.get("gtemp", 0) >= HOT_C and _is_slow(clock, clocks)
        ):
            yield row, f"is hot and at {in_mhz(clock)}, the others at {in_mhz(median(clocks))}"


def _is_slow(clock: int, clocks: Sequence[int]) -> bool:
    return len(clocks) > 2 and 2 * clock < median(clocks)


def _number(cell: str) -> int | None:
    """A whole number; None for `-`, which the tool prints where it has no reading."""
    value = int(cell) if cell.isascii() and cell.isdigit() and len(cell) < 8 else MAX_VALUE
    return value if value < MAX_VALUE else None


def _load(row: DmonRow) -> int:
    return row.values.get("utilization", -1)


MAX_XID = 9999

_DCGM_HEADER = regex(r"^[ \t>]{0,20}# ?Entity(?:[ \t]{1,40}[A-Z0-9_]{2,12}){1,60}[ \t]*$", re.MULTILINE)
_ROW = regex(r"GPU ([0-9]{1,3})((?:\s{1,40}(?:-?[0-9.]{1,20}|0x[0-9a-fA-F]{1,16}|N/A)){1,60})\s*\Z")
_DCGM_COLUMNS = {
    "SMCLK": "sm_clock_mhz",
    "SMMAX": "max_sm_clock_mhz",
    "GPUTL": "utilization",
    "MCUTL": "memory_utilization",
}
_WATTS = {"POWER": "power_w", "PMLMT": "power_limit_w"}
_MASK, _DOUBLE_BIT, _XID, _LOAD = "DVCCTR", "EDVTL", "XIDER", "GPUTL"


@dataclass(frozen=True, slots=True)
class DcgmRow:
    """One GPU at one moment: numbers by column, only those that the tool could read."""

    index: int
    values: dict[str, float]
    line: int
    text: str


class DcgmDmon(Source[DcgmRow]):
    """Clocks, their reasons, load, power and errors by DCGM's monitor."""

    kind = "dcgm-dmon"
    speaks_of = frozenset({Topic.GPUS})
    trust = 60

    def recognises(self, head: str) -> bool:
        return "Entity" in head and _DCGM_HEADER.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[DcgmRow]:
        parsed: Parsed[DcgmRow] = Parsed(partial=True)
        columns: list[str] = []
        best: dict[int, DcgmRow] = {}
        for number, whole in blob.lines():
            parsed.lines = number
            line = whole[:MAX_LINE].strip(" \t>\r")
            if _DCGM_HEADER.match(line):
                columns = line.lstrip("# ").split()[1:]
                continue
            found = _ROW.match(line) if columns else None
            cells = found[2].split() if found is not None else []
            if found is None or len(cells) != len(columns) or int(found[1]) >= MAX_GPUS:
                continue
            values = {
                name: value
                for name, cell in zip(columns, cells, strict=True)
                if (value := _dcgm_number(cell)) is not None
            }
            row = DcgmRow(int(found[1]), values, number, line)
            best[row.index] = max(best.get(row.index, row), row, key=_weight)
        parsed.records += best.values()
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[DcgmRow], draft: NodeDraft) -> None:
        for row in parsed.records:
            gpu, origin = draft.gpu(index=row.index), blob.origin(row.line, row.text)
            for name, value in row.values.items():
                if name in _DCGM_COLUMNS and 0 <= value <= 20_000:
                    gpu.offer(_DCGM_COLUMNS[name], int(value), origin)
                elif name in _WATTS and 0 < value <= 20_000:
                    gpu.offer(_WATTS[name], value, origin)
                elif name == _MASK and 0 <= value < 1 << 32:
                    gpu.offer("throttle", event_reasons(int(value)), origin)
                elif name == _DOUBLE_BIT and value >= 0:
                    gpu.count("ecc_volatile_uncorrected", int(value), origin)
                elif name == _XID and 0 < value <= MAX_XID:
                    text = f"Xid {int(value)} by dcgmi dmon"
                    draft.events.append(
                        KernelEvent("xid", text, origin, None, None, int(value), row.index, of_log=False)
                    )


def _weight(row: DcgmRow) -> tuple[float, float, float]:
    """Errors first, then the load, then how many reasons hold the clock: the moment that says most."""
    return row.values.get(_DOUBLE_BIT, 0), row.values.get(_LOAD, -1), row.values.get(_MASK, 0)


def _dcgm_number(cell: str) -> float | None:
    try:
        return float(int(cell, 16)) if cell.startswith("0x") else float(cell)
    except ValueError:
        return None


NVTOP_MAX_LINE = 400
MAX_INDEX = 255
_DEVICE = regex(r"\s{0,20}Device ([0-9]{1,3}) {1,4}\[([^\]\n]{2,80})\] {1,8}PCIe GEN ?([1-7])@ ?([0-9]{1,2})x(?=\s|$)")


@dataclass(frozen=True, slots=True)
class ShownGpu:
    """A GPU by nvtop's number, and its link."""

    index: int
    name: str
    gen: int
    width: int
    line: int
    text: str


class Nvtop(Source[ShownGpu]):
    """GPUs and their PCIe links by `nvtop`."""

    kind = "nvtop"
    speaks_of = frozenset({Topic.GPUS})
    trust = 40

    def recognises(self, head: str) -> bool:
        return "PCIe GEN" in head and any(_DEVICE.match(line[:NVTOP_MAX_LINE]) for line in head.split("\n"))

    def parse(self, blob: Blob) -> Parsed[ShownGpu]:
        parsed: Parsed[ShownGpu] = Parsed()
        for number, text in blob.lines():
            parsed.lines = number
            found = _DEVICE.match(text[:NVTOP_MAX_LINE])
            if found is not None and int(found[1]) <= MAX_INDEX and 1 <= int(found[4]) <= 32:
                shown = ShownGpu(int(found[1]), found[2].strip(), int(found[3]), int(found[4]), number, text.strip())
                parsed.records.append(shown)
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[ShownGpu], draft: NodeDraft) -> None:
        for shown in parsed.records:
            origin = blob.origin(shown.line, shown.text)
            draft.gpu(index=shown.index).offer("name", shown.name, origin)
            link = draft.pci(unplaced(shown.index))
            link.offer("gen", shown.gen, origin)
            link.offer("width", shown.width, origin)
