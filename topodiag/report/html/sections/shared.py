"""What several sections say alike: severities as sign and word, findings by their anchor, places, steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from topodiag.model.finding import Finding
from topodiag.model.maker import dialect_of_all
from topodiag.model.provenance import Origin
from topodiag.model.result import Result
from topodiag.model.verdict import Cause, CauseStatus, Consequence
from topodiag.report.findings import cost_words, where_words
from topodiag.report.places import Places
from topodiag.words.units import grouped

FINDINGS_SHOWN = 1000
"""Findings in full; of more the page says how many, and the JSON has them."""
NAMES_ROOM = 160
"""Characters of a set of nodes that stands among other words: all of them are in the tables below."""

Quote = tuple[str, str, str]
"""A line of evidence: where it stands, what it says, and the command that printed it."""


def quotes(lines: Iterable[Origin], finding: Finding, places: Places) -> list[Quote]:
    """Lines that speak of a finding."""
    return [(places.spell(line, finding), " ".join(line.text.split()), line.command) for line in lines]


class Anchors:
    """Where on the page each finding of a result stands, and where in the cluster. `named` has the findings that are
    shown behind their anchors: the check and a number among those of this check."""

    def __init__(self, result: Result) -> None:
        seen: Counter[str] = Counter()
        self.named: list[tuple[str, Finding]] = []
        for finding in result.findings[:FINDINGS_SHOWN]:
            seen[finding.id] += 1
            self.named.append((f"{finding.id}-{seen[finding.id]}", finding))
        self._exact = {finding: anchor for anchor, finding in reversed(self.named)}
        self._near = {(finding.id, finding.message): anchor for anchor, finding in reversed(self.named)}
        self._several = len(result.nodes) != 1 or bool(result.jobs)
        self.dialect = dialect_of_all(result)

    def of(self, finding: Finding) -> str:
        """The anchor of a finding, "" where the list of findings has it not."""
        return self._exact.get(finding) or self._near.get((finding.id, finding.message), "")

    def where(self, finding: Finding) -> str:
        """The place of a finding in words; its node is named where there are several."""
        return where_words(finding.where, self._several)


def causes_of(result: Result) -> Sequence[Cause]:
    """The causes of a verdict; of other reports the findings that follow from no other, each with those that do."""
    if result.verdict is not None:
        return result.verdict.causes
    below = grouped(
        ((one.follows.check, one.follows.message), Consequence(one, one.follows.why))
        for one in result.findings
        if one.follows is not None
    )
    first = (finding for finding in result.findings if finding.follows is None)
    return [
        Cause(one, CauseStatus.UNKNOWN, cost_words(one.cost), consequences=tuple(below.pop((one.id, one.message), ())))
        for one in first
    ]


def distinct(words: Iterable[str]) -> list[str]:
    """Each once, in order, without empty ones."""
    return [word for word in dict.fromkeys(words) if word]


def by_host(result: Result) -> dict[str, list[Finding]]:
    """The findings of each node that has one; one that names no node is everybody's and stands under no host."""
    return grouped((host, finding) for finding in result.findings for host in finding.where.nodes)
