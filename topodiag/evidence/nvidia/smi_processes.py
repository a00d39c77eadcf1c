"""The table of processes below `nvidia-smi`'s own, with it or pasted alone: which program has which GPU open.

    |  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
    |    3   N/A  N/A          990121      C   ./gpu_burn                             9121MiB |
    |    0     31794    C   python                                        5371MiB |

    # gpu         pid   type     sm    mem    enc    dec    command
        5      118330     C     44     19      -      -    blender

The last two lines are of `nvidia-smi pmon`. Programs that only draw (type G) are left out. Long names are cut at their
start by the tool. Format: drivers R384 to R610.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.lazy import dataclass, regex
from topodiag.model.provenance import known
from topodiag.model.system import Process
from topodiag.model.topics import Topic

MAX_LINE = 400
MAX_ROWS = 4096
_TABLE = regex(
    r"^[>\t ]{0,20}\|\s{1,8}GPU\s{1,8}(?:GI\s{1,8}CI\s{1,30})?PID\s{1,12}Type\s{1,8}Process name\b", re.MULTILINE
)
_ROW = regex(
    r"[>\t ]{0,20}\|\s{1,8}(\d{1,3})\s{1,12}(?:(?:N/A|\d{1,3})\s{1,8}(?:N/A|\d{1,3})\s{1,30})?(\d{1,10})\s{1,12}"
    r"(?:M\+)?C(?:\+G)?\s{1,8}(\S[^|]{0,200}?)\s{1,80}(?:(\d{1,9})MiB|N/A)\s{0,4}\|"
)

_PMON = regex(r"^[>\t ]{0,20}#\s{1,4}gpu\s{1,12}pid\s{1,8}type\b", re.MULTILINE)
_SAMPLE = regex(
    r"[>\t ]{0,20}(\d{1,3})\s{1,12}(\d{1,10})\s{1,12}C(?:\+G)?\s{1,12}(?:(?:-|\d{1,9})\s{1,12}){1,8}(\S.{0,80}?)\s*$"
)


@dataclass(frozen=True, slots=True)
class Row:
    """A process on one GPU."""

    gpu: int
    pid: int
    name: str
    mib: int
    """Memory that it holds there; 0 where the tool does not say."""
    line: int
    text: str


class SmiProcesses(Source[Row]):
    """Processes that compute, by GPU."""

    kind = "nvidia-smi-processes"
    speaks_of = frozenset({Topic.PROCESSES})
    trust = 60

    def recognises(self, head: str) -> bool:
        if _TABLE.search(head) is None and _PMON.search(head) is None:
            return False
        return any(_ROW.match(line[:MAX_LINE]) or _SAMPLE.match(line[:MAX_LINE]) for line in head.split("\n"))

    def parse(self, blob: Blob) -> Parsed[Row]:
        parsed: Parsed[Row] = Parsed()
        sampled = _PMON.search(blob.text) is not None
        for number, text in blob.lines():
            parsed.lines = number
            row = _ROW.match(text[:MAX_LINE]) or (_SAMPLE.match(text[:MAX_LINE]) if sampled else None)
            if row is not None and len(parsed.records) < MAX_ROWS:
                mib = int(row[4] or 0) if row.re.pattern == _ROW.pattern else 0
                parsed.records.append(Row(int(row[1]), int(row[2]), row[3].strip(), mib, number, text))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[Row], draft: NodeDraft) -> None:
        rows: dict[int, list[Row]] = {}
        for row in parsed.records:
            rows.setdefault(row.pid, []).append(row)
        there = {process.pid for process in draft.processes}
        for pid, own in rows.items():
            if pid not in there:
                origin = blob.origin(own[0].line, own[0].text)
                gpus = tuple(dict.fromkeys(row.gpu for row in own))
                memory = {row.gpu: row.mib for row in own if row.mib}
                draft.processes.append(Process(pid, gpus, known(own[0].name, origin), memory_mib=memory))
