"""A result as a page for notebooks. Every text is escaped: messages and names come from foreign files."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from topodiag.report.words import counted
from topodiag.words.own_data import own_text
from topodiag.words.text import clean

if TYPE_CHECKING:
    from jinja2 import Template

    from topodiag.api.results import Answer
    from topodiag.model.verdict import Cause, Verdict

SHOWN = 20
"""Findings on the page; the table `findings` has all."""


@cache
def _template() -> Template:
    from jinja2 import Environment  # noqa: PLC0415 - 0.1 s, and only notebooks need it

    return Environment(autoescape=True).from_string(own_text("api/notebook.html"))


def page_of(answer: Answer) -> str:
    """The answer, its worst findings and the names of its tables."""
    findings = answer.findings
    rows = []
    for finding in findings[:SHOWN]:
        where = finding.where
        names = [*where.nodes, *where.gpus, *where.nics, *(f"rank {rank}" for rank in where.ranks[:8]), *where.links]
        rows.append({
            "severity": str(finding.severity),
            "id": finding.id,
            "message": clean(finding.message),
            "where": clean(", ".join(names[:SHOWN])),
            "fix": clean(finding.fix[0]) if finding.fix else "",
        })  # fmt: skip
    counts = ", ".join(words for _, words in counted(findings)) or "no findings"
    verdict: Verdict | None = getattr(answer, "verdict", None)
    return _template().render(
        first=[clean(words) for words in verdict.first] if verdict is not None else (),
        causes=[_cause(cause) for cause in verdict.causes[:SHOWN]] if verdict is not None else (),
        next=[
            {
                "command": clean(evidence.command),
                "where": clean(evidence.where),
                "why": clean(evidence.why or evidence.what),
            }
            for evidence in (verdict.next_evidence if verdict is not None else ())
        ],
        headline=clean(answer.headline),
        counts=counts if "findings" in answer.known else "",
        findings=rows,
        more=max(len(findings) - SHOWN, 0),
        tables=", ".join(answer.tables()),
    )


def _cause(cause: Cause) -> dict[str, str]:
    finding, price = cause.finding, cause.price
    follows = dict.fromkeys(consequence.finding.id for consequence in cause.consequences)
    return {
        "id": finding.id,
        "status": cause.status.value,
        "message": clean(finding.message),
        "cost": clean(price.says or price.text),
        "follows": ", ".join(follows),
        "fix": clean(finding.fix[0]) if finding.fix else "",
    }
