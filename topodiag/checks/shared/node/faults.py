"""Several faults of one kind on one node, each told alike: what checks of hosts, GPUs and adapters share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from topodiag.checks.interface import Advice, NodeCheck
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Origin


@dataclass(frozen=True, slots=True)
class NodeFault:
    """One limit that is too small, one kind of device that is not given, one setting that costs, one part at fault."""

    severity: Severity
    message: str
    observed: str
    advice: str
    """Its name in `checks/advice/`; "" where `expected`, `fix` and `cost` say all."""
    evidence: tuple[Fact[Any] | Origin | None, ...]
    confidence: Confidence = Confidence.HIGH
    nics: tuple[str, ...] = ()
    words: Mapping[str, object] = field(default_factory=dict)
    """What the advice asks for."""
    gpus: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    expected: str = ""
    fix: tuple[str, ...] = ()
    cost: str = ""


class FaultCheck(NodeCheck):
    """A check that finds any number of such faults on one node."""

    def any_fault(self, judged: Node, faults: Iterable[NodeFault | None], coverage: Coverage | None = None) -> Outcome:
        """The findings of those that are there; clean where none is."""
        return self.any_of(judged, [self._finding(judged, fault) for fault in faults if fault is not None], coverage)

    def _finding(self, node: Node, fault: NodeFault) -> Finding:
        advice = self.advice(fault.advice, **fault.words) if fault.advice else Advice()
        return self.finding(
            self.where(node, gpus=fault.gpus, nics=fault.nics, links=fault.links),
            advice,
            fault.message,
            severity=fault.severity,
            observed=fault.observed,
            expected=fault.expected or advice.expected,
            fix=fault.fix or advice.fix,
            cost=Cost(text=fault.cost) if fault.cost else None,
            evidence=fault.evidence,
            confidence=fault.confidence,
        )
