"""The jobs of a diagnosis on their seats: their training steps, as far as the layout is known, and the checks of
layouts where a launcher's file or the network of the cluster lies beside the logs.

Both are those of `topodiag place`: one cluster, one model of the traffic, one price.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from topodiag.app.case.cluster import cluster_of_facts, open_cluster
from topodiag.app.case.place_options import PlaceOptions
from topodiag.app.case.placement import LayoutRead, Placement, opened_on
from topodiag.app.case.system import system_of
from topodiag.app.judge.placing import audited, talk_for
from topodiag.app.judge.trained import trained_of_log
from topodiag.cost.questions import ModelError
from topodiag.model.dimensions import NAMES, ORDER
from topodiag.model.errors import TopodiagError
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
from topodiag.model.job import Job
from topodiag.model.job_wires import wires_of
from topodiag.model.layout import Layout
from topodiag.model.place_map import RankHosts
from topodiag.model.provenance import NotObserved
from topodiag.model.result import Case
from topodiag.placement.groups import USUAL, Talk, gpu_of, other_talks
from topodiag.placement.job_groups import NO_ROLES, layout_of_job
from topodiag.placement.job_step import JobStep, PlacedJobs, model_step
from topodiag.placement.rank_nodes import UNSEEN, RankNodes, rank_nodes_of, ranks_of

SHOWN = 4
"""Lines that place ranks, of a finding about where they sit."""
NOT_PLACED = "where ranks are meant to sit"
HIGH = Confidence.HIGH
NOT_PRICED = "what a cause takes of a training step"


class TrainingError(TopodiagError):
    """What is trained does not fit the layout of the job."""


def seats(case: Case, trained: Mapping[str, Any] | None = None) -> tuple[list[Outcome], list[NotObserved]]:
    """The checks of layouts, on each job and launcher's file; and what could not be judged of these."""
    outcomes: list[Outcome] = []
    missing: list[NotObserved] = []
    serves, trained = trained is not None and not trained, trained or None
    met = False
    for read in _layouts(case):
        of_file = read.declared is not None or read.job is None
        met = met or of_file
        try:
            judged = _audited(read, case, trained)
            outcomes += map(_without_step, judged) if serves else judged
        except TopodiagError as error:
            if of_file or case.clusters:  # else nobody asked about the layout
                missing.append(NotObserved(NOT_PLACED, str(error)))
    if case.layouts and not (met and outcomes) and not missing:
        missing.append(NotObserved(NOT_PLACED, f"{case.layouts[0].name}: {NO_TALK}"))
    return outcomes, missing


def place_jobs(case: Case, trained: Mapping[str, Any] | None = None) -> PlacedJobs:
    """What the seats of the case's ranks say. `trained` are the options of `topodiag model step` by name, None where
    nobody says what is trained, empty where nothing is: an engine that serves has no training step. Raises
    TrainingError where these do not fit the layout."""
    serves = trained is not None and not trained
    steps: list[JobStep] = []
    missing: list[NotObserved] = []
    for job in () if serves else _jobs(case):
        try:
            steps += _step(job, case, trained or None)
        except TrainingError:
            raise
        except TopodiagError as error:
            if case.sizes is not None:
                missing.append(NotObserved(NOT_PRICED, str(error)))
    outcomes, unplaced = seats(case, trained)
    return PlacedJobs(tuple(steps), tuple(outcomes), tuple(dict.fromkeys((*missing, *unplaced))))


NO_TALK = "which ranks form groups is not known: give the parallel sizes (--tp, --pp, ...), or the log of the job"


def _jobs(case: Case) -> Iterator[Job]:
    """Those that train."""
    measured = set(map(id, case.jobs_of_runs))
    return (job for job in case.jobs if job.world_size > 1 and id(job) not in measured)


# --- the step ----------------------------------------------------------------------------------------------------


def _step(job: Job, case: Case, trained: Mapping[str, Any] | None) -> tuple[JobStep, ...]:
    """The training step of a job; none where its layout or its GPUs are not known. Raises TopodiagError."""
    layout, source = _layout_of(job, case)
    if layout is None:
        return ()
    layout = layout.for_world(job.world_size)
    opened = replace(_opened(LayoutRead(ranks_of(job, job.name), job), case, healthy=True), layout=layout)
    model = "given"
    if trained is None and (logged := _logged_talk(job, opened)) is not None:
        first, model, given = logged, "from the log", True
    else:
        given = trained is not None
        try:
            first = talk_for(opened, trained)
        except ModelError as error:
            raise (TrainingError(error.message, hint=error.hint) if given else error) from None
    others = () if given else other_talks(opened.cluster, layout, opened.world)
    gpu = gpu_of(opened.cluster)
    if opened.assignment is None or gpu is None:
        return ()
    named = (("", first),) if given else ((USUAL.name, first), *others)
    steps = (model_step(name, opened.cluster, talk, opened.assignment) for name, talk in named)
    sizes = " x ".join(f"{name} {size}" for name, size in layout.all_sizes.items() if size > 1)
    models = tuple(step for step in steps if step is not None)
    return (JobStep(job.name, models, sizes, source, given=given, model=model, sm=gpu.sm),)


def _layout_of(job: Job, case: Case) -> tuple[Layout | None, str]:
    """The layout of a job and where it is from: declared, of its communicators, or of the arguments in its log."""
    if case.sizes is not None:
        return case.sizes, "as declared"
    seen = layout_of_job(job)
    if seen is not None or job.training is None or not job.training.sizes:
        return seen, "by its log"
    if job.training.world not in (0, job.world_size):
        return None, ""  # arguments of another job
    sizes = job.training.sizes
    return Layout(**{name: sizes[name] for name in NAMES if name in sizes}, order=ORDER), "by the arguments in its log"


def _logged_talk(job: Job, placement: Placement) -> Talk | None:
    """Who says how much in the model that the log describes; None where it does not, or does not fit the layout."""
    if job.training is None or not job.training.options or job.training.world not in (0, job.world_size):
        return None
    try:
        return talk_for(placement, trained_of_log(job.training))
    except TopodiagError:
        return None


# --- the checks of layouts ---------------------------------------------------------------------------------------


def _layouts(case: Case) -> Iterator[LayoutRead]:
    """What is to be judged: each job where it ran, beside a launcher's file of its hosts, and a file alone whose sizes
    are declared. Of several launcher's files nobody knows which one was used."""
    declared = _by_host_names(case.layouts[0], case) if len(case.layouts) == 1 else None
    met = False
    for job in _jobs(case):
        try:
            ranks = ranks_of(job, job.name)
        except TopodiagError:
            continue
        own = declared if declared is not None and _is_of(declared, ranks, case) else None
        met = met or own is not None
        yield LayoutRead(_by_host_names(ranks, case) or ranks, job, own)
    if declared is not None and not met and case.sizes is not None:
        yield LayoutRead(declared)


def _by_host_names(ranks: RankHosts, case: Case) -> RankHosts | None:
    """The ranks with their hosts called as the case calls them; None where two of these are one machine."""
    hosts = tuple(case.identity.name(host) for host in ranks.hosts)
    return replace(ranks, hosts=hosts) if len(set(hosts)) == len(hosts) else None


def _is_of(declared: RankHosts, ranks: RankHosts, case: Case) -> bool:
    """Whether a launcher's file is of the job that these ranks are of: it has all its hosts."""
    return {case.identity.name(host) for host in ranks.hosts} <= set(declared.hosts)


def _audited(read: LayoutRead, case: Case, trained: Mapping[str, Any] | None) -> tuple[Outcome, ...]:
    """The checks of layouts, as `topodiag place audit` runs them. Nothing where nobody says who talks to whom."""
    opened = _opened(read, case)
    layout = case.sizes.for_world(opened.world) if case.sizes is not None else None
    talk = talk_for(replace(opened, layout=layout), trained if layout is not None else None)
    if opened.assignment is None or not _is_known(talk):
        return ()
    _, outcomes = audited(opened, talk)
    return outcomes if read.job is None else tuple(_of(outcome, read.job) for outcome in outcomes)


def _without_step(outcome: Outcome) -> Outcome:
    """The outcome of a job that has no training step, whose share a finding could cost."""
    bare: dict[str, Any] = {"step_share": None, "communication_share": None}
    return replace(outcome, findings=tuple(replace(one, cost=replace(one.cost, **bare)) for one in outcome.findings))


def _is_known(talk: Talk) -> bool:
    return bool(talk.demands) and NO_ROLES not in talk.assumed


def _of(outcome: Outcome, job: Job) -> Outcome:
    """The outcome with its findings at the job that they are of, and the lines of its log that place their ranks."""
    return replace(outcome, findings=tuple(_shown(finding, job) for finding in outcome.findings))


def _shown(finding: Finding, job: Job) -> Finding:
    ranks = [rank for rank in finding.where.ranks or sorted(job.by_rank) if rank in job.by_rank]
    placed = [line for rank in ranks if (line := job.by_rank[rank].origin) is not None]
    sure = min((group.role_sure for group in job.communicators if group.role_sure > Confidence.LOW), default=HIGH)
    return replace(
        finding,
        where=replace(finding.where, jobs=(job.name,)),
        severity=finding.severity if sure is HIGH else min(finding.severity, Severity.WARNING),
        confidence=min(finding.confidence, sure),
        evidence=finding.evidence or tuple(placed[:SHOWN]),
    )


# --- the cluster -------------------------------------------------------------------------------------------------


def _opened(read: LayoutRead, case: Case, *, healthy: bool = False) -> Placement:
    """Ranks on the cluster that the evidence describes, else on nodes of the system that captures show. A `healthy` one
    is not made of sockets because the job fell back to them."""
    assert read.ranks is not None  # noqa: S101 - the callers have them
    system = system_of(case.nodes)
    for facts in case.clusters:
        if set(read.ranks.hosts) <= set(facts.nodes):
            seen = RankNodes(system=system) if system else UNSEEN
            return opened_on(cluster_of_facts(facts, PlaceOptions(), seen), read)
    seen = rank_nodes_of(read.ranks, read.job)
    if healthy and read.job is not None and wires_of([read.job]).kind == "sockets":
        seen = replace(seen, nics=None, nics_said="")
    try:
        cluster = open_cluster(PlaceOptions(), replace(seen, system=system) if system else seen)
    except ModelError:
        if healthy:
            raise  # a step needs the rate of the NICs
        cluster = open_cluster(PlaceOptions(), seen)  # which groups are split does not depend on it
    return opened_on(cluster, read)
