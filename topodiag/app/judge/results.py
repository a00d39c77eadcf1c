"""What the checks say of a case, as the result that reports print."""

from __future__ import annotations

from typing import Any

from topodiag.checks.run import fold
from topodiag.model.finding import Outcome
from topodiag.model.result import Case, Result


def judged_result(case: Case, outcomes: tuple[Outcome, ...], **more: Any) -> Result:
    """What was read of the case, with its findings in the order of causes; `more` are further fields of the result."""
    findings = fold(outcomes)
    if findings:
        from topodiag.verdict.causes import arranged  # noqa: PLC0415 - rules, where there is anything to relate

        findings = arranged(findings, case)
    return Result(
        inputs=case.inputs,
        nodes=case.nodes,
        jobs=case.jobs,
        outcomes=outcomes,
        findings=findings,
        not_observed=tuple(dict.fromkeys(case.not_observed)),
        unread=case.unread,
        **more,
    )
