"""A case, judged: its nodes, against an earlier capture of one of them, too (`topodiag scan --since`); its jobs; or all
of it, each part by its checks, and the verdict that joins them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from topodiag.checks.registry import Subject, ids_of
from topodiag.checks.run import fold, run
from topodiag.checks.spoken import told
from topodiag.checks.troubles.node import troubles
from topodiag.model.debug_settings import HANG, SUBSYSTEMS, next_time
from topodiag.model.errors import InputError
from topodiag.model.finding import Finding, Outcome
from topodiag.model.nccl_versions import assumption, is_newer
from topodiag.model.node import Node
from topodiag.model.provenance import NotObserved
from topodiag.model.result import Case, Identity, Result
from topodiag.words.units import fold_hosts

if TYPE_CHECKING:
    from topodiag.app.judge.runs import BenchOptions
    from topodiag.evidence.intake.reader import ReadNode
    from topodiag.model.job import Job
    from topodiag.placement.job_groups import PlacedJobs


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


def judged_nodes(case: Case, earlier: ReadNode | None = None, path: str = "") -> Result:
    """The nodes of a case, judged; against an `earlier` capture of one of them, read from `path`, where there is one.
    Raises InputError where that is of another node."""
    outcomes = run(Subject.NODE, case.nodes)
    if earlier is not None:
        outcomes += _since(case.nodes, earlier, path)
    return told(judged_result(case, outcomes, unexplained=troubles(case.nodes, outcomes)))


def _since(nodes: Sequence[Node], earlier: ReadNode, path: str) -> tuple[Outcome, ...]:
    """What the checks of a history say of the nodes of which `earlier` is a capture, by their GPUs and network cards,
    else by name. Raises InputError where it is of none of them, or was made later."""
    from topodiag.checks.fleet.changed import same_machine  # noqa: PLC0415 - facts of a node, which few scans need
    from topodiag.fleet.history.capture import capture_of, pair, same_host  # noqa: PLC0415 - as above

    before = capture_of(earlier.node, path, earlier.inputs)
    node_histories = []
    for node in nodes:
        now = capture_of(node, node.host)
        if same_machine(before.facts, now.facts) or same_host(node.host, earlier.node.host):
            if now.time_s is not None and before.time_s is not None and now.time_s < before.time_s:
                hint = f"topodiag scan {path} --since the other one"
                what = f"was captured on {before.day}, later than what is scanned ({now.day})"
                raise InputError(path, what, hint=hint)
            node_histories.append(pair(before, now, "capture given"))
    if not node_histories:
        names = fold_hosts([node.host for node in nodes])
        raise InputError(
            path, f"is a capture of {earlier.node.host}, and the evidence is of {names}",
            hint="--since takes an earlier capture of the same node",
        )  # fmt: skip
    # Two captures of one boot show which links fell; of two boots nobody can ask that.
    return run(Subject.HISTORY, node_histories, () if any(history.grown for history in node_histories) else ("FLT003",))


def judged_jobs(case: Case) -> Result:
    """The jobs of a case, judged, and how the worst of them is."""
    from topodiag.app.judge.placing import seats  # noqa: PLC0415 - prices, which only jobs of known groups need
    from topodiag.checks.troubles.job import troubles as troubles_of_jobs  # noqa: PLC0415 - numpy, which only jobs need
    from topodiag.verdict.judge import state_of_jobs  # noqa: PLC0415 - the verdict, which nodes alone do not have

    outcomes = (*run(Subject.JOB, case.jobs), *seats(case)[0])
    whole = replace(case, not_observed=(*case.not_observed, *not_logged(case.jobs)))
    result = told(judged_result(whole, outcomes, unexplained=troubles_of_jobs(case.jobs, outcomes)))
    return replace(result, state=state_of_jobs(result, case))


ONCE = ("INIT", "ENV", "NET", "GRAPH", "TUNING")
"""Subsystems that print something in every run that has them on, so that silence says that they were off."""
OF_RCCL = (
    "RCCL takes its rings from its own tables and engines (Rome models, MSCCL), so its log is not"
    " compared with the model of the search"
)


def not_logged(jobs: Sequence[Job]) -> list[NotObserved]:
    """What no line tells because its subsystem was off, and what to set next time."""
    from topodiag.checks.shared.job.text import wants_operations  # noqa: PLC0415 - numpy, which only jobs need

    versions = sorted({version for job in jobs for version in job.nccl_versions if is_newer(version)})
    gaps = [NotObserved(f"what is new in NCCL {version}", assumption(version)) for version in versions]
    if any(job.library == "RCCL" for job in jobs):
        gaps.append(NotObserved("what RCCL decides by rules of its own", OF_RCCL))
    for job in jobs:
        if not job.processes:
            continue
        hang = wants_operations(job)
        why = f"not logged: {next_time(hang=hang)} (topodiag env prints all of it)"
        gaps += [NotObserved(f"{name}: {SUBSYSTEMS[name]}", why) for name in ONCE if name not in job.subsystems]
        if hang:
            gaps.append(NotObserved(f"{HANG}: which rank entered which operation", why))
    return gaps


def judged_case(
    case: Case,
    trained: Mapping[str, Any] | None = None,
    *,
    options: BenchOptions | None = None,
    machine: Case | None = None,
) -> Result:
    """The case with its verdict. `trained` are the options of `topodiag model step` by name, None where nobody says
    what is trained, empty where nothing is. `options` say more of measured runs, and `machine` is theirs where another
    one is named than the case shows."""
    case = _beside_model(case)
    of_nodes = run(Subject.NODE, case.nodes)
    of_jobs: tuple[Outcome, ...] = ()
    unexplained = troubles(case.nodes, of_nodes)
    silent: list[NotObserved] = []
    runs = Result()
    if case.runs:
        from topodiag.app.judge.runs import judged_runs  # noqa: PLC0415 - numpy, which only runs need

        runs = judged_runs(case, of_nodes, options, machine)
    of_runs = runs.outcomes
    if len(case.jobs) > len(case.jobs_of_runs):
        from topodiag.checks.troubles.job import troubles as troubles_of_jobs  # noqa: PLC0415 - numpy, which only jobs need

        of_jobs = run(Subject.JOB, case.jobs)
        unexplained += troubles_of_jobs(case.jobs, of_jobs)
        silent = not_logged(case.jobs)
        # Jobs in the output of a run were judged above with all others.
        of_runs = tuple(outcome for outcome in of_runs if outcome.check in ids_of(Subject.BENCH))
    placed = _placed(case, trained)
    seats, gaps, steps = (placed.outcomes, placed.not_observed, placed.steps) if placed is not None else ((), (), ())
    joined = (*of_nodes, *of_jobs, *of_runs, *seats)
    result = judged_result(
        replace(case, not_observed=(*case.not_observed, *silent, *runs.not_observed, *gaps)),
        tuple(_by_host_names(outcome, case.identity) for outcome in joined),
        progress=case.progress,
        benchmarks=runs.benchmarks,
        unexplained=tuple(dict.fromkeys(unexplained)),
        identity=case.identity,
        timeline=case.timeline,
    )
    from topodiag.verdict.judge import judge  # noqa: PLC0415 - the verdict, which nodes alone do not have

    result = replace(result, verdict=judge(result, case, steps))
    if case.runs:
        from topodiag.app.judge.runs import with_gates  # noqa: PLC0415 - as above

        result = with_gates(result)
    return told(result)


def _beside_model(case: Case) -> Case:
    """The case with what the Inspector measured beside NCCL's model of the machines."""
    if not any(job.machines and job.inspection is not None for job in case.jobs):
        return case
    from topodiag.expect.inspector import beside_model  # noqa: PLC0415 - numpy, for the Inspector only

    beside = (replace(job, inspection=beside_model(job)) if job.machines else job for job in case.jobs)
    return replace(case, jobs=tuple(beside))


def _placed(case: Case, trained: Mapping[str, Any] | None) -> PlacedJobs | None:
    """The jobs on their seats, None where there are none."""
    if not case.layouts and not any(job.world_size > 1 for job in case.jobs):
        return None
    from topodiag.app.judge.placing import place_jobs  # noqa: PLC0415 - the model of a step, which only jobs need

    return place_jobs(case, trained)


def _by_host_names(outcome: Outcome, identity: Identity) -> Outcome:
    """The outcome with the hosts of its findings called as the case calls them. Captures of one host that were judged
    one by one (`n1#2`) keep their numbers."""
    findings = tuple(_on_machines(finding, identity) for finding in outcome.findings)
    return outcome if findings == outcome.findings else replace(outcome, findings=findings)


def _on_machines(finding: Finding, identity: Identity) -> Finding:
    names = (name if "#" in name else identity.name(name) for name in finding.where.nodes)
    return replace(finding, where=replace(finding.where, nodes=tuple(dict.fromkeys(names))))
