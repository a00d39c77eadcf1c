"""`mlnx_qos -i IF` and `dcb pfc show dev IF`: which priorities have flow control, and which DSCP rides which priority.

    Priority trust state: dscp
    dscp2prio mapping:
            prio:0 dscp:07,06,05,04,03,02,01,00,
    PFC configuration:
            priority    0   1   2   3   4   5   6   7
            enabled     0   0   0   1   0   0   0   0
    pfc-cap 8 macsec-bypass off delay 0
    prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off

Format: mlnx-tools, python/mlnx_qos; iproute2, dcb/dcb_pfc.c.
"""

from __future__ import annotations

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Direct, Parsed
from topodiag.evidence.network import rdma_words as words
from topodiag.evidence.network.ethtool import named_interface
from topodiag.evidence.page import Line, Page
from topodiag.lazy import regex

UNNAMED = "the interface"
"""What an interface is called that the text does not name."""
PRIORITIES = 8
CODE_POINTS = 64
_COMMAND = regex(
    r"(?:\bmlnx_qos\b.{0,80}?\s(?:-i|--interface)[ =]?|\bdcb\s.{0,20}?pfc\s.{0,20}?dev\s{1,4})"
    r"([A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,63})"
)
_MAPPED = regex(r"prio: ?([0-7])\s{1,8}dscp: ?([0-9]{1,2}(?: ?,[0-9]{1,2}){0,63}),?\s*\Z")


class Qos(Direct):
    """Flow control by priority, and what decides the priority, from `mlnx_qos` and `dcb`."""

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        page = Page(blob, draft)
        name = named_interface(blob.item) or UNNAMED
        mapped: dict[str, tuple[Line, dict[int, int]]] = {}
        for line in page.lines():
            if (asked := _COMMAND.search(line.bare)) is not None:
                name = words.device_name(asked[1]) or UNNAMED
                continue
            key, *cells = line.bare.split() or [""]
            if line.bare.startswith("Priority trust state:") and cells[-1].lower() in ("pcp", "dscp", "both"):
                line.offer(draft.netdev(name), "trust", cells[-1].lower())
            elif key == "enabled" and len(cells) == PRIORITIES and set(cells) <= {"0", "1"}:
                line.offer(draft.netdev(name), "lossless", tuple(at for at, cell in enumerate(cells) if cell == "1"))
            elif key == "prio-pfc":
                marks = tuple(int(cell[0]) for cell in cells if cell[:1].isdecimal() and cell[1:] == ":on")
                line.offer(draft.netdev(name), "lossless", marks)
            elif (row := _MAPPED.search(line.bare)) is not None:
                codes = {int(code): int(row[1]) for code in row[2].split(",")}
                mapped.setdefault(name, (line, {}))[1].update(codes)
        for name, (line, priorities) in mapped.items():
            pairs = [f"{code}:{priority}" for code, priority in sorted(priorities.items())]
            line.offer(draft.netdev(name), "priority_of", tuple(pairs[:CODE_POINTS]))
        return page.parsed
