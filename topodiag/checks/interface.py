"""What a check is. Its docstring is the page that `topodiag explain ID` prints.

Adding one is a class and a line in `registry.py`. The sections of the docstring, in this order: What it finds, Why it
matters, Evidence it reads, When it stays silent, How to confirm, How to fix, References.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity, Status, Where
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Origin

MAX_EVIDENCE = 8
"""Evidence lines kept per finding: enough to convince, few enough to read."""


class Check(ABC):
    """One kind of fault. `id` is never reused; `title` is one line in the present tense."""

    id: ClassVar[str]
    title: ClassVar[str]


class NodeCheck(Check):
    """A check that judges one node; `peers` are the other nodes in evidence, for comparisons between siblings."""

    @abstractmethod
    def judge(self, node: Node, peers: Sequence[Node]) -> Outcome:
        """Findings, clean, not applicable, or unknown with why. Never raises on any model."""

    def found(self, node: Node, findings: Iterable[Finding], coverage: Coverage | None = None) -> Outcome:
        return Outcome(self.id, Status.FINDING, node.host, tuple(findings), coverage=coverage)

    def clean(self, node: Node, why: str = "", coverage: Coverage | None = None) -> Outcome:
        return Outcome(self.id, Status.CLEAN, node.host, why=why, coverage=coverage)

    def not_applicable(self, node: Node, why: str) -> Outcome:
        return Outcome(self.id, Status.NOT_APPLICABLE, node.host, why=why)

    def unknown(self, node: Node, why: str) -> Outcome:
        return Outcome(self.id, Status.UNKNOWN, node.host, why=why)

    def finding(
        self,
        node: Node,
        severity: Severity,
        message: str,
        *,
        observed: str,
        expected: str,
        fix: Sequence[str],
        gpus: Sequence[str] = (),
        nics: Sequence[str] = (),
        links: Sequence[str] = (),
        cost: Cost | None = None,
        evidence: Iterable[Origin | Fact[Any] | None] = (),
        coverage: Coverage | None = None,
        confidence: Confidence = Confidence.HIGH,
    ) -> Finding:
        """A finding on this node. `evidence` takes origins or the facts themselves; empty ones are dropped."""
        origins = [item.origin if isinstance(item, Fact) else item for item in evidence]
        distinct = dict.fromkeys(origin for origin in origins if origin is not None)
        return Finding(
            id=self.id,
            severity=severity,
            message=message,
            observed=observed,
            expected=expected,
            fix=tuple(fix),
            where=Where(nodes=(node.host,), gpus=tuple(gpus), nics=tuple(nics), links=tuple(links)),
            cost=cost or Cost(),
            evidence=tuple(distinct)[:MAX_EVIDENCE],
            coverage=coverage,
            confidence=confidence,
        )
