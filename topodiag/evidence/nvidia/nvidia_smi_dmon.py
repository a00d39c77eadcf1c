"""`nvidia-smi dmon`: load and power of each GPU, a row for each GPU at each sample.

    # gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk
    # Idx      W      C      C      %      %      %      %      %      %    MHz    MHz
        0    112     35     40    100      0      0      0      0      0   2619   1980

The columns are those that `-s` asked for, found by the header, with a date and a time in front where `-o DT` did.
Of each GPU the sample with the highest load is taken, whole: a GPU that waits in a kernel shows it in each.
"""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Direct, Parsed, to_float, to_int
from topodiag.evidence.sentences import report
from topodiag.model.events import Trust

MAX_GPUS = 256
MAX_LINE = 1000
MAX_VALUE = 1_000_000

HEAT = "tviol"
"""Whether heat holds the clock: 1 where it does."""
_COLUMNS = {"sm": "utilization", "mem": "memory_utilization", "pclk": "sm_clock_mhz"}
_Row = tuple[dict[str, str], int, str]
"""Cells by the names of their columns, and the line."""


class NvidiaSmiDmon(Direct):
    """Load of the processors and of memory, power, and clock."""

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        parsed: Parsed[int] = Parsed()
        for index, (cells, number, line) in _busiest(blob).items():
            gpu = draft.gpu(index=index)
            origin = blob.origin(number, line)
            for column, name in _COLUMNS.items():
                gpu.offer(name, to_int(cells.get(column), low=0, high=MAX_VALUE), origin)
            gpu.offer("power_w", to_float(cells.get("pwr"), low=0, high=MAX_VALUE), origin)
            if to_int(cells.get(HEAT)) == 1:
                text = f"GPU {index} is held down by heat (tviol): {' '.join(line.split())}"
                draft.reports.append(report("gpu.clocks", text, blob, number, line, trust=Trust.PERSON))
            parsed.records.append(number)
        return parsed


def _busiest(blob: Blob) -> dict[int, _Row]:
    """Of each GPU the cells of the sample with the highest load."""
    columns: list[str] = []
    busiest: dict[int, _Row] = {}
    for number, whole in blob.lines():
        line = whole[:MAX_LINE].strip(" \t>\r\n")
        names = line.lstrip("# ").split() if line.startswith("#") else []
        if "gpu" in names[:3]:  # behind date and time
            columns = names
        elif columns and line and not line.startswith("#"):
            cells = line.split()
            row = dict(zip(columns, cells, strict=False))
            index = to_int(row.get("gpu"), low=0, high=MAX_GPUS - 1)
            if len(cells) != len(columns) or index is None:
                columns = []  # the table ended, and its header with it
            elif index not in busiest or _load(row) > _load(busiest[index][0]):
                busiest[index] = row, number, line
    return busiest


def _load(row: Mapping[str, str]) -> int:
    load = to_int(row.get("sm"))
    return -1 if load is None else load
