"""`nvidia-smi dmon`: load and power of each GPU, a row for each GPU at each sample.

    # gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk
    # Idx      W      C      C      %      %      %      %      %      %    MHz    MHz
        0    112     35     40    100      0      0      0      0      0   2619   1980

The columns are those that `-s` asked for, found by the header, with a date and a time in front where `-o DT` did.
Of each GPU the sample with the highest load is taken, whole: a GPU that waits in a kernel shows it in each.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.sentences import report
from topodiag.lazy import dataclass, regex
from topodiag.model.events import Trust
from topodiag.model.topics import Topic

MAX_GPUS = 256
MAX_LINE = 1000
MAX_VALUE = 1_000_000

_HEADER = regex(r"[ \t>]{0,20}# ?(?:Date {1,10})?(?:Time {1,10})?gpu(?: {1,20}[a-z0-9]{2,12}){1,40} *\Z")
_MARK = regex(
    r"^[ \t>]{0,20}# ?(?:Date +)?(?:Time +)?gpu (?=[^\n]{0,300}\b(?:pwr|sm|gtemp|mclk|tviol)\b)", re.MULTILINE
)
HEAT = "tviol"
"""Whether heat holds the clock: 1 where it does."""
_COLUMNS = {"pwr": "power_w", "sm": "utilization", "mem": "memory_utilization", "pclk": "sm_clock_mhz",
            "tviol": HEAT}  # fmt: skip
_TIME = ("Date", "Time")


@dataclass(frozen=True, slots=True)
class DmonRow:
    """One GPU at one moment: facts by name, only those that the tool could read."""

    index: int
    values: dict[str, int]
    line: int
    text: str


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
                if name != HEAT:
                    gpu.offer(name, float(value) if name == "power_w" else value, origin)
                elif value == 1:
                    text = f"GPU {record.index} is held down by heat (tviol): {' '.join(record.text.split())}"
                    draft.reports.append(report("gpu.clocks", text, blob, record.line, record.text, trust=Trust.PERSON))


def _row(columns: list[str], number: int, line: str) -> DmonRow | None:
    cells = line.split()
    index = columns.index("gpu")
    if len(cells) != len(columns) or columns[:index] != [each for each in _TIME if each in columns]:
        return None
    if (gpu := _number(cells[index])) is None or gpu >= MAX_GPUS:
        return None
    read = {_COLUMNS[name]: _number(cell) for name, cell in zip(columns, cells, strict=True) if name in _COLUMNS}
    return DmonRow(gpu, {name: value for name, value in read.items() if value is not None}, number, line)


def _number(cell: str) -> int | None:
    """A whole number; None for `-`, which the tool prints where it has no reading."""
    value = int(cell) if cell.isascii() and cell.isdigit() and len(cell) < 8 else MAX_VALUE
    return value if value < MAX_VALUE else None


def _load(row: DmonRow) -> int:
    return row.values.get("utilization", -1)
