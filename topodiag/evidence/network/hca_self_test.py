"""`hca_self_test.ofed`: the state of the ports of each adapter, and the tests that failed.

    Port State of Port #1 on CA #0 (HCA)..... UP 4X HDR (InfiniBand)
    Port State of Port #1 on CA #1 (HCA)..... DOWN (InfiniBand)
    Error Counter Check on CA #0 (HCA)...... FAIL
        REASON: found errors in the following counters

Format: ofed-scripts 4 to 24. It numbers the adapters and names none.
"""

from __future__ import annotations

import re

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import MAX_LINE, Reporting, report
from topodiag.lazy import regex
from topodiag.model.events import REMARK, Event
from topodiag.model.topics import Topic

_MARK = regex(
    r"Performing Adapter Device Self Test|^[ \t>"
    r"|]{0,20}Port State of Port #\d{1,3} on CA #\d",
    re.MULTILINE,
)
_PORT = regex(
    r"[ \t>|]{0,20}(Port State of Port #\d{1,3} on CA #\d{1,3}[^.]{0,20})\.{2,40}\s{0,4}(DOWN"
    r"|INIT|ARMED|POLLING)\b(.{0,60})"
)
_FAILED = regex(r"[ \t>|]{0,20}(\S[^.]{3,80}?)\s{0,3}\.{2,60}\s{0,4}FAIL\b")


class HcaSelfTest(Reporting):
    """What the self test of MLNX_OFED finds at fault."""

    kind = "hca-self-test"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    quiet_is_news = True
    trust = 55
    a_piece = "it names no adapter"

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        for number, line in blob.lines():
            parsed.lines = number
            found = _said(line[:MAX_LINE])
            if found is not None:
                parsed.records.append(report(*found, blob, number, line))
        return parsed


def _said(line: str) -> tuple[str, str] | None:
    if port := _PORT.match(line):
        return "nic.port_down", f"{port[1].strip()}: {port[2]}{port[3].rstrip()}"
    failed = _FAILED.match(line)
    if failed is None:
        return None
    return "fabric.link_errors" if "Error Counter" in failed[1] else REMARK, f"{failed[1]}: FAIL"
