"""What error counters of NICs say that were read once: totals since boot, of one port beside its peers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

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
    """One counter of one NIC that says something."""

    nic: Nic
    counter: Counter
    amount: int
    grown: bool
    severity: Severity
    confidence: Confidence
    meaning: str
    of_fabric: bool = False

    @property
    def kind(self) -> str:
        """Counters of one kind make one finding: what grows, what is much since boot, what counts no more."""
        if self.grown:
            return "grown"
        return "fabric" if self.of_fabric else "stuck" if self.severity is Severity.INFO else "total"

    @property
    def weight(self) -> tuple[int, int, int]:
        """The count that names the finding is the heaviest: an error first, then as the table of limits has them."""
        return self.severity, self.confidence, -list(LIMITS).index(limit_name(self.counter.name))


def flaps_a_day(node: Node, nic: Nic, counter: Counter, total: int, limit: Limit) -> Iterator[Count]:
    """Flaps a day since boot, where the uptime is known."""
    uptime = node.os.uptime_s.value
    if limit.per_flap and uptime is not None and total / limit.per_flap > FLAPS_PER_DAY * max(1.0, uptime / DAY_S):
        yield Count(nic, counter, total, False, Severity.WARNING, Confidence.MEDIUM, limit.meaning)


def odd_ports(node: Node, nic: Nic, judged: Mapping[str, Sequence[Judged]]) -> Iterator[Count]:
    """A single reading that its peers do not share: what all ports went through is not in it."""
    yield from _odd_totals(nic, judged)
    uptime = node.os.uptime_s.value
    if uptime is None and (node.gpus or node.pci):
        return
    for _, counter, limit in judged[nic.name]:
        if not limit.per_flap or counter.later.known or counter.first.value is None:
            continue
        flaps = counter.first.value / limit.per_flap
        others = [
            (other.first.value or 0) / limit.per_flap
            for name, counters in judged.items()
            for _, other, _ in counters
            if name != nic.name and other.name == counter.name and other.first.known
        ]
        quiet = len(others) >= QUIET_SIBLINGS and max(others) <= QUIET_SHARE * flaps
        if quiet and flaps > ODD_FLAPS and flaps >= ODD_PER_DAY * (uptime or 0.0) / DAY_S:
            meaning = f"{limit.meaning}, and on no other port,"
            # Whoever pastes these counters alone asks about them; it may be long ago.
            confidence = Confidence.LOW if uptime is None else Confidence.MEDIUM
            yield Count(nic, counter, counter.first.value, False, Severity.WARNING, confidence, meaning)


def _odd_totals(nic: Nic, judged: Mapping[str, Sequence[Judged]]) -> Iterator[Count]:
    """Errors on one port while its three and more peers had hardly any."""
    for _, counter, limit in judged[nic.name]:
        total = _once(counter)
        if limit.per_flap or counter.name in CORRECTED or total is None or total < ODD_TOTAL:
            continue
        others = {
            name: other
            for name, counters in judged.items()
            for _, one, _ in counters
            if name != nic.name and one.name == counter.name and (other := _once(one)) is not None
        }
        if not others or max(others.values()) > ODD_SHARE * total:
            continue
        if len(others) >= QUIET_SIBLINGS:
            meaning = f"{limit.meaning}, and on no other port,"
            yield Count(nic, counter, total, False, Severity.WARNING, Confidence.MEDIUM, meaning)


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
