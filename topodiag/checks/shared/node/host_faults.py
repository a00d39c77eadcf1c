"""What the checks of a host's limits, devices and settings share: several faults of one kind, each told alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from topodiag.checks.interface import NodeCheck
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Origin


@dataclass(frozen=True, slots=True)
class HostFault:
    """One limit that is too small, one kind of device that is not given, one setting that costs."""

    severity: Severity
    message: str
    observed: str
    advice: str
    """Its name in `checks/advice/`."""
    evidence: tuple[Fact[Any] | Origin | None, ...]
    confidence: Confidence = Confidence.HIGH
    nics: tuple[str, ...] = ()
    words: Mapping[str, object] = field(default_factory=dict)
    """What the advice asks for."""


class HostCheck(NodeCheck[tuple[HostFault, ...]]):
    """A check that finds any number of such faults on one node."""

    def any_of(self, judged: Node, faults: Iterable[HostFault | None]) -> tuple[HostFault, ...] | Outcome:
        """Those that are there; clean where none is."""
        host_faults = tuple(fault for fault in faults if fault is not None)
        return host_faults or self.clean(judged)

    def tell(self, judged: Node, observed: tuple[HostFault, ...]) -> Iterator[Finding]:
        for host_fault in observed:
            yield self.finding(
                self.where(judged, nics=host_fault.nics),
                self.advice(host_fault.advice, **host_fault.words),
                host_fault.message,
                severity=host_fault.severity,
                observed=host_fault.observed,
                evidence=host_fault.evidence,
                confidence=host_fault.confidence,
            )
