"""Several faults of one kind on one node, each told alike: what checks of hosts, GPUs and adapters share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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


@dataclass(frozen=True, slots=True)
class NodeFaults:
    """The faults of one node, and how much of what should be judged was seen."""

    faults: tuple[NodeFault, ...]
    coverage: Coverage | None = None


class FaultCheck(NodeCheck[NodeFaults]):
    """A check that finds any number of such faults on one node."""

    def any_of(
        self, judged: Node, faults: Iterable[NodeFault | None], coverage: Coverage | None = None
    ) -> NodeFaults | Outcome:
        """Those that are there; clean where none is."""
        known = tuple(fault for fault in faults if fault is not None)
        return NodeFaults(known, coverage) if known else self.clean(judged, "", coverage)

    def findings(self, judged: Node, observed: NodeFaults) -> Iterator[Finding]:
        for fault in observed.faults:
            advice = self.advice(fault.advice, **fault.words) if fault.advice else Advice()
            yield self.finding(
                self.where(judged, gpus=fault.gpus, nics=fault.nics, links=fault.links),
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
