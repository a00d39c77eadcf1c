"""`numactl -H`: the processors, the memory and the distances of NUMA nodes.

    available: 2 nodes (0-1)
    node 0 cpus: 0 1 2 3 4 5 6 7
    node 0 size: 515512 MB
    node distances:
    node   0   1
      0:  10  21
      1:  21  10

Format: numactl 2.0.8 to 2.0.18 (numactl.c, hardware). Memory without processors is usual (CXL, Grace's GPUs);
processors without memory are not.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.sentences import report
from topodiag.lazy import dataclass, regex
from topodiag.model.events import REMARK
from topodiag.model.topics import Topic
from topodiag.words.fold import fold_numbers

MAX_NODES = 1024
MAX_LINE = 16384
_MARK = regex(r"^[ \t>|]{0,20}node \d{1,4} (?:cpus|size):", re.MULTILINE)
_FIELD = regex(r"[ \t>|]{0,20}node (\d{1,4}) (cpus|size|free):\s{0,8}(.{0,16000})")
_ROW = regex(r"[ \t>|]{0,20}(\d{1,4}):((?:\s{1,8}\d{1,4}){1,1024})\s*\Z")


@dataclass(frozen=True, slots=True)
class Told:
    """One line of a NUMA node: `cpus`, `size` or `distances` with its numbers."""

    node: int
    what: str
    numbers: tuple[int, ...]
    line: int
    text: str


class Numactl(Source[Told]):
    """NUMA nodes from `numactl -H`."""

    kind = "numactl"
    speaks_of = frozenset({Topic.CPUS})
    trust = 65
    a_piece = "it names no processor"

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[Told]:
        parsed: Parsed[Told] = Parsed()
        for number, text in blob.lines():
            parsed.lines = number
            field, row = _FIELD.match(text[:MAX_LINE]), _ROW.match(text[:MAX_LINE])
            if field is not None and field[2] != "free":
                numbers = tuple(int(each) for each in re.findall(r"\d{1,12}", field[3]))
                parsed.records.append(Told(int(field[1]), field[2], numbers, number, text))
            elif row is not None and parsed.records:
                numbers = tuple(int(each) for each in row[2].split())
                parsed.records.append(Told(int(row[1]), "distances", numbers, number, text))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[Told], draft: NodeDraft) -> None:
        busy = {each.node for each in parsed.records if each.what == "cpus" and each.numbers}
        for each in parsed.records:
            origin = blob.origin(each.line, each.text)
            if each.node >= MAX_NODES:
                continue
            if each.what == "cpus":
                draft.numa(each.node).offer("cpus", fold_numbers(set(each.numbers)), origin)
            elif each.what == "distances":
                draft.numa(each.node).offer("distances", each.numbers, origin)
            elif each.numbers[:1] == (0,) and each.node in busy:
                text = f"NUMA node {each.node} has processors and no memory"
                draft.reports.append(report(REMARK, text, blob, each.line, each.text))


__all__ = ["Numactl", "Told"]
