"""`amd-smi xgmi`: whether the xGMI link of every pair of GPUs is up.

    XGMI LINK STATUS:
           bdf           GPU0          GPU1
    GPU0   0000:05:00.0   SELF          U
    GPU1   0000:26:00.0   D             SELF

U is up, D down, X disabled; N/A in a virtual function, which says nothing. Rates are those of `LINK METRIC TABLE`:
`32 Gb/s` a lane, `512 Gb/s` a link. Bytes read and written say how busy a pair was, and are left out.
Format: ROCm 6.2 to 7, amdsmi_commands.py (xgmi).
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.lazy import dataclass, regex
from topodiag.model.maker import XGMI
from topodiag.model.topics import Topic
from topodiag.words.dialect import Maker

MAX_LINE = 4000
MAX_GPUS = 256
_TITLE = regex(r"^[ \t>|]{0,20}XGMI LINK STATUS:\s*$", re.MULTILINE)
_HEAD = regex(r"bdf\s{1,40}(GPU\d{1,3}(?:\s{1,40}GPU\d{1,3}){0,255})\s*\Z")
_ROW = regex(r"GPU(\d{1,3})\s{1,20}([0-9a-fA-F]{4}:[0-9a-fA-F:.]{7})\s{1,20}(\S{1,8}(?:\s{1,40}\S{1,8}){0,255})\s*\Z")
_WORDS = {"U": XGMI, "D": f"{XGMI} down", "X": f"{XGMI} disabled"}


@dataclass(frozen=True, slots=True)
class StatusRecord:
    """One row of the table of links: what stands between a GPU and each other."""

    gpu: int
    bus_id: str
    words: tuple[tuple[int, str], ...]
    line: int
    text: str


class XgmiStatus(Source[StatusRecord]):
    """The state of the link of every pair."""

    kind = "amd-smi-xgmi"
    maker = Maker.AMD
    speaks_of = frozenset({Topic.GPUS})
    trust = 72

    def recognises(self, head: str) -> bool:
        return _TITLE.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[StatusRecord]:
        parsed: Parsed[StatusRecord] = Parsed()
        within, columns = False, list[int]()
        for number, whole in blob.lines():
            parsed.lines = number
            line = whole[:MAX_LINE].strip(" \t>|")
            if line.endswith(":"):
                within, columns = _TITLE.match(line) is not None, []
            elif within and (head := _HEAD.match(line)):
                columns = [int(word[3:]) for word in head[1].split()]
            elif within and (row := _ROW.match(line)) and int(row[1]) < MAX_GPUS:
                cells = zip(columns, row[3].split(), strict=False)
                words = tuple((peer, _WORDS[cell]) for peer, cell in cells if cell in _WORDS and peer != int(row[1]))
                parsed.records.append(StatusRecord(int(row[1]), row[2], words, number, line))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[StatusRecord], draft: NodeDraft) -> None:
        for record in parsed.records:
            gpu, origin = draft.gpu(index=record.gpu, bus_id=record.bus_id), blob.origin(record.line, record.text)
            gpu.offer("nvlink_note", None if record.words else "not supported", origin)
            for peer, word in record.words:
                draft.pair("smi", gpu, draft.gpu(index=peer), word, origin)


__all__ = ["StatusRecord", "XgmiStatus"]
