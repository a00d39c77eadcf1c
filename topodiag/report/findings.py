"""The findings, worst first: what was seen beside what was to be expected, what it costs, and how to put it right."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from topodiag.model.finding import Confidence, Cost, Finding, Where
from topodiag.report.header import SIGNS
from topodiag.report.marks import more
from topodiag.report.text import Page
from topodiag.report.words import fold_hosts, number, plural

LIKE_SHOWN = 4
"""Places shown in full of one kind of fault with one fix; the rest are counted (`-v` shows all)."""
EVIDENCE_SHOWN = 3
_LABEL = 11


def draw_findings(page: Page, findings: Sequence[Finding], *, several_nodes: bool) -> None:
    """Every finding; neighbours of one kind and one fix share their heading and their fix."""
    for _, group in groupby(findings, key=lambda f: (f.id, f.severity, f.confidence, f.fix)):
        page.blank()
        _draw_group(page, list(group), several_nodes)


def _draw_group(page: Page, group: list[Finding], several_nodes: bool) -> None:
    shown = group if page.style.verbose else group[:LIKE_SHOWN]
    for number_, finding in enumerate(shown):
        severity = str(finding.severity)
        sign = page.text((SIGNS[finding.severity], severity), " ", (finding.id, severity), "  ")
        sure = "" if finding.confidence is Confidence.HIGH else f"  [{finding.confidence} confidence]"
        page.add(sign, (finding.message, "strong"), (sure, "doubtful"))
        if number_ == 0 or not page.style.quiet:
            _draw_body(page, finding, several_nodes)
    if len(group) > len(shown):
        page.add(" " * 10, (more(len(group) - len(shown), "like this"), "dim"))
    if not page.style.quiet:
        _draw_fix(page, group[0])


def _draw_body(page: Page, finding: Finding, several_nodes: bool) -> None:
    _entry(page, "where", where_words(finding.where, several_nodes))
    _entry(page, "seen", finding.observed)
    _entry(page, "expected", finding.expected)
    _entry(page, "cost", cost_words(finding.cost))
    if finding.coverage is not None and finding.coverage.seen < finding.coverage.total:
        _entry(page, "coverage", str(finding.coverage))
    if page.style.quiet:
        return
    shown = finding.evidence if page.style.verbose else finding.evidence[:EVIDENCE_SHOWN]
    for number_, origin in enumerate(shown):
        label = "evidence" if number_ == 0 else ""
        quote = " ".join(origin.text.split())
        page.add(
            page.text("  ", (f"{label:<{_LABEL}}", "dim")),
            (str(origin), "close"),
            ("  " + quote if quote else "", "dim"),
        )
    if len(finding.evidence) > len(shown):
        page.add(" " * (_LABEL + 2), (more(len(finding.evidence) - len(shown), "line"), "dim"))


def _draw_fix(page: Page, finding: Finding) -> None:
    for number_, step in enumerate(finding.fix, start=1):
        label = "fix" if number_ == 1 else ""
        count = f"{number_}. " if len(finding.fix) > 1 else ""
        page.add(page.text("  ", (f"{label:<{_LABEL}}", "ok"), count), step)
    page.add(page.text("  ", (" " * _LABEL, "")), (f"topodiag explain {finding.id}", "dim"))


def _entry(page: Page, label: str, words: str) -> None:
    if words:
        page.add(page.text("  ", (f"{label:<{_LABEL}}", "dim")), words)


def where_words(where: Where, several_nodes: bool) -> str:
    """The place in words; the node only when there are several."""
    parts = [fold_hosts(where.nodes)] if several_nodes and where.nodes else []
    parts += [_listed(labels) for labels in (where.gpus, where.nics, where.links) if labels]
    if where.ranks:
        parts.append(f"{'rank' if len(where.ranks) == 1 else 'ranks'} {_listed(tuple(map(str, where.ranks)))}")
    return " · ".join(parts)


def _listed(labels: tuple[str, ...]) -> str:
    return ", ".join(labels) if len(labels) <= 12 else f"{', '.join(labels[:10])} … ({len(labels)} in all)"


def cost_words(cost: Cost) -> str:
    """`−159.4 GB/s (33 %): ...`; only the words where no number could be derived."""
    parts = []
    if cost.gbs_lost is not None:
        parts.append(f"{number(cost.gbs_lost)} GB/s lost")
    if cost.share is not None:
        share = f"{number(cost.share * 100)} %"
        parts.append(f"({share})" if parts else f"{share} lost")
    lead = " ".join(parts)
    return f"{lead}: {cost.text}" if lead and cost.text else lead or cost.text


def draw_epilogue(page: Page, findings: Sequence[Finding]) -> None:
    """The closing line, for a reader who scrolled to the end."""
    if findings:
        ids = sorted({finding.id for finding in findings})
        page.add("", (plural(len(findings), "finding") + f" in {plural(len(ids), 'check')}", "dim"))
