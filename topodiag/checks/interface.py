"""What a check is. Its docstring is the page that `topodiag explain ID` prints.

Adding one is a class and a line in `registry.py`. The sections of the docstring, in this order: What it finds, Why it
matters, Evidence it reads, When it stays silent, How to confirm, How to fix, References.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NotRequired, TypeAlias, TypedDict, Unpack

from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity, Status, Where
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Origin

if TYPE_CHECKING:
    from topodiag.model.bench import Benchmark
    from topodiag.model.job import Job
    from topodiag.placement.audit import Audit

Subject: TypeAlias = "Node | Job | Benchmark | Audit"

MAX_EVIDENCE = 8
"""Evidence lines kept per finding: enough to convince, few enough to read."""


class Said(TypedDict):
    """What a finding says beside its message. `evidence` takes origins or facts themselves; empty ones are dropped."""

    observed: str
    expected: str
    fix: Sequence[str]
    cost: NotRequired[Cost | None]
    evidence: NotRequired[Iterable[Origin | Fact[Any] | None]]
    coverage: NotRequired[Coverage | None]
    confidence: NotRequired[Confidence]
    settings: NotRequired[Sequence[tuple[str, str | None]]]


class Check(ABC):
    """One kind of fault. `id` is never reused; `title` is one line in the present tense."""

    id: ClassVar[str]
    title: ClassVar[str]

    def found(self, subject: Subject, findings: Iterable[Finding], coverage: Coverage | None = None) -> Outcome:
        return Outcome(self.id, Status.FINDING, _name(subject), tuple(findings), coverage=coverage)

    def clean(self, subject: Subject, why: str = "", coverage: Coverage | None = None) -> Outcome:
        return Outcome(self.id, Status.CLEAN, _name(subject), why=why, coverage=coverage)

    def not_applicable(self, subject: Subject, why: str) -> Outcome:
        return Outcome(self.id, Status.NOT_APPLICABLE, _name(subject), why=why)

    def unknown(self, subject: Subject, why: str) -> Outcome:
        return Outcome(self.id, Status.UNKNOWN, _name(subject), why=why)

    def _made(self, where: Where, severity: Severity, message: str, **said: Unpack[Said]) -> Finding:
        return Finding(
            id=self.id,
            severity=severity,
            message=message,
            observed=said["observed"],
            expected=said["expected"],
            fix=tuple(said["fix"]),
            where=where,
            cost=said.get("cost") or Cost(),
            evidence=_origins(said.get("evidence", ())),
            coverage=said.get("coverage"),
            confidence=said.get("confidence", Confidence.HIGH),
            settings=tuple(said.get("settings", ())),
        )


class NodeCheck(Check):
    """A check that judges one node; `peers` are the other nodes in evidence, for comparisons between siblings."""

    @abstractmethod
    def judge(self, node: Node, peers: Sequence[Node]) -> Outcome:
        """Findings, clean, not applicable, or unknown with why. Never raises on any model."""

    def finding(
        self,
        node: Node,
        severity: Severity,
        message: str,
        *,
        gpus: Sequence[str] = (),
        nics: Sequence[str] = (),
        links: Sequence[str] = (),
        **said: Unpack[Said],
    ) -> Finding:
        """A finding on this node."""
        where = Where(nodes=(node.host,), gpus=tuple(gpus), nics=tuple(nics), links=tuple(links))
        return self._made(where, severity, message, **said)


class _RankCheck(Check):
    """What checks of jobs and of layouts share: findings on nodes and world ranks."""

    def finding(
        self,
        severity: Severity,
        message: str,
        *,
        nodes: Sequence[str] = (),
        ranks: Sequence[int] = (),
        gpus: Sequence[str] = (),
        nics: Sequence[str] = (),
        links: Sequence[str] = (),
        **said: Unpack[Said],
    ) -> Finding:
        """A finding folded over the nodes and world ranks it holds for."""
        where = Where(tuple(nodes), tuple(gpus), tuple(nics), tuple(ranks), tuple(links))
        return self._made(where, severity, message, **said)


class JobCheck(_RankCheck):
    """A check that judges one job by its logs. One id may have a NodeCheck and a JobCheck: the one that the registry
    names first carries the page that `topodiag explain` prints."""

    @abstractmethod
    def judge(self, job: Job) -> Outcome:
        """Findings, clean, not applicable, or unknown with why (and the NCCL_DEBUG_SUBSYS to set). Never raises."""


class PlacementCheck(_RankCheck):
    """A check that judges a layout of ranks on a cluster, also one that does not run yet. `audit` has its prices."""

    @abstractmethod
    def judge(self, audit: Audit) -> Outcome:
        """Findings, clean, or not applicable with why. Never raises."""


class BenchCheck(Check):
    """A check that judges one measured run of a collective."""

    @abstractmethod
    def judge(self, benchmark: Benchmark, others: Sequence[Benchmark]) -> Outcome:
        """Findings, clean, not applicable, or unknown with why. `others` are the other runs in evidence. Never raises
        for the content of a run."""

    def finding(self, benchmark: Benchmark, severity: Severity, message: str, **said: Unpack[Said]) -> Finding:
        """A finding of a run, on the hosts that it ran on."""
        return self._made(Where(nodes=benchmark.run.hosts), severity, message, **said)


def _name(subject: Subject) -> str:
    if isinstance(subject, Node):
        return subject.host
    # Neither module is imported here: a job needs numpy, and a scan knows nodes alone.
    run = getattr(subject, "run", None)
    if run is None:
        return str(getattr(subject, "name", ""))
    return " ".join(part for part in (run.placement or run.source, run.collective) if part)


def _origins(evidence: Iterable[Origin | Fact[Any] | None]) -> tuple[Origin, ...]:
    """The distinct origins of what is given, at most MAX_EVIDENCE."""
    origins = [item.origin if isinstance(item, Fact) else item for item in evidence]
    return tuple(dict.fromkeys(origin for origin in origins if origin is not None))[:MAX_EVIDENCE]
