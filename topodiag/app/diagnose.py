"""The use case of `topodiag diagnose`: all evidence of any mix of paths, every check that applies, one result.

>>> import topodiag
>>> result = topodiag.diagnose(["fixture:dgx-h100-gpu3-12of18-nvlink"])
>>> [finding.id for finding in result.findings]
['NVL001']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topodiag.app.collecting import few_collections
from topodiag.app.machine import Machine, lacking, only
from topodiag.app.opening import stream_for
from topodiag.app.scan import PART, judged, node_case
from topodiag.checks.registry import Subject, ids_of
from topodiag.checks.run import fold
from topodiag.evidence.intake.captures import captures
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.kinds import NODE_KINDS, Kind
from topodiag.evidence.intake.pieces import STDIN, Intake, Piece, folded, refusal
from topodiag.model.case import Case
from topodiag.model.errors import InputError
from topodiag.model.provenance import NotObserved
from topodiag.model.result import Result
from topodiag.verdict.order import arranged

LOGGED = frozenset({Kind.NCCL_LOG, Kind.JOB_OUTPUT, Kind.FLIGHT, Kind.PARQUET, Kind.SAVED_FACTS, Kind.RAS})
"""Kinds from which jobs are rebuilt."""
JUDGED = frozenset({*NODE_KINDS, *LOGGED, Kind.NCCL_TESTS})


@few_collections()
def diagnose(paths: Sequence[str]) -> Result:
    """Judge all evidence at these paths: nodes, jobs, and measured runs. What no check judges is left aside with the
    command that reads it. Raises InputError where nothing can be judged."""
    intake = gather(paths, stdin=stream_for(paths))
    if not intake.of(*JUDGED):
        raise refusal(intake, JUDGED, "evidence that can be judged")
    nodes: list[Result] = []
    refused: list[NotObserved] = []
    try:
        nodes = _nodes(intake)
    except InputError as error:  # one text that only looked like a tool's output costs itself, not the diagnosis
        if not intake.of(*LOGGED, Kind.NCCL_TESTS):
            raise
        refused = [NotObserved(PART, str(error))]
    results = [*nodes, *_jobs_and_runs(intake, nodes)]
    taken = {item.path for each in results for item in each.inputs}
    aside = [each for each in intake.beside(*JUDGED) if each.path not in taken]
    return _joined(results, [*refused, *(NotObserved(PART, note) for note in folded(aside))])


def _joined(results: Sequence[Result], gaps: Sequence[NotObserved]) -> Result:
    """The parts of the diagnosis as one result, with what no part read."""
    outcomes = tuple(outcome for each in results for outcome in each.outcomes)
    nodes = tuple(node for each in results for node in each.nodes)
    jobs = tuple(job for each in results for job in each.jobs)
    return Result(
        inputs=tuple(item for each in results for item in each.inputs),
        nodes=nodes,
        outcomes=outcomes,
        findings=arranged(fold(outcomes), Case(nodes=nodes, jobs=jobs)),
        not_observed=tuple(dict.fromkeys((*(gap for each in results for gap in each.not_observed), *gaps))),
        unread=tuple(dict.fromkeys(line for each in results for line in each.unread)),
        jobs=jobs,
        benchmarks=tuple(run for each in results for run in each.benchmarks),
        unexplained=tuple(dict.fromkeys(line for each in results for line in each.unexplained)),
    )


def _nodes(intake: Intake) -> list[Result]:
    """The nodes, without a word about what other parts of the diagnosis read."""
    if not captures(intake).captures:
        return []
    own = replace(intake, pieces=tuple(p for p in intake.pieces if p.is_any(NODE_KINDS) or p.kinds == (Kind.TEXT,)))
    return [judged(node_case(replace(own, aside=())))]


def _jobs_and_runs(intake: Intake, nodes: Sequence[Result]) -> list[Result]:
    """Jobs of logs, and runs of nccl-tests. A run is a job of its own: what NCCL logged in its output is judged beside
    the other jobs, which show what the same nodes can do."""
    tables = [piece for piece in intake.of(Kind.NCCL_TESTS) if piece.path != STDIN]
    logged = [piece for piece in intake.of(*LOGGED) if piece not in tables]
    runs = _runs(intake, tables, nodes)
    if not logged:
        return runs
    from topodiag.app import logs  # noqa: PLC0415 - numpy and pyarrow, which only logs need

    own = replace(intake, pieces=tuple(logged), aside=(), paths=tuple(p for p in intake.paths if p != "-"))
    if any(piece.path == STDIN for piece in logged):
        own = replace(own, paths=intake.paths)
    case = logs.job_case(own)
    beside = tuple(job for each in runs for job in each.jobs)
    judged_jobs = logs.judged(replace(case, jobs=(*case.jobs, *beside)))
    of_bench = ids_of(Subject.BENCH)
    told = [replace(each, jobs=(), outcomes=tuple(o for o in each.outcomes if o.check in of_bench)) for each in runs]
    return [judged_jobs, *told]


def _runs(intake: Intake, tables: Sequence[Piece], nodes: Sequence[Result]) -> list[Result]:
    """Runs on the machine that the nodes are, which were read and judged already."""
    if not tables:
        return []
    from topodiag.app import bench  # noqa: PLC0415 - numpy, which only runs need

    machine = Machine()
    for each in nodes:
        whole = tuple(node for node in each.nodes if not lacking(node))
        if whole:
            paths = tuple(item.path for item in each.inputs)
            machine += Machine(whole, node_outcomes=each.outcomes, paths=paths)
    return [bench.judged(only(intake, tables), beside=machine)]


__all__ = ["diagnose"]
