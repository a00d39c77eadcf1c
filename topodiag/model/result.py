"""The result of a diagnosis: what was read, what is known, what was found, and what could not be seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topodiag.model.finding import Finding, Input, Outcome, Severity, Status
from topodiag.model.node import Node
from topodiag.model.provenance import NotObserved

if TYPE_CHECKING:
    from topodiag.model.bench import Benchmark
    from topodiag.model.job import Job  # numpy is slow to load, and a scan needs none


@dataclass(frozen=True, slots=True)
class UnreadLine:
    """Text that no parser understood: where it stands and why it was left."""

    source: str
    line: int | None
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Result:
    """Everything a report needs. Findings are folded and sorted, worst first, in a stable order."""

    inputs: tuple[Input, ...] = ()
    nodes: tuple[Node, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    findings: tuple[Finding, ...] = ()
    not_observed: tuple[NotObserved, ...] = ()
    unread: tuple[UnreadLine, ...] = ()
    jobs: tuple[Job, ...] = ()
    benchmarks: tuple[Benchmark, ...] = ()

    @property
    def worst(self) -> Severity | None:
        return max((finding.severity for finding in self.findings), default=None)

    def with_status(self, status: Status) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.status is status)
