"""The machine-readable result: one JSON object, described by schema/result-1.0.schema.json, or where it is a diagnosis
by schema/diagnose-2.0.schema.json.

Keys and their order are stable, findings stand worst first, and equal evidence gives equal bytes: no time of the run
is in it. Unknown values are null, never 0.
"""

from __future__ import annotations

from typing import TextIO

from topodiag.model.result import Result
from topodiag.report.bench.json import benchmark_facts
from topodiag.report.documents.from_model import RESULT_INDENT, Document, document_of, write_json
from topodiag.report.gaps import gaps_of, unread_count
from topodiag.report.interface import Style
from topodiag.report.node.json import node_facts

MAX_UNREAD = 1000
"""Unread lines given with their text; `unread_count` counts all."""


def write(result: Result, stream: TextIO, _: Style) -> None:
    """`--format json`."""
    write_json(document(result), stream, RESULT_INDENT)


def document(result: Result) -> Document:
    """The whole object; that of a diagnosis where there is a verdict."""
    facts = {
        "nodes": [node_facts(node) for node in result.nodes],
        "jobs": _jobs(result),
        "benchmarks": [benchmark_facts(benchmark) for benchmark in result.benchmarks],
    }
    return document_of(
        "result.ResultDocument" if result.verdict is None else "diagnose.DiagnosisDocument",
        result,
        facts=facts,
        not_observed=gaps_of(result),
        unexplained=result.unexplained[:MAX_UNREAD],
        unread_count=unread_count(result),
        unread=result.unread[:MAX_UNREAD],
    )


def _jobs(result: Result) -> list[Document]:
    runs = [benchmark.run for benchmark in result.benchmarks]
    if not (result.jobs or runs):
        return []
    from topodiag.report.job.json import job_facts  # noqa: PLC0415 - numpy, which a scan never needs
    from topodiag.verdict.jobs_of_runs import with_runs  # noqa: PLC0415 - as above

    return [job_facts(job) for job in with_runs(result.jobs, runs)]
