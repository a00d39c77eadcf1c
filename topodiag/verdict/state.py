"""How a job, a measured run and the whole case are: failed, hung, slow, at risk, healthy, or unknown.

Healthy is said only where something was judged and nothing speaks against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topodiag.checks.interface import quoted
from topodiag.model.bench import Benchmark
from topodiag.model.events import says_work
from topodiag.model.finding import Confidence, Finding, Severity, Status
from topodiag.model.job_waits import WAITS, only_waited
from topodiag.model.node import Sight, gpu_sight
from topodiag.model.result import Result, Trouble
from topodiag.model.verdict import State
from topodiag.verdict.scene import Scene
from topodiag.words.own_data import patterns
from topodiag.words.units import grouped, plural

if TYPE_CHECKING:
    from topodiag.model.events import Progress
    from topodiag.model.job import Event, Job

WORST_FIRST = (State.FAILED, State.HUNG, State.SLOW, State.AT_RISK, State.UNKNOWN, State.HEALTHY)

ENDS = ("JOB005", "JOB009", "JOB001", "NET008")
"""Findings of a job that ended, at error level. What is only torn down after the end is no finding of these checks."""
_DEATHS = frozenset(ENDS) - {"JOB001"}
"""Of these, those after which no process lives: an init that is not over may be a wait."""
HANGS = ("JOB006",)
FATAL = frozenset({"ecc", "nvlink", "lost", "fabric", "shm", "busy", "ordinal", "driver", "mismatch",
                   "no cuda", "rank twice", "no such rank", "worlds", "rccl setting"})  # fmt: skip
"""Faults by which a rank ends that prints them (evidence/signatures/catalogue/process.toml)."""
OPEN = frozenset({"JOB004", "NET001", "NVL001", "GPU003"})
"""Findings that leave open, as information that is not sure, whether all is well: whose memory the GPUs hold, whether
machines whose job uses TCP have RDMA devices, whether MIG is why no NVLink is up, and whether a program that no line
names is why a GPU stopped its work."""
NO_WORD = "nothing in this evidence says why"
_OF_WAYS = ("NET", "GDR", "P2P", "PCI", "PLC", "NVL", "NUM", "TOP", "BEN")
"""Checks of what carries data, and over which way."""
_SLOWS = (*_OF_WAYS, "GPU004", "JOB008", "JOB011", "JOB012", "JOB015", "NIC002", "NIC005", "ENV")
"""Checks whose faults take bandwidth or time from a job that meets them."""
_EXCEPTION, STEP_OF = patterns("verdict/lines", "state").values()


def of_job(job: Job, findings: Sequence[Finding], result: Result, scene: Scene) -> State:
    """The state of a job. `findings` are those of the case that bear on it."""
    own = [finding for finding in findings if finding.severity > Severity.INFO and bears_on(finding, job, scene)]
    errors = [finding for finding in own if finding.severity is Severity.ERROR]
    ended = [error for error in errors if error.id in ENDS]
    if (end := _end(job, own, ended, scene)) is not None:
        return end
    if any(_costs(finding) for finding in own) or _became_slow(job):
        return State.SLOW
    if [finding for finding in own if finding not in ended and not ended_from_outside(finding)]:
        return State.AT_RISK
    if own:
        return State.UNKNOWN  # its log lacks lines, and nobody says that it waits, or somebody else ended it
    return State.UNKNOWN if not_judged(job, result, scene) else State.HEALTHY


def ended_from_outside(finding: Finding) -> bool:
    """Whether a finding says that somebody else ended the job: its time limit, a preemption, a signal to its launcher.
    That is no fault of the job, and no risk; how the job was until then, the rest of its log says."""
    return finding.id == "JOB009" and finding.severity is Severity.WARNING


def _end(job: Job, own: Sequence[Finding], ended: Sequence[Finding], scene: Scene) -> State | None:
    """Failed or hung, where the findings say that the job came to an end or that somebody waits. Ranks that torch's own
    comparison of collectives ended do not wait."""
    if ended and (any(finding.id != "JOB001" for finding in ended) or somebody_waits(job)):
        return _ended(job, ended, scene)
    if any(finding.id in HANGS for finding in own):
        kinds = {event.kind for event in job.events}
        return State.FAILED if "mismatch" in kinds and kinds.isdisjoint(WAITS) else State.HUNG
    if any(finding.severity is Severity.ERROR for finding in own) and any(_ends_it(event) for event in job.events):
        return State.FAILED
    return None


def _ended(job: Job, ended: Sequence[Finding], scene: Scene) -> State:
    """Hung where the errors that ended a job only say that somebody waited, else failed."""
    first = scene.first_errors.get(job.name)
    # Errors whose first is not in the log are how others met the end of a job: nobody waits any more.
    is_over = any(finding.id == "JOB005" for finding in ended) and not only_waited(job)
    waits = first.kind in WAITS if first is not None else not is_over
    only_waits = all(finding.id in ("JOB001", "JOB005") for finding in ended)
    return State.HUNG if only_waits and waits else State.FAILED


def somebody_waits(job: Job) -> bool:
    """Whether the evidence shows a process of the job that waits, or one that failed: its log alone, which lacks lines,
    does not. A watchdog or a timeout, an answer of RAS, stacks, a flight recorder, an error of init, steps that
    stopped."""
    return bool(job.ras or job.stacks or job.flight) or any(event.level != "INFO" for event in job.events)


def _became_slow(job: Job) -> bool:
    """Whether its own log shows that its steps became far longer, whatever did it."""
    if not job.steps:
        return False
    from topodiag.model.step_pace import became_slow  # noqa: PLC0415 - numpy, which only jobs need

    return became_slow(job.paces)


def not_judged(job: Job, result: Result, scene: Scene) -> str:
    """Why the evidence does not say that a job without findings is well; "" where it does."""
    judged = any(o.status is Status.CLEAN and o.node in ("", job.name) for o in result.outcomes)
    # A few lines that name no rank clear nobody, unless they show that the work was done.
    met = bool(job.ranks or job.communicators) or _ran_to_its_end(job)
    if (job.inspection is not None or job.diagnostics or job.step_waits) and not job.processes:
        return "not judged: parts of a job are compared with each other alone, and none is an outlier"
    if any(pace.slower > 1 or pace.drift > 1 for pace in job.paces):  # in the end than before, by any measure
        return NO_WORD
    if troubles := result.troubles(job.name):
        return f"not judged: {unexplained(troubles)}"
    if not judged or not met:
        return _work_words(job, scene, "nothing that clears the job" if met else "")
    notes = (f"not judged: {finding.message}" for finding in left_open(result) if bears_on(finding, job, scene))
    return _given_up(job, result, scene) or _not_seen(job, result, scene) or next(notes, "")


def unexplained(troubles: Sequence[Trouble]) -> str:
    """How many lines of trouble no finding explains. An exception that a program raised for request after request, or
    file after file, and went on is named, the first of them."""
    words = f"{plural(sum(trouble.count for trouble in troubles), 'line')} of trouble without an explanation"
    raised = grouped((match[1], trouble) for trouble in troubles if (match := _EXCEPTION.match(trouble.text)))
    exception, alike = next(iter(raised.items()), ("", []))
    count = sum(trouble.count for trouble in alike)
    if count <= 1:
        return words
    at = alike[0].origin
    place = f", first at line {at.line}" if at is not None and at.line is not None else ""
    return f"{words}, {count} of one exception{place}: {quoted(exception)}"


def cut_words(job: Job, scene: Scene) -> str:
    """`its log ends at step 8 of 20`, where the logs of a job say how many steps there are and end before; else ""."""
    step, steps = _last_step(job, scene)
    return "" if job.done or step >= steps else f"its log ends at step {step} of {steps}"


def _last_step(job: Job, scene: Scene) -> tuple[int, int]:
    """The step that the logs of a job show last, and how many there are; (0, 0) where they do not say. Beside an epoch
    they may be its own."""
    lines = [line.last.text for line in _progress_of(job, scene)]
    steps = [step for line in lines if (step := STEP_OF.search(line)) and "epoch" not in line.lower()]
    ended = [step for step in steps if int(step[1]) >= int(step[2])]
    return next(((int(step[1]), int(step[2])) for step in (*ended, *steps)), (0, 0))


def _work_words(job: Job, scene: Scene, lacks: str) -> str:
    """What the logs of a job show of its work, beside the time of its steps, and what they lack to judge it."""
    step, steps = _last_step(job, scene)
    work = f"all {steps} steps done" if step >= steps > 0 else ""
    if work := work if job.steps else says_work(_progress_of(job, scene)):
        return f"{work}; communication not judged: no fault is shown, and {lacks or 'no rank is named'}"
    return f"not judged: no fault is shown, and {lacks or 'neither a rank nor the end of the work'}"


def _progress_of(job: Job, scene: Scene) -> list[Progress]:
    sources = {*job.files, *(series.source for series in job.steps)}
    return [line for line in (*job.progress, *scene.case.progress) if line.last.source in sources]


def _ran_to_its_end(job: Job) -> bool:
    """Whether all logs of a job that show it at work say below it that the work is done, and show nothing else."""
    done = {end.source: end.line or 0 for end in job.done}
    last = [*(line.last for line in job.progress), *(series.steps[-1].origin for series in job.steps)]
    goes_on = any((origin.line or 0) >= done.get(origin.source, 0) for origin in last if origin is not None)
    # Nothing else: a process that was killed below may have had to write its result.
    quiet = all(event.kind == "note" and event.details.get("how") != "killed" for event in job.events)
    return bool(done) and not goes_on and quiet


def _not_seen(job: Job, result: Result, scene: Scene) -> str:
    """What the evidence lacks of a job; "" where it shows what all ranks used, or that the job went on."""
    went_on = any((job.done, job.progress, job.steps))
    if any(communicator.unfinished for communicator in job.communicators) and not went_on:
        return "not judged: the log lacks the end of an init, and nothing shows that the job went on"
    # Lines of init say what was found: since NCCL 2.22 connections come with the first collective.
    called = went_on or any(communicator.operations for communicator in job.communicators)
    if job.communicators and not called and not len(job.connections.flows.via) and not job.machines:
        return "not judged: no connection, step or progress in the evidence"
    if went_on or any(_ran_whole(benchmark, job, scene) for benchmark in result.benchmarks):
        return ""
    if len(job.ranks) < job.world_size:
        return f"not judged: the evidence has {len(job.ranks)} of {plural(job.world_size, 'rank')}"
    if job.world is not None and job.world.destroyed and not called:
        return "not judged: the ranks took their communicators down, and no step or progress was seen"
    if job.communicators and not job.size_told:
        return "not judged: the evidence does not say how many ranks the job has"
    return ""


def _given_up(job: Job, result: Result, scene: Scene) -> str:
    """That its ranks aborted their communicators, as torch does at any end, and nothing shows the work done."""
    aborted = job.world is not None and job.world.aborted and not job.done
    if not aborted or any(_ran_whole(benchmark, job, scene) for benchmark in result.benchmarks):
        return ""
    return "not judged: the ranks aborted their communicators, and no line shows that their work was done"


def _ran_whole(run: Benchmark, job: Job, scene: Scene) -> bool:
    """Whether a run on all ranks and hosts of a job reaches what the machines should."""
    whole = (run.run.nranks or 0) >= job.world_size and scene.hosts(job.hosts) <= scene.hosts(run.run.hosts)
    return whole and run.verdict == "normal"


def _ends_it(event: Event) -> bool:
    """Whether a line of the job itself names a fault that no rank lives through, or with which one ended. A limit of
    locked memory may be told as a warning beside it: it ended something where a call failed."""
    fault, how = event.details.get("fault", ""), event.details.get("how")
    ended = bool(fault) and how == "exception"
    return ended or fault in FATAL or (fault == "memlock" and "fail" in event.text.lower())


def of_run(run: Benchmark, findings: Sequence[Finding] = ()) -> State:
    """The state of a measured run; of `findings`, those of its own output may say that its program ended with an
    error."""
    if run.run.errors or run.run.wrong_values or (run.failures and run.verdict not in {"low", "impossible"}):
        return State.FAILED
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    fell = [line for error in errors if error.id == "BEN003" for line in error.evidence]
    if run.verdict == "low" or any(row.origin in fell for row in run.run.rows):
        return State.SLOW
    died = [error for error in errors if error.id in _DEATHS]
    if run.verdict != "normal" and any(where.source == run.run.source for end in died for where in end.evidence):
        return State.FAILED
    return State.HEALTHY if run.verdict == "normal" else State.UNKNOWN


def of_machines(findings: Sequence[Finding], result: Result) -> State:
    """The state of nodes of which no job is known: a fault that no job met is a risk."""
    if any(finding.severity > Severity.INFO for finding in findings):
        return State.AT_RISK
    if left_open(result) or unseen(result) or result.troubles() or result.undecided():
        return State.UNKNOWN
    return State.HEALTHY if links_judged(result) else State.UNKNOWN


def links_judged(result: Result) -> bool:
    """Whether anything that carries data was found well: GPUs, their clocks and drivers, and settings alone do not show
    how they communicate."""
    return any(o.status is Status.CLEAN and o.check.startswith((*_OF_WAYS, "NIC")) for o in result.outcomes)


def unseen(result: Result) -> str:
    """Why no machine of the case can be called well: no GPU of any was read. "" where one was, and without machines."""
    sights = [gpu_sight(node) for node in result.nodes]
    if not sights or any(sight.sight is Sight.SEEN for sight in sights):
        return ""
    return sights[0].why


def left_open(result: Result) -> tuple[Finding, ...]:
    """What is told as information and leaves open whether a machine is well."""
    notes = (finding for finding in result.findings if finding.id in OPEN and finding.severity is Severity.INFO)
    return tuple(note for note in notes if note.confidence is not Confidence.HIGH)


def worst(states: Sequence[State]) -> State:
    """The worst of some states, unknown without any."""
    return min(states, key=WORST_FIRST.index, default=State.UNKNOWN)


def bears_on(finding: Finding, job: Job, scene: Scene) -> bool:
    """Whether a finding bears on a job: it names the job, or a node of it, or neither; where the
    hosts of the job are not known, any node may be one."""
    if finding.id.startswith("BEN"):
        return False  # of a run, which has a state of its own
    if finding.where.jobs:
        return job.name in finding.where.jobs and _by_its_lines(finding, job, scene)
    nodes = scene.nodes(finding)
    return not nodes or not job.hosts or not nodes.isdisjoint(scene.hosts(job.hosts))


def _by_its_lines(finding: Finding, job: Job, scene: Scene) -> bool:
    """Of jobs with one name, a finding is of the one whose log its first line stands in."""
    alike = [one_job for one_job in scene.case.jobs if one_job.name == job.name]
    source = finding.evidence[0].source if finding.evidence else ""
    owners = [job for job in alike if source in job.files]
    return len(alike) < 2 or not owners or any(owner is job for owner in owners)


def _costs(finding: Finding) -> bool:
    priced = finding.cost.gbs_lost is not None or finding.cost.share is not None
    slows = finding.id.startswith(_SLOWS)
    return (priced or slows) if finding.severity is Severity.ERROR else priced and slows
