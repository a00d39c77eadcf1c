"""`hca_self_test.ofed`: the state of the ports of each adapter, and the tests that failed.

    Port State of Port #1 on CA #0 (HCA)..... UP 4X HDR (InfiniBand)
    Port State of Port #1 on CA #1 (HCA)..... DOWN (InfiniBand)
    Error Counter Check on CA #0 (HCA)...... FAIL
        REASON: found errors in the following counters

Format: ofed-scripts 4 to 24. It numbers the adapters and names none.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.model.system import REPORTED, TOLD, KernelEvent
from topodiag.model.topics import Topic

MAX_LINE = 400
_MARK = re.compile(
    r"Performing Adapter Device Self Test|^[ \t>"
    r"|]{0,20}Port State of Port #\d{1,3} on CA #\d",
    re.MULTILINE,
)
_PORT = re.compile(
    r"[ \t>|]{0,20}(Port State of Port #\d{1,3} on CA #\d{1,3}[^.]{0,20})\.{2,40}\s{0,4}(DOWN"
    r"|INIT|ARMED|POLLING)\b(.{0,60})"
)
_FAILED = re.compile(r"[ \t>|]{0,20}(\S[^.]{3,80}?)\s{0,3}\.{2,60}\s{0,4}FAIL\b")


class HcaSelfTest(Source[KernelEvent]):
    """What the self test of MLNX_OFED finds at fault."""

    kind = "hca-self-test"
    speaks_of = frozenset({Topic.RDMA_DEVICES})
    quiet_is_news = True
    trust = 55

    def told(self, parsed: Parsed[KernelEvent]) -> frozenset[Topic]:
        """Nothing as a whole: it names no adapter."""
        return frozenset()

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed: Parsed[KernelEvent] = Parsed()
        for number, whole in blob.lines():
            parsed.lines = number
            line = whole[:MAX_LINE]
            if port := _PORT.match(line):
                text = f"{port[1].strip()}: {port[2]}{port[3].rstrip()}"
                parsed.records.append(
                    KernelEvent(f"{REPORTED}port-down", text, blob.origin(number, whole), of_log=False)
                )
            elif failed := _FAILED.match(line):
                errors = "Error Counter" in failed[1]
                kind = f"{REPORTED}link-errors" if errors else TOLD
                parsed.records.append(KernelEvent(kind, f"{failed[1]}: FAIL", blob.origin(number, whole), of_log=False))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[KernelEvent], draft: NodeDraft) -> None:
        draft.events.extend(parsed.records)
