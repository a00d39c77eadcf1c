"""`dcgmi dmon -e FIELDS`: the fields of each GPU that somebody chose, a row for each GPU at each sample.

    #Entity   SMCLK        DVCCTR       TMPTR    GPUTL
    ID
    GPU 0     1980         0            58       100
    GPU 2     750          72           91       100

Columns are named by the short names of dcgmlib/src/dcgm_fields.cpp. Of each GPU the sample with the highest load is
taken, whole, as of `nvidia-smi dmon`; clock event reasons and errors of memory count wherever they stand.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.nvidia.nvidia_words import event_reasons
from topodiag.lazy import dataclass, regex
from topodiag.model.system import KernelEvent
from topodiag.model.topics import Topic

MAX_GPUS = 256
MAX_LINE = 1000
MAX_XID = 9999

_HEADER = regex(r"^[ \t>]{0,20}# ?Entity(?:[ \t]{1,40}[A-Z0-9_]{2,12}){1,60}[ \t]*$", re.MULTILINE)
_ROW = regex(r"GPU ([0-9]{1,3})((?:\s{1,40}(?:-?[0-9.]{1,20}|0x[0-9a-fA-F]{1,16}|N/A)){1,60})\s*\Z")
_COLUMNS = {
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
        return "Entity" in head and _HEADER.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[DcgmRow]:
        parsed: Parsed[DcgmRow] = Parsed(partial=True)
        columns: list[str] = []
        best: dict[int, DcgmRow] = {}
        for number, whole in blob.lines():
            parsed.lines = number
            line = whole[:MAX_LINE].strip(" \t>\r")
            if _HEADER.match(line):
                columns = line.lstrip("# ").split()[1:]
                continue
            found = _ROW.match(line) if columns else None
            cells = found[2].split() if found is not None else []
            if found is None or len(cells) != len(columns) or int(found[1]) >= MAX_GPUS:
                continue
            values = {
                name: value for name, cell in zip(columns, cells, strict=True) if (value := _number(cell)) is not None
            }
            row = DcgmRow(int(found[1]), values, number, line)
            best[row.index] = max(best.get(row.index, row), row, key=_weight)
        parsed.records += best.values()
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[DcgmRow], draft: NodeDraft) -> None:
        for row in parsed.records:
            gpu, origin = draft.gpu(index=row.index), blob.origin(row.line, row.text)
            for name, value in row.values.items():
                if name in _COLUMNS and 0 <= value <= 20_000:
                    gpu.offer(_COLUMNS[name], int(value), origin)
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


def _number(cell: str) -> float | None:
    try:
        return float(int(cell, 16)) if cell.startswith("0x") else float(cell)
    except ValueError:
        return None


__all__ = ["DcgmDmon", "DcgmRow"]
