"""The machine-readable result: one JSON object, described by schema/result-1.0.schema.json, or where it is a diagnosis
by schema/diagnose-2.0.schema.json.

Keys and their order are stable, findings stand worst first, and equal evidence gives equal bytes: no time of the run
is in it. Unknown values are null, never 0.
"""

from __future__ import annotations

from math import isnan
from typing import TextIO

from topodiag.model.finding import Outcome
from topodiag.model.progress import Progress
from topodiag.model.result import Result, Trouble
from topodiag.report.bench.json import benchmark_facts
from topodiag.report.documents.parts import coverage_of, findings_of, gaps_of, inputs_of, tool
from topodiag.report.documents.types import result as shape
from topodiag.report.documents.types.common import DIAGNOSIS_VERSION, SCHEMA_VERSION
from topodiag.report.documents.types.job import Job
from topodiag.report.documents.write_json import RESULT_INDENT, write_json
from topodiag.report.gaps import gaps_of as gaps_of_result
from topodiag.report.gaps import unread_count
from topodiag.report.interface import Report, Style
from topodiag.report.node.json import node_facts

MAX_UNREAD = 1000
"""Unread lines given with their text; `unread_count` counts all."""


class JsonReport(Report):
    """`--format json`."""

    name = "json"

    def render(self, result: Result, stream: TextIO, style: Style) -> None:
        write_json(document(result), stream, RESULT_INDENT)


def document(result: Result) -> shape.ResultDocument:
    """The whole object; that of a diagnosis where there is a verdict."""
    parts = _parts(result)
    if result.verdict is None:
        return parts
    from topodiag.report.documents.types.verdict import DiagnosisDocument  # noqa: PLC0415 - only a diagnosis has one
    from topodiag.report.verdict.json import clocks_of, identity_of, moments_of, verdict_of  # noqa: PLC0415

    return DiagnosisDocument(
        **{name: getattr(parts, name) for name in parts.__struct_fields__} | {"schema_version": DIAGNOSIS_VERSION},
        verdict=verdict_of(result.verdict),
        identity=identity_of(result.identity),
        timeline=moments_of(result.timeline),
        clocks=clocks_of(result.timeline),
    )


def _parts(result: Result) -> shape.ResultDocument:
    return shape.ResultDocument(
        schema_version=SCHEMA_VERSION,
        tool=tool(),
        inputs=inputs_of(result.inputs),
        facts=shape.Facts(
            nodes=[node_facts(node) for node in result.nodes],
            jobs=_jobs(result),
            benchmarks=[benchmark_facts(each) for each in result.benchmarks],
        ),
        findings=findings_of(result.findings),
        outcomes=[_outcome(outcome) for outcome in result.outcomes],
        not_observed=gaps_of(gaps_of_result(result)),
        unexplained=[_unexplained(each) for each in result.unexplained[:MAX_UNREAD]],
        progress=[_progress(each) for each in result.progress],
        unread_count=unread_count(result),
        unread=[
            shape.Unread(source=line.source, line=line.line, text=line.text, why=line.why)
            for line in result.unread[:MAX_UNREAD]
        ],
    )


def _jobs(result: Result) -> list[Job]:
    runs = [each.run for each in result.benchmarks]
    if not (result.jobs or runs):
        return []
    from topodiag.report.job.measured import jobs_facts  # noqa: PLC0415 - numpy, which a scan never needs

    return jobs_facts(result.jobs, runs)


def _unexplained(line: Trouble) -> shape.Unexplained:
    return shape.Unexplained(
        what=line.what,
        text=line.text,
        subject=line.subject,
        source=line.origin.source if line.origin else None,
        line=line.origin.line if line.origin else None,
        count=line.count,
        harmless=line.harmless,
    )


def _known(seconds: float) -> float | None:
    return None if isnan(seconds) else seconds


def _progress(each: Progress) -> shape.Progress:
    return shape.Progress(
        kind=each.kind,
        number=each.number,
        source=each.first.source,
        first_line=each.first.line,
        last_line=each.last.line,
        first_s=_known(each.first_s),
        last_s=_known(each.last_s),
        longest_gap_s=_known(each.longest_gap_s),
        host=each.host,
        rank=each.rank if each.rank >= 0 else None,
    )


def _outcome(outcome: Outcome) -> shape.Outcome:
    return shape.Outcome(
        check=outcome.check,
        status=outcome.status.value,
        node=outcome.node,
        findings=len(outcome.findings),
        why=outcome.why,
        coverage=coverage_of(outcome.coverage),
    )
