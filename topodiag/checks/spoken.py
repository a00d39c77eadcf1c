"""An answer in the words of the maker of the GPUs: links, library and commands are spelt as their owner knows them,
a check of parts that the maker does not build does not apply, and what the answer quotes stays as it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from topodiag.model.finding import Finding, Input, Outcome, Status
from topodiag.model.maker import makers_of_result, run_maker
from topodiag.model.provenance import Origin
from topodiag.model.result import Result
from topodiag.words.dialect import AMD, NVIDIA, Dialect, Maker

T = TypeVar("T")

_STEPS = frozenset({"fix", "confirm"})
"""Commands and steps: one without a counterpart is left out."""
_REASONS = frozenset({"why"})
_AS_THEY_ARE = frozenset({"name", "where", "source", "path", "run", "found", "not_explained", "unrelated"})
"""Names, places, and what is quoted or was put into words before."""
_OTHERS = (Finding, Origin, Input)
"""Values that have a dialect of their own, or are of the evidence."""


def spoken(outcome: Outcome, dialect: Dialect) -> Outcome:
    """The outcome in this dialect."""
    if not dialect.phrases:
        return outcome
    if outcome.check in dialect.checks:
        why = dialect.checks[outcome.check]
        return replace(outcome, status=Status.NOT_APPLICABLE, findings=(), why=why, coverage=None)
    findings = tuple(said(finding, dialect) for finding in outcome.findings)
    return replace(outcome, why=dialect.reason(outcome.why), findings=findings)


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


def retold(value: T, dialect: Dialect) -> T:
    """A value of the model with all its sentences in this dialect."""
    return _retold(value, dialect) if dialect.phrases else value


def _retold(value: Any, dialect: Dialect) -> Any:
    if isinstance(value, str):
        return dialect.say(value)
    if isinstance(value, tuple):
        return tuple(_retold(item, dialect) for item in value)
    if isinstance(value, Mapping):
        return {key: _retold(item, dialect) for key, item in value.items()}
    if not is_dataclass(value) or isinstance(value, (type, *_OTHERS)):
        return value
    values: dict[str, Any] = {}
    for field in fields(value):
        held = getattr(value, field.name)
        if field.name in _STEPS:
            values[field.name] = dialect.steps(held)
        elif field.name in _REASONS:
            values[field.name] = dialect.reason(held)
        elif field.name not in _AS_THEY_ARE:
            values[field.name] = _retold(held, dialect)
    return replace(value, **values)


def told(result: Result) -> Result:
    """The result with what no check says, reasons of gaps and of harmless lines, and what was made of measured runs, in
    the words of those whose evidence it is. Findings and the verdict have theirs before."""
    makers = makers_of_result(result)
    if Maker.AMD not in makers:
        return result
    runs = tuple(retold(run, AMD if run_maker(run.run) is Maker.AMD else NVIDIA) for run in result.benchmarks)
    if makers != {Maker.AMD}:
        return replace(result, benchmarks=runs)
    return replace(
        result,
        benchmarks=runs,
        not_observed=tuple(dict.fromkeys(retold(gap, AMD) for gap in result.not_observed)),
        unexplained=tuple(replace(trouble, harmless=AMD.reason(trouble.harmless)) for trouble in result.unexplained),
    )
