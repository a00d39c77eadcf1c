"""The nodes of a case, judged; against an earlier capture of one of them, too."""

from __future__ import annotations

from topodiag.checks.registry import Subject
from topodiag.checks.run import fold, run
from topodiag.checks.spoken import told
from topodiag.checks.troubles.node import troubles
from topodiag.evidence.intake.reader import ReadNode
from topodiag.model.case import Case
from topodiag.model.result import Result


def judged(case: Case, earlier: ReadNode | None = None, path: str = "") -> Result:
    """The nodes of a case, judged; against an `earlier` capture of one of them, read from `path`, where there is one.
    Raises InputError where that is of another node."""
    outcomes = run(Subject.NODE, case.nodes)
    if earlier is not None:
        from topodiag.app.judge.since import judged_since  # noqa: PLC0415 - facts of a node, which few scans need

        outcomes += judged_since(case.nodes, earlier, path)
    findings = fold(outcomes)
    if findings:
        from topodiag.verdict.order import arranged  # noqa: PLC0415 - rules, where there is anything to relate

        findings = arranged(findings, case)
    result = Result(
        inputs=case.inputs,
        nodes=case.nodes,
        outcomes=outcomes,
        findings=findings,
        not_observed=case.not_observed,
        unread=case.unread,
        unexplained=troubles(case.nodes, outcomes),
    )
    return told(result)
