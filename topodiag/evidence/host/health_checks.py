"""Health checks of nodes that failed: LBNL's Node Health Check (NHC), and Azure's checks that run under it.

    ERROR:  nhc:  Health check failed:  check_hw_ib:  No IB port mlx5_4:1 is ACTIVE (LinkUp 400 Gb/sec).
    ERROR:  nhc:  Health check failed:  Check check_nv_gpu_count 8 returned 1
    Node Health Check failed.  Check check_xid_errors returned 1

Format: mej/nhc, nhc (die, nhcmain_finish); FaultCode of azurehpc-health-checks. A check that passes prints nothing.
"""

from __future__ import annotations

import re

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.host.reasons import kind_of
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.model.system import OUT_OF_SERVICE, KernelEvent
from topodiag.model.topics import Topic

MAX_LINE = 4096
MAX_FAILED = 200
_FAILED = re.compile(
    r"\b(?:nhc(?:\[\d{1,9}\])?:\s{1,4}|Node )Health check failed[:.]\s{1,4}(\S.{0,400}?)\s*$", re.IGNORECASE
)


class HealthChecks(Source[KernelEvent]):
    """What Node Health Check found at fault, each sentence once."""

    kind = "health-checks"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 50

    def told(self, parsed: Parsed[KernelEvent]) -> frozenset[Topic]:
        """Nothing as a whole: it says what failed."""
        return frozenset()

    def recognises(self, head: str) -> bool:
        return "ealth" in head and any(_FAILED.search(line[:MAX_LINE]) for line in head.split("\n"))

    def parse(self, blob: Blob) -> Parsed[KernelEvent]:
        parsed: Parsed[KernelEvent] = Parsed()
        seen: set[str] = set()
        for number, line in blob.lines():
            parsed.lines = number
            found = _FAILED.search(line[:MAX_LINE])
            if found is None or found[1] in seen or len(seen) >= MAX_FAILED:
                continue
            seen.add(found[1])
            kind = kind_of(f"NHC: {found[1]}") or OUT_OF_SERVICE
            parsed.records.append(KernelEvent(kind, found[1], blob.origin(number, line), of_log=False))
        return parsed

    def fill(self, blob: Blob, parsed: Parsed[KernelEvent], draft: NodeDraft) -> None:
        draft.events.extend(parsed.records)
