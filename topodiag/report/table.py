"""The terminal report: verdict, machine, findings, and what was not seen; with -v the machine as tree and matrix."""

from __future__ import annotations

from topodiag.model.finding import Marks
from topodiag.model.node import Node
from topodiag.model.result import Result
from topodiag.report.findings import draw_findings
from topodiag.report.gaps import draw_gaps, draw_unreadable
from topodiag.report.node.header import draw_header, draw_machine_line
from topodiag.report.node.matrix import draw_matrix
from topodiag.report.node.tree import draw_tree
from topodiag.report.text import Page
from topodiag.report.words import findings_of, of_hosts


def draw_result(page: Page, result: Result) -> None:
    """What a person reads. Every line fits `style.width`; nothing foreign reaches the terminal unescaped."""
    draw_unreadable(page, result)
    if result.jobs:
        from topodiag.report.job.table import draw_jobs  # noqa: PLC0415 - numpy, which a scan never needs

        draw_jobs(page, result, page)
    elif not result.nodes:
        page.add(page.text(("?", "unknown"), " "), ("no machine was found in the evidence", "unknown"))
    of_host = of_hosts(result)
    for node in result.nodes:
        own = of_host(node.host)
        page.blank()
        draw_header(page, own, node)
        if page.style.verbose and not page.style.quiet:
            _draw_parts(page, own, node)
    draw_findings(page, result.findings, several_nodes=len(result.nodes) > 1 or bool(result.jobs))
    if not page.style.quiet:
        draw_gaps(page, result)
    page.repeat_answers()


def draw_machine(page: Page, result: Result, node: Node) -> None:
    """A machine without verdict: what it is, its tree, its matrix. What the checks found is still marked."""
    draw_machine_line(page, node)
    _draw_parts(page, result, node)


def _draw_parts(page: Page, result: Result, node: Node) -> None:
    findings = findings_of(result, node)
    draw_tree(page, node, Marks(findings))
    draw_matrix(page, node, findings)
