"""Every table, one line each, by the kind of result that has it: tables.toml says what it holds, here is what its rows
are read from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from topodiag.api.tables import items
from topodiag.api.tables.interface import Table, columns
from topodiag.report.gaps import gaps_of
from topodiag.words.own_data import own_data


def _tables(kind: str, sources: Mapping[str, Callable[[Any], Iterable[Any]]]) -> dict[str, Table]:
    """The tables of a kind of results by what gives what their rows are read from."""
    held = own_data("api/tables/tables")[kind]
    return {
        name: Table(held[name]["about"], columns(held[name]["columns"]), source) for name, source in sources.items()
    }


DIAGNOSIS: Mapping[str, Table] = _tables("diagnosis", {
    "findings": lambda result: result.findings,
    "outcomes": lambda result: result.outcomes,
    "nodes": items.nodes,
    "gpus": items.of_nodes("gpus"),
    "nics": items.of_nodes("nics"),
    "links": items.of_nodes("links"),
    "paths": items.of_nodes("paths"),
    "matrix": items.matrix,
    "ranks": items.of_jobs("ranks"),
    "communicators": items.of_jobs("comms"),
    "connections": items.of_jobs("connections"),
    "rings": items.of_jobs("rings"),
    "events": items.of_jobs("events"),
    "settings": items.of_jobs("settings"),
    "choices": items.of_jobs("choices"),
    "steps": items.of_jobs("steps"),
    "benchmarks": items.benchmarks,
    "benchmark_sizes": items.benchmark_sizes,
    "inputs": lambda result: result.inputs,
    "not_observed": gaps_of,
    "unexplained": lambda result: items.parts("result.Unexplained", result.unexplained),
    "unread": lambda result: result.unread,
    "causes": items.causes,
    "consequences": items.consequences,
    "states": items.of_verdict("jobs", "diagnose.JobState"),
    "ruled_out": items.of_verdict("ruled_out", "diagnose.RuledOut"),
    "next_evidence": items.of_verdict("next_evidence", "diagnose.NextEvidence"),
    "hosts": lambda result: items.parts("diagnose.Host", result.identity.hosts),
    "timeline": lambda result: items.parts("diagnose.Moment", result.timeline.moments),
    "clocks": lambda result: items.parts("diagnose.Clock", result.timeline.clocks),
})  # fmt: skip
PREDICTION: Mapping[str, Table] = _tables("prediction", {
    "paths": items.predicted_paths,
    "graphs": items.graphs,
    "channels": items.channels,
    "tuning": items.tuning,
    "choices": lambda answer: answer.choices,
    "terms": lambda answer: answer.terms,
})  # fmt: skip
_LAYOUT = replace(
    DIAGNOSIS["findings"], about="Faults of the layout, worst first.", items=lambda answer: answer.findings
)
AUDIT: Mapping[str, Table] = {"findings": _LAYOUT} | _tables("audit", {
    "dimensions": items.dimensions,
    "groups": lambda answer: answer.document["groups"],
    "map": lambda made: made.document["map"],
})  # fmt: skip
SOLUTION: Mapping[str, Table] = {"findings": _LAYOUT} | _tables("solution", {
    "dimensions": items.dimensions,
    "splits": lambda made: made.document["splits"],
}) | {"map": AUDIT["map"]}  # fmt: skip
TABLES: Mapping[str, Mapping[str, Table]] = {
    "diagnose, scan, logs, bench": DIAGNOSIS,
    "predict": PREDICTION,
    "audit": AUDIT,
    "solve": SOLUTION,
}
"""By the functions whose results have these tables."""
