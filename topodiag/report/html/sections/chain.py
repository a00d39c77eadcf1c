"""Each cause with what follows from it, as a tree: how it makes the job slow, why each consequence follows."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from topodiag.draw.chain import draw_chain
from topodiag.model.finding import Finding
from topodiag.model.result import Result
from topodiag.model.verdict import Cause, Consequence, Verdict
from topodiag.report.findings import cost_words
from topodiag.report.html.interface import Drawing, Section, Sheet
from topodiag.report.html.sections.shared import Anchors, quotes, word_of
from topodiag.report.node.marks import SIGNS
from topodiag.report.places import Places
from topodiag.report.verdict.cause import STATUS

CAUSES_SHOWN = 20
LEAST_DRAWN = 2


def section(sheet: Sheet) -> Section | None:
    """The causes of a verdict; for other reports the findings that explain others."""
    result = sheet.result
    anchors = Anchors(result)
    if result.verdict is not None:
        causes = [_of_cause(cause, result, anchors) for cause in result.verdict.causes[:CAUSES_SHOWN]]
        left = max(len(result.verdict.causes) - CAUSES_SHOWN, 0)
    else:
        causes, left = _of_findings(result, anchors), 0
    drawings = (*sheet.of("chain"), *_drawn(result.verdict))
    if not (causes or drawings):
        return None
    return Section("chain", "Cause and consequences", {"causes": causes, "left": left, "drawings": drawings})


def _drawn(verdict: Verdict | None) -> list[Drawing]:
    """The chain as a picture, where several things follow: a box or two say no more than their words."""
    if verdict is None or sum(len(cause.consequences) for cause in verdict.causes) < LEAST_DRAWN:
        return []
    return [Drawing("chain", "Each cause with what follows from it", draw_chain(verdict, prefix="chain"), inline=True)]


def _of_cause(cause: Cause, result: Result, anchors: Anchors) -> dict[str, Any]:
    groups = [
        list(group)
        for _, group in groupby(cause.consequences, key=lambda consequence: (consequence.finding.id, consequence.depth))
    ]
    places = Places(result)
    against = [
        {"place": places.spell(line, cause.finding), "text": " ".join(line.text.split())}
        for line in cause.contradicted_by
    ]
    return {
        **_head(cause.finding, anchors),
        "status": STATUS[cause.status][0],
        "mechanism": cause.mechanism,
        "effects": [_effect(group, anchors) for group in groups],
        "proof": quotes(cause.finding, places, 4),
        "against": against,
    }


def _head(finding: Finding, anchors: Anchors) -> dict[str, Any]:
    return {
        "check": finding.id,
        "severity": word_of(finding.severity),
        "sign": SIGNS[finding.severity],
        "message": finding.message,
        "anchor": anchors.of(finding),
        "where": anchors.where(finding),
    }


def _effect(group: list[Consequence], anchors: Anchors) -> dict[str, Any]:
    first = group[0]
    return {**_head(first.finding, anchors), "why": first.why, "depth": min(first.depth, 6), "count": len(group)}


def _of_findings(result: Result, anchors: Anchors) -> list[dict[str, Any]]:
    """Findings that others follow from, as their checks name each other."""
    below: dict[tuple[str, str], list[Finding]] = {}
    for finding in result.findings:
        if finding.follows is not None:
            below.setdefault((finding.follows.check, finding.follows.message), []).append(finding)
    cards = []
    for finding in result.findings:
        effects = below.pop((finding.id, finding.message), [])
        if effects and finding.follows is None:
            groups = [list(group) for _, group in groupby(effects, key=lambda finding: finding.id)]
            cards.append({
                **_head(finding, anchors), "status": "", "mechanism": cost_words(finding.cost), "proof": (),
                "against": [],
                "effects": [
                    {**_head(group[0], anchors), "why": group[0].follows.why if group[0].follows else "", "depth": 1,
                     "count": len(group)} for group in groups
                ],
            })  # fmt: skip
    return cards[:CAUSES_SHOWN]
