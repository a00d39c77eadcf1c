"""What several sections say alike: severities as sign and word, findings by their anchor, places, steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Finding, Severity
from topodiag.model.maker import dialect_of_all
from topodiag.model.result import Result
from topodiag.report.findings import cost_words, where_words
from topodiag.report.node.marks import SIGNS
from topodiag.report.places import Places
from topodiag.report.words import counted

FINDINGS_SHOWN = 1000
"""Findings in full; of more the page says how many, and the JSON has them."""
NAMES_ROOM = 160
"""Characters of a set of nodes that stands among other words: all of them are in the tables below."""
EVIDENCE_SHOWN = 20
"""Lines of evidence below one finding."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A line of evidence: where it stands and what it says."""

    place: str
    text: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A finding as the page shows it. `anchor` is its id on the page."""

    anchor: str
    check: str
    severity: str
    sign: str
    message: str
    where: str
    observed: str
    expected: str
    cost: str
    coverage: str
    sure: str
    fix: tuple[str, ...]
    follows: str
    why: str
    evidence: tuple[Quote, ...]
    more: int


def anchors(findings: Sequence[Finding]) -> list[str]:
    """An id for each finding: its check and its number among those of this check."""
    seen: Counter[str] = Counter()
    lines = []
    for finding in findings:
        seen[finding.id] += 1
        lines.append(f"{finding.id}-{seen[finding.id]}")
    return lines


def several_nodes(result: Result) -> bool:
    return len(result.nodes) != 1 or bool(result.jobs)


def cards(result: Result) -> list[Card]:
    """The findings of a result, in its order."""
    places, several = Places(result), several_nodes(result)
    shown = result.findings[:FINDINGS_SHOWN]
    return [_card(finding, anchor, places, several) for finding, anchor in zip(shown, anchors(shown), strict=True)]


def _card(finding: Finding, anchor: str, places: Places, several: bool) -> Card:
    covered = finding.coverage
    return Card(
        anchor=anchor,
        check=finding.id,
        severity=word_of(finding.severity),
        sign=SIGNS[finding.severity],
        message=finding.message,
        where=where_words(finding.where, several),
        observed=finding.observed,
        expected=finding.expected,
        cost=cost_words(finding.cost),
        coverage=str(covered) if covered is not None and covered.seen < covered.total else "",
        sure="" if finding.confidence is Confidence.HIGH else f"{finding.confidence} confidence",
        fix=finding.fix,
        follows=finding.follows.check if finding.follows is not None else "",
        why=finding.follows.why if finding.follows is not None else "",
        evidence=quotes(finding, places),
        more=max(len(finding.evidence) - EVIDENCE_SHOWN, 0),
    )


def quotes(finding: Finding, places: Places, most: int = EVIDENCE_SHOWN) -> tuple[Quote, ...]:
    """Lines that show a finding."""
    return tuple(
        Quote(places.spell(line, finding), " ".join(line.text.split()), line.command)
        for line in finding.evidence[:most]
    )


def word_of(severity: Severity) -> str:
    """`error`, `warning`, `note`: as the terminal counts them."""
    return {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}[severity]


class Anchors:
    """Where on the page each finding of a result stands, and where in the cluster."""

    def __init__(self, result: Result) -> None:
        shown = result.findings[:FINDINGS_SHOWN]
        named = list(zip(shown, anchors(shown), strict=True))
        self._exact = dict(reversed(named))
        self._near = {(finding.id, finding.message): anchor for finding, anchor in reversed(named)}
        self._several = several_nodes(result)
        self.dialect = dialect_of_all(result.nodes, result.jobs, result.benchmarks)

    def of(self, finding: Finding) -> str:
        """The anchor of a finding, "" where the list of findings has it not."""
        return self._exact.get(finding) or self._near.get((finding.id, finding.message), "")

    def where(self, finding: Finding) -> str:
        """The place of a finding in words; its node is named where there are several."""
        return where_words(finding.where, self._several)


def distinct(words: Iterable[str]) -> list[str]:
    """Each once, in order, without empty ones."""
    return [word for word in dict.fromkeys(words) if word]


def severity_tally(result: Result) -> list[tuple[str, str]]:
    """`("error", "2 errors")`, worst first, only what there is."""
    return [(word_of(severity), words) for severity, words in counted(result.findings)]


def by_host(result: Result) -> dict[str, list[Finding]]:
    """The findings of each node that has one; one that names no node is everybody's and stands under no host."""
    findings: dict[str, list[Finding]] = {}
    for finding in result.findings:
        for host in finding.where.nodes:
            findings.setdefault(host, []).append(finding)
    return findings
