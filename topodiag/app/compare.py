"""The use case of `topodiag fleet compare`: from captures to cohorts, findings, and nodes that no job should get."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from topodiag.checks.fleet.differs import matters
from topodiag.checks.registry import Subject
from topodiag.checks.run import fold, run
from topodiag.fleet.compare import compared
from topodiag.fleet.nodes import read_fleet
from topodiag.model.finding import Finding, Outcome, Severity, Status
from topodiag.model.fleet import Cohort, Exclusion, FleetNode, FleetResult
from topodiag.model.result import Trouble
from topodiag.words.units import grouped

DIFFERS = "FLT001"
SPLITS = "FLT002"
_CHECKS = (DIFFERS, SPLITS)


def compare(
    paths: Sequence[str],
    *,
    workers: int | None = None,
    dask: str | None = None,
    on_read: Callable[[int, int], None] | None = None,
) -> FleetResult:
    """The nodes at these paths beside each other. `workers` and `dask` say who reads, as for logs; the result is the
    same for any. Raises InputError where no node can be read, TopodiagError when a worker dies."""
    fleet = read_fleet(paths, workers=workers, dask=dask, on_read=on_read)
    cohorts, home = compared(fleet.nodes, paths)
    of_cohorts = run(Subject.FLEET, cohorts, _CHECKS)
    of_nodes = [Outcome("", Status.FINDING, node.host, node.findings) for node in fleet.nodes if node.findings]
    findings = fold((*of_nodes, *of_cohorts))
    placed = zip(fleet.nodes, home, strict=True)
    return FleetResult(
        nodes=tuple(FleetNode(node.host, node.path, node.time, number) for node, number in placed),
        cohorts=cohorts,
        findings=findings,
        exclusions=exclusions(findings, [node.host for node in fleet.nodes], cohorts),
        left_out=fleet.left_out,
        unexplained=_folded(trouble for node in fleet.nodes for trouble in node.unexplained),
        outcomes=of_cohorts,
        inputs=tuple(node.read for node in fleet.nodes if node.read is not None),
    )


def exclusions(
    findings: Sequence[Finding], hosts: Sequence[str], cohorts: Sequence[Cohort] = ()
) -> tuple[Exclusion, ...]:
    """The nodes with an error, and those that differ from their siblings in what can cost bandwidth or stability, be it
    that a warning of their own checks tells it: nodes with the same reasons together, the worst first, then the fewest.
    A warning that most nodes have is the site's, and excludes none."""
    reasons = _reasons(findings, cohorts)
    messages = {host: tuple(dict.fromkeys((one.id, one.message) for one in own)) for host, own in reasons.items()}
    listed = []
    for why, nodes in grouped((messages[host], host) for host in hosts if host in messages).items():
        worst = max(reason.severity for reason in reasons[nodes[-1]])
        lost = max(reason.cost.gbs_lost or 0.0 for reason in reasons[nodes[-1]])
        listed.append(Exclusion(tuple(nodes), why, worst, lost or None))
    return tuple(sorted(listed, key=lambda exclusion: (-exclusion.severity, len(exclusion.nodes), exclusion.nodes)))


def _reasons(findings: Sequence[Finding], cohorts: Sequence[Cohort]) -> dict[str, list[Finding]]:
    """By node, what excludes it: its errors, and warnings that are its own and not the site's."""
    outliers = (outlier for cohort in cohorts for outlier in cohort.outliers)
    explained = (outlier for outlier in outliers if outlier.explained_by and matters(outlier))
    pairs = {(host, outlier.explained_by) for outlier in explained for host in outlier.nodes}
    reasons: dict[str, list[Finding]] = {}
    for finding in findings:
        for host in finding.where.nodes if finding.id != SPLITS else ():
            differs = finding.id == DIFFERS or (host, finding.id) in pairs
            if finding.severity is Severity.ERROR or (differs and finding.severity is Severity.WARNING):
                reasons.setdefault(host, []).append(finding)
    return reasons


def _folded(troubles: Iterable[Trouble]) -> tuple[Trouble, ...]:
    """The same line of several nodes is one, with the number of nodes."""
    alike = grouped(((trouble.what, trouble.text), trouble) for trouble in troubles)
    return tuple(replace(own[0], count=len({trouble.subject for trouble in own})) for own in alike.values())
