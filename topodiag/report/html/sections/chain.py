"""Each cause with what follows from it, as a tree: how it makes the job slow, why each consequence follows."""

from __future__ import annotations

from typing import Any

from topodiag.draw.chain import draw_chain
from topodiag.model.finding import Finding
from topodiag.model.result import Result
from topodiag.model.verdict import Cause, Verdict
from topodiag.report.findings import cost_words
from topodiag.report.html.interface import Drawing, Section, Sheet
from topodiag.report.html.sections.shared import Anchors, quotes
from topodiag.report.places import Places
from topodiag.report.verdict.cause import STATUS
from topodiag.words.fold import grouped, neighbours

CAUSES_SHOWN = 20
EVIDENCE_SHOWN = 4
LEAST_DRAWN = 2


def section(sheet: Sheet) -> Section | None:
    """The causes of a verdict; for other reports the findings that explain others."""
    result = sheet.result
    if result.verdict is not None:
        places = Places(result)
        causes = [_of_cause(cause, places) for cause in result.verdict.causes[:CAUSES_SHOWN]]
        left = max(len(result.verdict.causes) - CAUSES_SHOWN, 0)
    else:
        causes, left = _of_findings(result), 0
    drawings = _drawn(result.verdict)
    if not causes:
        return None
    values = {"causes": causes, "left": left, "drawings": drawings, "anchors": Anchors(result)}
    return Section("chain", "Cause and consequences", values)


def _drawn(verdict: Verdict | None) -> list[Drawing]:
    """The chain as a picture, where several things follow: a box or two say no more than their words."""
    if verdict is None or sum(len(cause.consequences) for cause in verdict.causes) < LEAST_DRAWN:
        return []
    return [Drawing("Each cause with what follows from it", draw_chain(verdict, prefix="chain"))]


def _of_cause(cause: Cause, places: Places) -> dict[str, Any]:
    finding = cause.finding
    groups = neighbours(cause.consequences, key=lambda following: (following.finding.id, following.depth))
    return {
        "finding": finding,
        "status": STATUS[cause.status][0],
        "mechanism": cause.mechanism,
        "effects": [_effect([following.finding for following in group], group[0].why, group[0].depth)
                    for group in groups],
        "proof": quotes(finding.evidence[:EVIDENCE_SHOWN], finding, places),
        "against": quotes(cause.contradicted_by, finding, places),
    }  # fmt: skip


def _effect(alike: list[Finding], why: str, depth: int = 1) -> dict[str, Any]:
    """Findings of one check that follow for one reason."""
    return {"finding": alike[0], "why": why, "depth": min(depth, 6), "count": len(alike)}


def _of_findings(result: Result) -> list[dict[str, Any]]:
    """Findings that others follow from, as their checks name each other."""
    below = grouped(
        ((finding.follows.check, finding.follows.message), finding)
        for finding in result.findings
        if finding.follows is not None
    )
    cards = []
    for finding in result.findings:
        effects = below.pop((finding.id, finding.message), [])
        if effects and finding.follows is None:
            groups = neighbours(effects, key=lambda finding: finding.id)
            cards.append({
                "finding": finding, "status": "", "mechanism": cost_words(finding.cost), "proof": (), "against": (),
                "effects": [_effect(group, group[0].follows.why if group[0].follows else "") for group in groups],
            })  # fmt: skip
    return cards[:CAUSES_SHOWN]
