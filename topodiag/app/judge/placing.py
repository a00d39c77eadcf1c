"""A layout on its cluster: what it costs, and where its ranks should sit; and the jobs of a diagnosis on their seats:
their training steps, as far as the layout is known, and the checks of layouts where a launcher's file or the network of
the cluster lies beside the logs.

Both are those of `topodiag place`: one cluster, one model of the traffic, one price.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from topodiag.app.case.placement import LayoutRead, PlaceError, Placement, PlaceOptions, open_placement, placement_of
from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.cost.questions import ModelError
from topodiag.evidence.intake.collected import resolve
from topodiag.model.cluster import Cluster, RankHosts, map_of
from topodiag.model.errors import TopodiagError
from topodiag.model.finding import Confidence, Finding, Outcome, Severity
from topodiag.model.job import Job
from topodiag.model.layout import NAMES, ORDER, Layout
from topodiag.model.provenance import NotObserved
from topodiag.model.result import Case
from topodiag.placement.audit import Audit, audit
from topodiag.placement.declared import DeclaredRanks, compare_layouts, price_declared
from topodiag.placement.groups import (
    USUAL,
    Talk,
    gpu_of,
    ids_by_rank,
    machine_of,
    other_talks,
    talk_of_groups,
    talk_of_layout,
    talk_of_server,
)
from topodiag.placement.job_groups import NO_ROLES, JobStep, PlacedJobs, layout_of_job, model_step, talk_of_job
from topodiag.placement.price import price_placement
from topodiag.placement.seats import by_rule, is_usable, prefer_healthy, ranks_of
from topodiag.placement.solve import Solution, Solved, node_after_node, solve
from topodiag.words.units import grouped, in_ms, percent

_ALIKE = 1e-3
"""Share by which the times of two maps differ that are the same."""


def talk_for(placement: Placement, trained: Mapping[str, Any] | None = None) -> Talk:
    """Who talks to whom, and how much: by parallel sizes, by groups, or by the communicators of a job's logs. `trained`
    are the options of `topodiag model step` by name, None where nothing is said, empty for a server. Raises
    TopodiagError."""
    cluster, job, layout = placement.cluster, placement.read.job, placement.layout
    if layout is not None:
        if not trained:
            talk = talk_of_layout if trained is None else talk_of_server
            return talk(cluster, layout, placement.world)
        return _trained(cluster, layout, placement.world, trained)
    if placement.groups:
        return talk_of_groups(cluster, placement.groups, placement.world)
    if job is not None:
        return talk_of_job(cluster, job)
    raise PlaceError("Which ranks form groups? Give parallel sizes (--tp 8 --pp 4), --groups FILE, or --log FILE.")


def _trained(cluster: Cluster, layout: Layout, world: int, trained: Mapping[str, Any]) -> Talk:
    from topodiag.cost.training import peak_of, work_of  # noqa: PLC0415 - the step model, for this question only

    peak = peak_of(machine_of(cluster, world), trained["precision"], trained["peak_tflops"])
    work = work_of(trained, layout.for_world(world).dp, peak)
    talk = talk_of_layout(cluster, layout, world, work)
    note = f"computation reaches {percent(work.reached)} of {peak.tflops:g} TFLOPS ({peak.source})"
    return replace(talk, assumed=(*talk.assumed, note))


# --- the answers ----------------------------------------------------------------------------------------------


def audited(placement: Placement, talk: Talk) -> tuple[Audit, tuple[Outcome, ...]]:
    """A layout judged, beside the one that was declared where both were read. Without one ranks are numbered node by
    node. Raises AuditError."""
    cluster = placement.cluster
    assignment = placement.assignment or by_rule(cluster, "block", placement.world)
    judged = replace(audit(cluster, talk, assignment), declared=_declared(placement.read, cluster, talk))
    return judged, run(Subject.LAYOUT, [judged])


BLOCKS = ("hostfile", "mpich", "torchrun")
"""Launchers that fill one node after the other: their ranks are consecutive on each."""


def solve_placement(options: PlaceOptions, trained: Mapping[str, Any] | None = None, *, launcher: str = "") -> Solved:
    """A map from ranks to nodes and GPUs that makes a step wait least, beside the layout given. `launcher` is a format
    of `place emit`: the map is one that this launcher can take. Raises TopodiagError."""
    placement = open_placement(options)
    talk = talk_for(placement, trained)
    cluster, given = placement.cluster, placement.assignment is not None
    declared = _declared(placement.read, cluster, talk)
    if declared is not None and declared.differs:
        note = f"the layout given is where ranks ran: {declared.difference} (topodiag place audit names them)"
        cluster = replace(cluster, notes=(*cluster.notes, note))
    before = placement.assignment or by_rule(cluster, "block", talk.world)
    cluster = prefer_healthy(cluster, talk.world, _faults_of(options.bundles, placement.read.job))
    solution = solve(cluster, talk.demands, talk.world, at_most=before if is_usable(cluster, before) else None)
    groups = ids_by_rank(talk)
    place = map_of(cluster, solution.assignment, groups)
    if launcher in BLOCKS and not place.consecutive:
        free, solution = solution, node_after_node(cluster, talk.demands, solution)
        cluster = replace(cluster, notes=(*cluster.notes, *_dearer(launcher, free, solution)))
        place = map_of(cluster, solution.assignment, groups)
    cost = price_placement(cluster, talk.demands, before)
    beside = "the layout given" if given else "node by node"
    return Solved(cluster, talk, solution, place, groups, before, cost, beside, launcher)


def _dearer(launcher: str, free: Solution, solution: Solution) -> list[str]:
    """What it costs that the launcher numbers ranks node after node; nothing where it costs nothing."""
    now, best = solution.cost.step_us / 1000, free.cost.step_us / 1000
    if now <= best * (1 + _ALIKE):
        return []
    words = f"{launcher} numbers ranks node after node: a step waits {in_ms(now * 1000)}, and {in_ms(best * 1000)} with"
    return [f"{words} slurm-hostfile or rankfile, which take any order"]


def _declared(read: LayoutRead, cluster: Cluster, talk: Talk) -> DeclaredRanks | None:
    """The launcher's file beside the log of the job, None where not both are given."""
    if read.ranks is None or read.declared is None:
        return None
    declared = compare_layouts(read.declared, read.ranks)
    return replace(declared, step_us=price_declared(declared, read.declared, cluster, talk))


_HARDWARE = ("GPU", "NVL", "PCI", "NIC", "TOP", "GDR", "HST")
"""Families whose findings in a log tell of a node, not of the job."""


def _faults_of(bundles: Sequence[str], job: Job | None) -> dict[str, tuple[str, ...]]:
    """By host the ids of its errors. Raises TopodiagError where a bundle's path holds none, or a worker dies."""
    pairs: list[tuple[str, str]] = []
    if bundles:
        from topodiag.fleet.nodes import read_fleet  # noqa: PLC0415 - the checks of nodes, for bundles only

        for node in read_fleet([resolve(path) for path in bundles]).nodes:
            host = node.host.partition("#")[0]  # numbered where several machines have the name
            pairs += [(host, finding.id) for finding in node.findings if finding.severity is Severity.ERROR]
    if job is not None:
        findings = (finding for outcome in run(Subject.JOB, [job]) for finding in outcome.findings)
        errors = (one for one in findings if one.severity is Severity.ERROR and one.id.startswith(_HARDWARE))
        pairs += [(host, error.id) for error in errors for host in error.where.nodes]
    return {host: tuple(dict.fromkeys(ids)) for host, ids in grouped(pairs).items()}


SHOWN = 4
"""Lines that place ranks, of a finding about where they sit."""
NOT_PLACED = "where ranks are meant to sit"


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
                missing.append(NotObserved("what a cause takes of a training step", str(error)))
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
    opened = replace(placement_of(LayoutRead(ranks_of(job, job.name), job), case, healthy=True), layout=layout)
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
        return talk_for(placement, job.training.trained)
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
    opened = placement_of(read, case)
    layout = case.sizes.for_world(opened.world) if case.sizes is not None else None
    talk = talk_for(replace(opened, layout=layout), trained if layout is not None else None)
    if opened.assignment is None or not talk.demands or NO_ROLES in talk.assumed:
        return ()
    _, outcomes = audited(opened, talk)
    if (job := read.job) is None:
        return outcomes
    return tuple(replace(one, findings=tuple(_shown(finding, job) for finding in one.findings)) for one in outcomes)


def _without_step(outcome: Outcome) -> Outcome:
    """The outcome of a job that has no training step, whose share a finding could cost."""
    bare: dict[str, Any] = {"step_share": None, "communication_share": None}
    return replace(outcome, findings=tuple(replace(one, cost=replace(one.cost, **bare)) for one in outcome.findings))


def _shown(finding: Finding, job: Job) -> Finding:
    """The finding at the job that it is of, with the lines of its log that place the ranks."""
    ranks = [rank for rank in finding.where.ranks or sorted(job.by_rank) if rank in job.by_rank]
    placed = [line for rank in ranks if (line := job.by_rank[rank].origin) is not None]
    sure = min([Confidence.HIGH, *(comm.role_sure for comm in job.communicators if comm.role_sure > Confidence.LOW)])
    where, confidence = replace(finding.where, jobs=(job.name,)), min(finding.confidence, sure)
    severity = finding.severity if sure is Confidence.HIGH else min(finding.severity, Severity.WARNING)
    evidence = finding.evidence or tuple(placed[:SHOWN])
    return replace(finding, where=where, severity=severity, confidence=confidence, evidence=evidence)
