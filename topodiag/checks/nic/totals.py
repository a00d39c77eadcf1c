"""What error counters of NICs say that were read once: totals since boot, of one port beside its peers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from topodiag.checks.nic.state import Port
from topodiag.checks.shared.node.nic_counters import LIMITS, Limit, limit_name
from topodiag.lazy import dataclass
from topodiag.model.devices import Nic
from topodiag.model.finding import Confidence, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Counter

FLAPS_PER_DAY = 5.0
"""Link flaps in 24 hours from which Azure's node health check fails a node (check_ib_link_flapping)."""

ODD_FLAPS = 10
"""Flaps since boot above which one port among quiet peers is bad (error_thresholds of rdma-core: LinkDowned 10)."""
ODD_PER_DAY = 1.0
"""... and at least so many a day: one bad afternoon a year ago is no fault of today."""
QUIET_SIBLINGS = 3
"""Peers that must have been quiet. They saw the same boots and the same work on the switches."""
QUIET_SHARE = 0.1
"""How much of the odd port's flaps a peer may have and still be quiet."""

ODD_TOTAL = 1000
"""Errors since boot from which a total is worth a word: of one port that stands out, or of all as an open question."""
ODD_SHARE = 0.01
"""How much of an odd port's total a peer may have, and still not share what made it."""
CORRECTED = frozenset({"symbol_error"})
"""Counters that alone prove nothing: links from HDR on count what forward error correction mends."""

DAY_S = 86400.0

Judged = tuple[Port | None, Counter, Limit]
"""A counter with its port, where it has one, and what its growth means."""


@dataclass(frozen=True, slots=True)
class Count:
    """One counter of one NIC that says something: what grows, what is much since boot (`total`) or in the fabric's
    report, what counts no more (`stuck`). Counters of one kind make one finding."""

    nic: Nic
    counter: Counter
    amount: int
    severity: Severity
    confidence: Confidence
    meaning: str
    kind: Literal["grown", "total", "fabric", "stuck"] = "grown"
    expected: str = "no growth while the job runs"

    @property
    def weight(self) -> tuple[int, int, int]:
        """The count that names the finding is the heaviest: an error first, then as the table of limits has them."""
        return self.severity, self.confidence, -list(LIMITS).index(limit_name(self.counter.name))


_FEW_FLAPS = f"at most {FLAPS_PER_DAY:g} flaps a day (Azure's node health check), and no port alone above {ODD_FLAPS}"
_FEW_ERRORS = f"fewer than {ODD_TOTAL} on this port, as on the others that carried as much"


def flaps_a_day(node: Node, nic: Nic, counter: Counter, total: int, limit: Limit) -> Iterator[Count]:
    """Flaps a day since boot, where the uptime is known."""
    uptime = node.os.uptime_s.value
    if limit.per_flap and uptime is not None and total / limit.per_flap > FLAPS_PER_DAY * max(1.0, uptime / DAY_S):
        yield Count(nic, counter, total, Severity.WARNING, Confidence.MEDIUM, limit.meaning, "total", _FEW_FLAPS)


def odd_ports(node: Node, nic: Nic, judged: Mapping[str, Sequence[Judged]]) -> Iterator[Count]:
    """Single readings of one port that its peers, three and more, do not share: what all ports went through is not in
    them. Whoever pastes counters of flaps alone asks about them; it may be long ago."""
    uptime = node.os.uptime_s.value
    for _, counter, limit in judged[nic.name]:
        total = _once(counter)
        others = [
            value
            for name, counters in judged.items()
            for _, other, _ in counters
            if name != nic.name and other.name == counter.name and (value := _once(other)) is not None
        ]
        if total is None or counter.name in CORRECTED or len(others) < QUIET_SIBLINGS:
            continue
        confidence, expected = Confidence.MEDIUM, _FEW_ERRORS
        is_odd = total >= ODD_TOTAL and max(others) <= ODD_SHARE * total
        if limit.per_flap:
            confidence, expected = Confidence.MEDIUM if uptime is not None else Confidence.LOW, _FEW_FLAPS
            least = limit.per_flap * ODD_PER_DAY * (uptime or 0.0) / DAY_S
            is_odd = total > limit.per_flap * ODD_FLAPS and total >= least and max(others) <= QUIET_SHARE * total
            is_odd = is_odd and not (uptime is None and (node.gpus or node.pci))
        if is_odd:
            meaning = f"{limit.meaning}, and on no other port,"
            yield Count(nic, counter, total, Severity.WARNING, confidence, meaning, "total", expected)


def _once(counter: Counter) -> int | None:
    """What a counter had where it was read once."""
    return None if counter.later.known else counter.first.value


def high_totals(judged: Mapping[str, Sequence[Judged]]) -> str:
    """Errors since boot that are too many to call a machine well, and that no second reading explains."""
    totals: dict[str, int] = defaultdict(int)
    for counters in judged.values():
        for _, counter, limit in counters:
            total = _once(counter)
            if not limit.per_flap and counter.name not in CORRECTED and total is not None and total >= ODD_TOTAL:
                totals[counter.name] += total
    high = ", ".join(f"{name} {total}" for name, total in list(totals.items())[:4])
    return high and f"{high} since boot: only a second reading shows whether it goes on (`--sample 60s` under load)"
