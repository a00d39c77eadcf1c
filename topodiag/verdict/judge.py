"""The verdict of a case: its findings related, weighed and put in the order of what they cost. It makes no finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from topodiag.checks.page import COMMANDS, Command, page_of
from topodiag.checks.registry import check_class
from topodiag.checks.spoken import retold
from topodiag.lazy import regex
from topodiag.model.bench import Benchmark
from topodiag.model.events import says_work
from topodiag.model.finding import Confidence, Finding, Severity
from topodiag.model.maker import makers_of, makers_of_all, run_maker
from topodiag.model.result import Case, Result
from topodiag.model.verdict import Agreement, Cause, CauseStatus, JobState, State, Verdict
from topodiag.verdict import state as states
from topodiag.verdict.causes import Tree, takes_part, trees
from topodiag.verdict.headline import cause_words, headline, joined, loss_words
from topodiag.verdict.price import priced
from topodiag.verdict.ruled_out import ruled_out
from topodiag.verdict.scene import Scene
from topodiag.verdict.status import at_another_time, contradictions, next_evidence, of_another_time, status_of
from topodiag.words.dialect import Maker
from topodiag.words.units import grouped

if TYPE_CHECKING:
    from topodiag.placement.job_groups import JobStep

CONFIRMS = 3
"""Commands that settle a cause which a report names; the check's page has all."""
QUOTED = 160
"""Characters of a line that nothing explains."""
QUOTED_NAMES = 4
"""Nodes, jobs or runs of one maker that are named where the evidence is of two."""
MAX_OPEN = 20
"""Lines that nothing explains which a verdict keeps; the result has all."""

_BY_FOUNDATION = list(CauseStatus)
_OF_A_JOB = ("JOB", "NET", "BEN", "P2P", "GDR", "PLC")
"""Checks that see what a job or a measurement does."""
_STEP = regex(r"^srun (?:-\S+ )*")
"""How a page runs something at each rank."""
_PROGRAM = ("JOB006", "JOB009", "JOB008")
"""Causes that lie in the program or its start: not a link is to blame."""


def judge(result: Result, case: Case, steps: Sequence[JobStep] = ()) -> Verdict:
    """The verdict. `result.findings` are arranged: each consequence below its cause (`arranged`). `steps` are the
    training steps of jobs whose layout is known."""
    scene = Scene(case)
    roots = trees(result.findings, scene)
    bearing, beside = _parted(roots, result, scene)
    found_causes = [_cause(tree, result, scene) for tree in bearing]
    measured, open_steps = _measured(_priced(found_causes, result, scene, steps), scene)
    causes = _ordered(measured)
    jobs = _jobs(causes, beside, result, scene)
    past = states.worst([State.HEALTHY, *(job.state for job in jobs if job.name in scene.earlier)])
    # What a log alone lacks, and how a job ended, is no risk of a machine.
    causal = (cause.finding for cause in causes)
    machines = states.of_machines([f for f in causal if f.id != "JOB001" and not states.ended_from_outside(f)], result)
    state = states.worst([job.state for job in jobs if job.name not in scene.earlier]) if jobs else machines
    if jobs and state in (State.HEALTHY, State.UNKNOWN) and machines is State.AT_RISK:
        state = State.AT_RISK
    why = _why_unknown(beside, case, result, scene)
    unseen = "" if jobs else states.unseen(result)
    words = headline(state, causes, result.benchmarks, scene, unseen=unseen, why=why, past=past)
    verdict = Verdict(
        state=state,
        headline=words,
        confidence=_confidence(state, causes),
        first=(*_mixed(case), *_first(state, causes, result)),
        jobs=tuple(jobs),
        unrelated=tuple(tree.root for tree in beside if causes or tree.root.message != why),
        ruled_out=ruled_out(result, scene, unread=bool(unseen) and state is State.UNKNOWN),
        not_explained=(*_not_explained(causes, result), *open_steps),
        next_evidence=next_evidence(causes, state, result, scene),
        joined=joined(result, case),
    )
    return replace(
        retold(verdict, scene.dialect()),
        causes=tuple(retold(cause, scene.dialect(cause.finding)) for cause in causes),
    )


def _why_unknown(beside: Sequence[Tree], case: Case, result: Result, scene: Scene) -> str:
    """Why nothing is known of the jobs: what hinders their reading, or what was not judged of one."""
    why = [tree.root.message for tree in beside if tree.root.id == "JOB009" and not scene.is_past(tree.root)]
    cut = [(job.name, words) for job in case.jobs if (words := states.cut_words(job, scene))]
    why += [f"{words if len(case.jobs) == 1 else f'{name}: {words}'}, and does not say why" for name, words in cut]
    why += (states.not_judged(job, result, scene) for job in case.jobs)
    return next(filter(None, why), _worked(case, result))


def _mixed(case: Case) -> Iterator[str]:
    """Whose GPUs the evidence is of, where it is of two makers': no job runs on both."""
    named = [(maker, node.host) for node in case.nodes for maker in makers_of(node)]
    named += [(maker, f"job {job.name}") for job in case.jobs for maker in makers_of_all(jobs=(job,))]
    named += [(maker, run.source or "a measured run") for run in case.runs if (maker := run_maker(run)) is not None]
    held = grouped(dict.fromkeys(named))
    if len(held) > 1:
        parts = (f"{maker.value}: {', '.join(held[maker][:QUOTED_NAMES])}" for maker in Maker if maker in held)
        yield f"The evidence is of GPUs of two makers, which no job has together ({'; '.join(parts)})."


def state_of_jobs(result: Result, case: Case) -> State | None:
    """The worst state of the jobs, as a verdict on these findings alone says it; None without a job."""
    scene = Scene(case)
    bearing, _ = _parted(trees(result.findings, scene), result, scene)
    findings = [finding for tree in bearing for finding in (tree.root, *tree.effects)]
    jobs = [job for job in case.jobs if not scene.is_recorder(job) and job.name not in scene.earlier]
    return states.worst([states.of_job(job, findings, result, scene) for job in jobs]) if jobs else None


def _parted(roots: Sequence[Tree], result: Result, scene: Scene) -> tuple[list[Tree], list[Tree]]:
    """Trees that bear on what happened, and those beside it. Where nothing bears on it, every fault is a candidate."""
    faults = [tree for tree in roots if tree.root.severity > Severity.INFO and not scene.is_past(tree.root)]
    notes = [tree for tree in roots if tree.root.severity is Severity.INFO]
    happened = bool(scene.case.jobs) or bool(result.benchmarks)
    bearing = [
        tree for tree in faults if not happened or _bears(tree, scene) or takes_part(tree.root, result.findings, scene)
    ]
    # A note with consequences names what did it, though it cannot say whose fault that is.
    bearing += [tree for tree in notes if any(effect.severity > Severity.INFO for effect in tree.effects)]
    bearing = bearing or faults or _open(notes, result)
    chosen = {id(tree) for tree in bearing}
    return bearing, [tree for tree in roots if id(tree) not in chosen]


def _open(notes: Sequence[Tree], result: Result) -> list[Tree]:
    """Notes that leave open whether all is well."""
    return [tree for tree in notes if tree.root in states.left_open(result)]


def _bears(tree: Tree, scene: Scene) -> bool:
    """Whether a job or a measurement shows an effect of it, or it is such an effect, or its loss can be modelled."""
    if _met_by_a_job(tree):
        return True
    root = tree.root
    hosts = {host for hosts in scene.hosts_of_jobs.values() for host in hosts}
    met = not scene.nodes(root) or not hosts or not hosts.isdisjoint(scene.nodes(root))
    priced = bool(root.cost.gbs_lost) or bool(root.cost.share)
    return met and (priced or root.severity is Severity.ERROR or root.id.startswith("JOB"))


def _met_by_a_job(tree: Tree) -> bool:
    return any(effect.id.startswith(_OF_A_JOB) for effect in tree.effects)


def _cause(tree: Tree, result: Result, scene: Scene) -> Cause:
    finding = tree.root
    against = contradictions(finding, scene, result.benchmarks)
    status = status_of(finding, scene, against)
    if of_another_time(finding, scene):
        status = at_another_time(status, _met_by_a_job(tree))
    mechanism = _mechanism(tree)
    if not mechanism and (part := takes_part(finding, result.findings, scene)):
        mechanism = f"{part}: a part of a loss that a dearer cause explains"
        if status is CauseStatus.ESTABLISHED:  # the fault is a fact, and what it costs here is not
            status = CauseStatus.LIKELY
    below, confirm = tuple(tree.below), _confirm(finding, scene)
    return Cause(finding, status, mechanism, consequences=below, contradicted_by=against, confirm=confirm)


def _confirm(finding: Finding, scene: Scene) -> tuple[str, ...]:
    commands = _in_words_of_scheduler(_commands(finding.id, pods=bool(scene.case.ties)), finding, scene)
    steps = list(scene.dialect(finding).steps(commands)[:CONFIRMS])
    where, known = finding.where, dict(finding.confirm)
    if len(where.gpus) == 1 and (number := where.gpus[0].removeprefix("GPU")).isdecimal():
        known = {"-i N": f"-i {number}", "-i GPU": f"-i {number}"}
    own = [job.by_rank[number] for job in scene.jobs_of(finding) for number in where.ranks if number in job.by_rank]
    if len(own) == len(where.ranks) == 1 and own[0].pid > 0:
        known["PID"] = str(own[0].pid)
    for name, value in known.items():  # the finding's own sizes; of one GPU or one rank, its number
        steps = [step.replace(name, value) for step in steps]
    return tuple(map(_for_all_hosts, steps))


def _for_all_hosts(step: str) -> str:
    """Settings before `mpirun` as its options: it does not hand its environment to other hosts."""
    settings, launcher, rest = step.partition("mpirun ")
    return launcher + "".join(f"-x {setting} " for setting in settings.split()) + rest if launcher else step


def _in_words_of_scheduler(commands: tuple[str, ...], finding: Finding, scene: Scene) -> tuple[str, ...]:
    """The commands for the scheduler that the finding's jobs show."""
    if not scene.case.jobs:
        return commands
    from topodiag.checks.shared.job.schedulers import commands_of, scheduler_of  # noqa: PLC0415 - where there are jobs

    return commands_of(next(filter(None, map(scheduler_of, scene.jobs_of(finding))), None), commands)


def _priced(causes: Sequence[Cause], result: Result, scene: Scene, steps: Sequence[JobStep]) -> list[Cause]:
    prices = priced(causes, scene.case, steps)
    return [_in_part(replace(cause, price=price), result, scene) for cause, price in zip(causes, prices, strict=True)]


def _in_part(cause: Cause, result: Result, scene: Scene) -> Cause:
    """The cause with the word that it is not all, where no price of its own says so and the numbers of a run do."""
    if cause.price.agreement is not Agreement.NOT_PREDICTED:
        return cause
    for benchmark in result.benchmarks:
        in_part = any(h.in_part and h.check == cause.finding.id for h in benchmark.hypotheses)
        if in_part and _explains_run(cause, benchmark, scene):
            says = f"explains part of the loss of {benchmark.run.collective}; the rest has another cause"
            return replace(cause, price=replace(cause.price, agreement=Agreement.PART, says=says))
    return cause


def _measured(causes: Sequence[Cause], scene: Scene) -> tuple[list[Cause], tuple[str, ...]]:
    """The causes beside what the logs of trainings measured, and what no cause explains of that."""
    if not any(job.steps for job in scene.case.jobs):
        return list(causes), ()
    from topodiag.verdict.pricing.measured_steps import open_steps, with_measured_steps  # noqa: PLC0415 - for steps

    case = scene.case
    measured = with_measured_steps(causes, case, lambda cause, job: states.bears_on(cause.finding, job, scene))
    return measured, open_steps(measured, case)


def _mechanism(tree: Tree) -> str:
    """How it makes the job slow or fail: the reasons of its direct consequences, each once."""
    reasons = dict.fromkeys(consequence.why for consequence in tree.below if consequence.depth == 1)
    return "; ".join(list(reasons)[:2])


@cache
def _commands(check: str, *, pods: bool) -> tuple[str, ...]:
    """The commands of the section "How to confirm" of the check's page, for ranks in pods without `srun`. Settings for
    the next run are none: they show nothing of this one."""
    kind = check_class(check)
    if kind is None:
        return ()
    sections = [section for section in page_of(kind).sections if section.name == COMMANDS]
    commands = [part for section in sections for block in section.blocks for part in block if isinstance(part, Command)]
    texts = (part.command for part in commands if not part.command.startswith("export "))
    return tuple(_STEP.sub("kubectl exec POD -- ", command) if pods else command for command in texts)


def _ordered(causes: Sequence[Cause]) -> list[Cause]:
    """What ended a job first, unless somebody else did, then by what is lost; what is only supposed never above what is
    founded."""

    def key(at: int) -> tuple[object, ...]:
        cause = causes[at]
        outside = states.ended_from_outside(cause.finding)
        ends = not outside and any(f.id in states.ENDS or f.id in states.HANGS for f in cause.findings)
        taken = cause.price.job_share
        share = taken if taken is not None else cause.price.share or 0.0
        foundation = _BY_FOUNDATION.index(cause.status)
        return not ends, outside, cause.status is CauseStatus.HYPOTHESIS, -share, foundation, at

    return [causes[at] for at in sorted(range(len(causes)), key=key)]


def _jobs(causes: Sequence[Cause], beside: Sequence[Tree], result: Result, scene: Scene) -> list[JobState]:
    """One state for each job and each measured run. A log inside a run's own output is that run. What earlier runs met
    says how those were."""
    findings = [finding for cause in causes for finding in _of_the_end(cause)]
    findings += [tree.root for tree in beside if scene.is_past(tree.root)]
    job_states: list[JobState] = []
    outputs = {benchmark.run.source for benchmark in result.benchmarks}
    for job in scene.case.jobs:
        if (job.files and set(job.files) <= outputs) or scene.is_recorder(job):
            continue
        own = states.of_job(job, findings, result, scene)
        places = tuple(at for at, cause in enumerate(causes) if states.bears_on(cause.finding, job, scene))
        words = cause_words(causes[places[0]].finding) if places else states.cut_words(job, scene)
        job_states.append(JobState(job.name or "job", own, words, places))
    for benchmark in result.benchmarks:
        own = states.of_run(benchmark, findings)
        places = tuple(at for at, cause in enumerate(causes) if _explains_run(cause, benchmark, scene))
        spelt = scene.dialect().say(benchmark.run.program)
        name = f"{benchmark.run.placement or benchmark.run.collective or 'run'} ({spelt})"
        job_states.append(JobState(name, own, loss_words([benchmark]), places))
    return job_states


def _of_the_end(cause: Cause) -> list[Finding]:
    """The findings of a cause that say how a job ended: not what ranks meet when somebody else ends it."""
    outside = states.ended_from_outside(cause.finding)
    return [finding for finding in cause.findings if finding.id != "JOB005" or not outside]


def _worked(case: Case, result: Result) -> str:
    """Why there is no verdict: the texts show at most that a program works, or GPUs without a link."""
    if case.nodes and not states.links_judged(result):
        return "not judged: nothing shows that a link or a network port is well"
    if case.jobs:
        return states.NO_WORD
    left = [states.unexplained(troubles)] if (troubles := result.troubles()) else []
    left += [outcome.why for outcome in result.undecided()] + [part.why for part in case.not_observed]
    why = f"not judged: {left[0]}" if left else states.NO_WORD
    return f"{work}; communication {why}" if (work := says_work(case.progress)) else why


def _explains_run(cause: Cause, run: Benchmark, scene: Scene) -> bool:
    """Whether the loss of a run is below a cause: of that run, where its hosts are known; or the cause was priced on
    the run and has a part in its loss."""
    price, hosts = cause.price, scene.hosts(run.run.hosts)
    if price.job_share and price.agreement in {Agreement.AGREES, Agreement.PART} and price.measured is not None:
        from topodiag.verdict.pricing.agreement import measured_of  # noqa: PLC0415 - where something was priced

        if price.measured == measured_of(run.run, price.measured.what):
            return True
    return any(
        finding.id.startswith("BEN") and (not hosts or not scene.nodes(finding) or scene.nodes(finding) <= hosts)
        for finding in cause.findings
    )


def _confidence(state: State, causes: Sequence[Cause]) -> Confidence:
    """That of the first cause; of a healthy case that of what was judged, of an unknown one none."""
    if causes:
        by_status = {CauseStatus.ESTABLISHED: Confidence.HIGH, CauseStatus.LIKELY: Confidence.MEDIUM}
        return by_status.get(causes[0].status, Confidence.LOW)
    return Confidence.MEDIUM if state is State.HEALTHY else Confidence.LOW


def _first(state: State, causes: Sequence[Cause], result: Result) -> Iterator[str]:
    """What must be read before the causes."""
    # Where other causes remain possible, a link is one of them; what a job did until its time was up, nobody says.
    established = causes and causes[0].status is CauseStatus.ESTABLISHED
    if established and causes[0].finding.id in _PROGRAM and not states.ended_from_outside(causes[0].finding):
        yield "Topology does not matter here: the program or one of its processes is the cause, not a link."
    if state is State.HEALTHY and any(benchmark.verdict == "normal" for benchmark in result.benchmarks):
        yield "The measured bandwidth is what this machine can do: an expectation above it is wrong."


def _not_explained(causes: Sequence[Cause], result: Result) -> tuple[str, ...]:
    """Lines of trouble that no finding explains, losses of which a part is left, and what a check cannot decide."""
    texts = [
        " ".join(f"{line.origin or line.subject}: {line.text}".split())[:QUOTED]
        + (f" (×{line.count})" if line.count > 1 else "")
        for line in result.troubles()[:MAX_OPEN]
    ]
    texts += [cause.price.says for cause in causes if cause.price.agreement is Agreement.PART and cause.price.says]
    if not any(finding.id.startswith("BEN") for cause in causes for finding in cause.findings[1:]):
        texts += filter(None, (loss_words([benchmark]) for benchmark in result.benchmarks))
    ids = {finding.id for cause in causes for finding in cause.findings}
    left_open = states.left_open(result)[:MAX_OPEN]
    texts += [f"{finding.id}: {finding.message}" for finding in left_open if finding.id not in ids]
    texts += [f"{outcome.node}: {outcome.why}" for outcome in result.undecided()[:MAX_OPEN]]
    return tuple(dict.fromkeys(texts))
