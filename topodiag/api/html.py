"""A result as a page for notebooks. Every text is escaped: messages and names come from foreign files."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from jinja2 import Environment, Template

from topodiag.report.words import counted
from topodiag.words.own_data import own_text
from topodiag.words.text import clean

if TYPE_CHECKING:
    from topodiag.api.results import Answer
    from topodiag.model.finding import Where
    from topodiag.model.verdict import Verdict

SHOWN = 20
"""Findings on the page; the table `findings` has all."""


@cache
def _template() -> Template:
    return Environment(autoescape=True, finalize=_visible).from_string(own_text("api/notebook.html"))


def _visible(value: object) -> object:
    return clean(value) if isinstance(value, str) else value


def page_of(answer: Answer) -> str:
    """The answer, its worst findings and the names of its tables."""
    findings = answer.findings
    counts = ", ".join(words for _, words in counted(findings)) or "no findings"
    verdict: Verdict | None = getattr(answer, "verdict", None)
    return _template().render(
        first=verdict.first if verdict is not None else (),
        causes=verdict.causes[:SHOWN] if verdict is not None else (),
        next=verdict.next_evidence if verdict is not None else (),
        headline=answer.headline,
        counts=counts if "findings" in answer.known else "",
        findings=[(finding, _names(finding.where)) for finding in findings[:SHOWN]],
        more=max(len(findings) - SHOWN, 0),
        tables=", ".join(answer.tables()),
    )


def _names(where: Where) -> str:
    names = [*where.nodes, *where.gpus, *where.nics, *(f"rank {rank}" for rank in where.ranks[:8]), *where.links]
    return ", ".join(names[:SHOWN])
