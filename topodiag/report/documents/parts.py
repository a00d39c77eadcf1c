"""The parts that every document shares, filled from the model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from topodiag.model import finding as model
from topodiag.model import provenance
from topodiag.report.documents.types import common as shape
from topodiag.version import __version__

_SEVERITY: dict[model.Severity, Literal["info", "warning", "error"]] = {
    model.Severity.INFO: "info",
    model.Severity.WARNING: "warning",
    model.Severity.ERROR: "error",
}
LEVEL: dict[model.Confidence, shape.Level] = {
    model.Confidence.LOW: "low",
    model.Confidence.MEDIUM: "medium",
    model.Confidence.HIGH: "high",
}


def tool() -> shape.Tool:
    return shape.Tool(name="topodiag", version=__version__)


def inputs_of(pieces: Iterable[model.Input]) -> list[shape.Input]:
    return [
        shape.Input(
            path=piece.path,
            kind=piece.kind,
            sha256=piece.sha256,
            lines=piece.lines,
            records=piece.records,
            unparsed=piece.unparsed,
        )
        for piece in pieces
    ]


def findings_of(findings: Iterable[model.Finding]) -> list[shape.Finding]:
    return [finding_of(finding) for finding in findings]


def finding_of(finding: model.Finding) -> shape.Finding:
    where, cost = finding.where, finding.cost
    return shape.Finding(
        id=finding.id,
        severity=_SEVERITY[finding.severity],
        confidence=LEVEL[finding.confidence],
        message=finding.message,
        where=place_of(where),
        observed=finding.observed,
        expected=finding.expected,
        cost=shape.Cost(gbs_lost=cost.gbs_lost, share=cost.share, text=cost.text),
        evidence=[origin_of(origin) for origin in finding.evidence],
        coverage=coverage_of(finding.coverage),
        fix=list(finding.fix),
        follows_from=None
        if finding.follows is None
        else shape.Follows(check=finding.follows.check, message=finding.follows.message, why=finding.follows.why),
        docs=f"topodiag explain {finding.id}",
    )


def place_of(where: model.Where) -> shape.Place:
    return shape.Place(
        nodes=list(where.nodes),
        gpus=list(where.gpus),
        nics=list(where.nics),
        ranks=list(where.ranks),
        links=list(where.links),
        jobs=list(where.jobs),
    )


def origin_of(origin: provenance.Origin) -> shape.Origin:
    return shape.Origin(source=origin.source, line=origin.line, text=origin.text, command=origin.command)


def coverage_of(coverage: model.Coverage | None) -> shape.Coverage | None:
    if coverage is None:
        return None
    return shape.Coverage(seen=coverage.seen, total=coverage.total, what=coverage.what)


def gaps_of(gaps: Iterable[provenance.NotObserved]) -> list[shape.NotObserved]:
    return [shape.NotObserved(what=gap.what, why=gap.why, needs_root=gap.needs_root) for gap in gaps]
