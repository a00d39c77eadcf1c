"""A result as a page for notebooks. Every text is escaped: messages and names come from foreign files."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from topodiag.report.words import counted
from topodiag.words.text import clean

if TYPE_CHECKING:
    from jinja2 import Template

    from topodiag.api.results import Answer

SHOWN = 20
"""Findings on the page; the table `findings` has all."""
TEXT = """\
<div class="topodiag">
<p><b>{{ headline }}</b>{% if counts %}: {{ counts }}{% endif %}</p>
{%- if findings %}
<table>
<thead><tr><th>severity</th><th>check</th><th>finding</th><th>where</th><th>fix</th></tr></thead>
<tbody>
{%- for each in findings %}
<tr><td>{{ each.severity }}</td><td>{{ each.id }}</td><td>{{ each.message }}</td><td>{{ each.where }}</td>
<td>{{ each.fix }}</td></tr>
{%- endfor %}
</tbody>
</table>
{%- endif %}
{%- if more %}
<p>{{ more }} more findings: .table("findings")</p>
{%- endif %}
<p>tables: {{ tables }}</p>
</div>
"""


@cache
def _template() -> Template:
    from jinja2 import Environment  # noqa: PLC0415 - 0.1 s, and only notebooks need it

    return Environment(autoescape=True).from_string(TEXT)


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
    return _template().render(
        headline=clean(answer.headline),
        counts=counts if "findings" in answer.known else "",
        findings=rows,
        more=max(len(findings) - SHOWN, 0),
        tables=", ".join(answer.tables()),
    )
