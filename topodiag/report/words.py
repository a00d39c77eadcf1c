"""What every report says alike: counts in words, whether the GPUs were seen, and what came of the checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from topodiag.checks.registry import check_class
from topodiag.lazy import dataclass
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.node import Node
from topodiag.model.result import Result, Trouble
from topodiag.words.dialect import NVIDIA, Dialect
from topodiag.words.units import plural

T = TypeVar("T")
KINDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
SIGNS = {Severity.ERROR: "✖", Severity.WARNING: "▲", Severity.INFO: "●"}
"""What findings of each severity are called, and the sign that marks them."""


def title_of(check: str, dialect: Dialect = NVIDIA) -> str:
    """The title of a check, "" of an unknown one."""
    known = check_class(check)
    return dialect.say(known.title) if known is not None else ""


def severity_counts(findings: Iterable[Finding]) -> dict[Severity, int]:
    """How many of each, worst first; zeros are there."""
    counts = dict.fromkeys(sorted(Severity, reverse=True), 0)
    for finding in findings:
        counts[finding.severity] += 1
    return counts


def counted(findings: Iterable[Finding]) -> list[tuple[Severity, str]]:
    """`[(ERROR, "2 errors"), (INFO, "1 note")]`, only what there is."""
    return [(severity, plural(n, KINDS[severity])) for severity, n in severity_counts(findings).items() if n]


def unexplained_words(lines: Sequence[Trouble]) -> str:
    """`2 lines of trouble that no check explains: NCCL WARN`."""
    count = sum(line.count for line in lines)
    kinds = ", ".join(dict.fromkeys(line.what for line in lines))
    return f"{plural(count, 'line')} of trouble that no check explains ({kinds})"


def findings_of(result: Result, node: Node) -> tuple[Finding, ...]:
    """The findings on this node; one that names no node is everybody's."""
    return tuple(f for f in result.findings if not f.where.nodes or node.host in f.where.nodes)


def of_hosts(result: Result) -> Callable[[str], Result]:
    """The result as it speaks of one host, by its name: what names that host or none. All is looked at once, and not
    once for each of thousands of nodes."""
    findings = _by_host((finding, finding.where.nodes or ("",)) for finding in result.findings)
    outcomes = _by_host((outcome, (outcome.node,)) for outcome in result.outcomes)
    unexplained = _by_host((trouble, (trouble.subject,)) for trouble in result.unexplained)
    return lambda host: replace(result, findings=findings(host), outcomes=outcomes(host), unexplained=unexplained(host))


def _by_host(things: Iterable[tuple[T, Iterable[str]]]) -> Callable[[str], tuple[T, ...]]:
    """Things by the hosts that they name, in their order; those that name "" are everybody's."""
    of_host: dict[str, dict[int, T]] = {}
    for number, (thing, hosts) in enumerate(things):
        for host in hosts:
            of_host.setdefault(host, {})[number] = thing
    everybodys = of_host.pop("", {})

    def of(host: str) -> tuple[T, ...]:
        own = everybodys | of_host.get(host, {})
        return tuple(own[number] for number in sorted(own))

    return of


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of the checks, counted over nodes."""

    total: int
    judged: int
    not_applicable: int
    unknown: int

    def __str__(self) -> str:
        words = [f"{self.judged} of {plural(self.total, 'check')} ran"]
        if self.not_applicable:
            words.append(f"{self.not_applicable} {'does' if self.not_applicable == 1 else 'do'} not apply")
        if self.unknown:
            words.append(f"{self.unknown} unknown")
        return ", ".join(words)


def judged(result: Result, host: str | None = None) -> Judged:
    """The checks' outcomes of one node, or of all."""
    outcomes = [o.status for o in result.outcomes if host is None or o.node in ("", host)]
    return Judged(
        total=len(outcomes),
        judged=sum(1 for status in outcomes if status in (Status.CLEAN, Status.FINDING)),
        not_applicable=outcomes.count(Status.NOT_APPLICABLE),
        unknown=outcomes.count(Status.UNKNOWN),
    )
