"""A check's answer in the words of the maker of the GPUs: links, library and commands are spelt as their owner knows
them, and a check of parts that the maker does not build does not apply."""

from __future__ import annotations

from dataclasses import replace

from topodiag.model.finding import Finding, Outcome, Status
from topodiag.words.dialect import Dialect


def spoken(outcome: Outcome, dialect: Dialect) -> Outcome:
    """The outcome in this dialect."""
    if not dialect.phrases:
        return outcome
    if outcome.check in dialect.checks:
        why = dialect.checks[outcome.check]
        return replace(outcome, status=Status.NOT_APPLICABLE, findings=(), why=why, coverage=None)
    findings = tuple(said(each, dialect) for each in outcome.findings)
    return replace(outcome, why=dialect.say(outcome.why), findings=findings)


def said(finding: Finding, dialect: Dialect) -> Finding:
    """The finding in this dialect. What it quotes of the evidence stays as it stands there."""
    quotes = any(finding.observed in origin.text for origin in finding.evidence)
    return replace(
        finding,
        message=dialect.say(finding.message),
        observed=finding.observed if quotes else dialect.say(finding.observed),
        expected=dialect.say(finding.expected),
        fix=dialect.steps(finding.fix),
        cost=replace(finding.cost, text=dialect.say(finding.cost.text)),
    )


__all__ = ["said", "spoken"]
