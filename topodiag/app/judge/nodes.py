"""The nodes of a case, judged; against an earlier capture of one of them, too."""

from __future__ import annotations

from topodiag.app.judge.results import judged_result
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.checks.spoken import told
from topodiag.checks.troubles.node import troubles
from topodiag.evidence.intake.reader import ReadNode
from topodiag.model.result import Case, Result


def judged(case: Case, earlier: ReadNode | None = None, path: str = "") -> Result:
    """The nodes of a case, judged; against an `earlier` capture of one of them, read from `path`, where there is one.
    Raises InputError where that is of another node."""
    outcomes = run(Subject.NODE, case.nodes)
    if earlier is not None:
        from topodiag.app.judge.since import judged_since  # noqa: PLC0415 - facts of a node, which few scans need

        outcomes += judged_since(case.nodes, earlier, path)
    return told(judged_result(case, outcomes, unexplained=troubles(case.nodes, outcomes)))
