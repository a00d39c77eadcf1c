"""Health checks of nodes that failed: LBNL's Node Health Check (NHC), and Azure's checks that run under it.

    ERROR:  nhc:  Health check failed:  check_hw_ib:  No IB port mlx5_4:1 is ACTIVE (LinkUp 400 Gb/sec).
    ERROR:  nhc:  Health check failed:  Check check_nv_gpu_count 8 returned 1
    Node Health Check failed.  Check check_xid_errors returned 1

Format: mej/nhc, nhc (die, nhcmain_finish); FaultCode of azurehpc-health-checks. A check that passes prints nothing.
"""

from __future__ import annotations

import re

from topodiag.evidence.host.reasons import kind_of
from topodiag.evidence.sentences import MAX_LINE, Sentences
from topodiag.model.system import OUT_OF_SERVICE
from topodiag.model.topics import Topic

_FAILED = re.compile(
    r"\b(?:nhc(?:\[\d{1,9}\])?:\s{1,4}|Node )Health check failed[:.]\s{1,4}(\S.{0,400}?)\s*$", re.IGNORECASE
)


_STEPS = re.compile(r"^DEBUG:\s{1,4}(?:Evaluating single check line|Running check): ", re.MULTILINE)
"""What `nhc -d` prints of each check, before it says whether that failed."""


class HealthChecks(Sentences):
    """What Node Health Check found at fault, each sentence once."""

    kind = "health-checks"
    speaks_of = frozenset({Topic.SERVICES})
    trust = 50
    once = True
    quiet_is_news = True
    a_piece = "it says what failed"

    def recognises(self, head: str) -> bool:
        if _STEPS.search(head) is not None:
            return True
        return "ealth" in head and any(_FAILED.search(line[:MAX_LINE]) for line in head.split("\n"))

    def event_of(self, line: str) -> tuple[str, str] | None:
        found = _FAILED.search(line)
        return (kind_of(f"NHC: {found[1]}") or OUT_OF_SERVICE, found[1]) if found is not None else None
