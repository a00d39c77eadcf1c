"""The verdict in one line: what happened to which job, by what, on which host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from operator import itemgetter
from typing import TYPE_CHECKING

from topodiag.model.bench import Benchmark
from topodiag.model.finding import Finding, Severity
from topodiag.model.ras import answered, says_answers
from topodiag.model.result import Case, Result
from topodiag.model.verdict import Cause, CauseStatus, State
from topodiag.verdict.scene import Scene
from topodiag.verdict.scheduled import held_words
from topodiag.verdict.state import NO_WORD, OPEN, ended_from_outside
from topodiag.words.units import fold_hosts, in_gbs, percent, plural, spell_gbs

if TYPE_CHECKING:
    from topodiag.model.job import Job


_NO_WIRE = "not the links; "
"""How the words on steps end which say why themselves."""
_WIDE = 2.0
"""Times their median within which most steps lie where they are called without a change."""
_NOT_JUDGED = ("unknown", "impossible")
MAX_MESSAGE = 160
"""Characters of a finding's message in a headline: the first errors of jobs quote whole lines."""
GIVEN = "what was given"
"""For what was seen, where it is neither a job nor a node."""
MAX_NAMES = 60
"""Characters of its hosts, whose names stand below as well: of more only their number is said."""


def cause_words(finding: Finding) -> str:
    """`gpu-018: GPU3 has 12 of 18 NVLinks active`: the message, with its hosts where it does not name them."""
    message = finding.message if len(finding.message) <= MAX_MESSAGE else finding.message[: MAX_MESSAGE - 1] + "…"
    hosts = finding.where.nodes
    if not hosts or any(host in finding.message for host in hosts):
        return message
    names = fold_hosts(hosts)
    return f"{names if len(names) <= MAX_NAMES else plural(len(hosts), 'node')}: {message}"


def causes_of(benchmark: Benchmark, result: Result) -> tuple[Cause, ...]:
    """The causes of what a run lacks, in the verdict's order; none where there is no verdict."""
    if result.verdict is None:
        return ()
    own = result.verdict.jobs[result.benchmarks.index(benchmark) - len(result.benchmarks)]
    return tuple(result.verdict.causes[at] for at in own.causes)


def headline(
    state: State,
    causes: Sequence[Cause],
    benchmarks: Sequence[Benchmark],
    scene: Scene,
    *,
    unseen: str = "",
    why: str = NO_WORD,
    past: State = State.HEALTHY,
) -> str:
    """One sentence without its full stop. `unseen` says why no machine of the case was judged, `why` why no job was,
    `past` how the worst of the earlier runs was."""
    if causes:
        lead, effect = _lead(causes[0]), loss_words(benchmarks) if state is State.SLOW else ""
        if ended_from_outside(causes[0].finding):
            effect = _step_words(scene).removesuffix("; ").removesuffix(", and ") or _progress_words(scene)
        return f"{lead}; {effect}" if effect and effect.split(" ")[0] not in lead else lead
    if state is State.HEALTHY:
        return healthy_words(benchmarks, scene, past)
    if unseen and not benchmarks:
        return held_words(scene.case) or f"not judged: no GPU was read ({unseen})"
    steps = _step_words(scene)
    why = "" if steps.endswith(_NO_WIRE) else f"{why}; "
    asked = "" if steps else _unknown_words(benchmarks) if benchmarks else _ras_words(scene)
    seen = f"{steps}{why}{seen_words(scene, scene.case.jobs)}".removesuffix(f"; {GIVEN}") + _past_words(past)
    return loss_words(benchmarks) or asked or seen


def _unknown_words(benchmarks: Sequence[Benchmark]) -> str:
    """What the first run that could not be judged reaches, and what is missing to judge it; "" without one. A run that
    reached nothing stands behind those that did."""
    unknown = [benchmark for benchmark in benchmarks if benchmark.verdict in _NOT_JUDGED and benchmark.why]
    if not unknown:
        return ""
    first = min(unknown, key=lambda benchmark: benchmark.run.top is None)
    name, top = first.run.collective or "the benchmark", first.run.top
    return f"{name}{f' reaches {in_gbs(top[1])}; ' if top is not None else ': '}{first.why}"


def _lead(first: Cause) -> str:
    """The first cause with how sure it is. A note that leaves something open accuses nobody."""
    lead = cause_words(first.finding)
    if first.finding.id in OPEN and first.finding.severity is Severity.INFO:
        return lead
    if first.status is CauseStatus.HYPOTHESIS:
        return f"possible cause, not proven: {lead}"
    unsure = first.status is CauseStatus.LIKELY and not first.consequences
    return f"{lead} (root cause not known yet)" if unsure else lead


def _progress_words(scene: Scene) -> str:
    """How much progress the jobs of a case print; "" without any."""
    done = sum(progress.number for job in scene.case.jobs for progress in job.progress)
    return f"{plural(done, 'line')} of progress until then" if done else ""


def _ras_words(scene: Scene) -> str:
    """What RAS says of jobs of which nothing else is known, and of which it shows nobody behind."""
    jobs = scene.case.jobs
    only_ras = bool(jobs) and all(job.only_ras for job in jobs) and not scene.case.nodes
    words = [says_answers(job.ras) for job in jobs] if only_ras else []
    return "; ".join(words) if all(words) else ""


def _step_words(scene: Scene) -> str:
    """What the first training log says of its steps, with what joins it to the rest; "" without one, and of several of
    which none became slower."""
    paces = [pace for job in scene.case.jobs for pace in job.paces[:1]]
    pace = next(iter(paces), None)
    if pace is None or (len(paces) > 1 and not any(pace.slower > 1 for pace in paces)):
        return ""  # runs of a sweep have a pace each
    from topodiag.model.step_pace import grown_part, says_change, says_lost, says_waits, spell_pace  # noqa: PLC0415 - numpy

    if waits := says_waits(pace):
        return f"{waits}; "
    if pace.slower > 1:
        part = grown_part(pace)
        return f"{says_change(pace)}{f', most of it in {part}' if part else ''}, and "
    wide = pace.high - pace.low > _WIDE * pace.typical
    unsure = len(pace.levels) != 1 or pace.drift > 1 or pace.series.steps[-1].number in pace.slow or wide
    lost = f", {words}" if (words := says_lost(pace.series)) else ""
    return f"steps at {spell_pace(pace.typical, pace.series.unit)}{'' if unsure else ' without a change'}{lost}; "


def healthy_words(benchmarks: Sequence[Benchmark], scene: Scene, past: State = State.HEALTHY) -> str:
    """Healthy is said of the last run alone where an earlier one of the same log was `past`."""
    normal = [benchmark for benchmark in benchmarks if benchmark.verdict == "normal" and benchmark.run.top is not None]
    measured = ""
    if normal:
        best = max(normal, key=lambda benchmark: (benchmark.run.top or (0, 0.0))[1])
        measured = f"{best.run.collective} reaches {in_gbs((best.run.top or (0, 0.0))[1])}, normal for this machine; "
    elif any(job.done and not job.ranks for job in scene.case.jobs):
        measured = "the program ran to its end; "
    if past is State.HEALTHY:
        seen = seen_words(scene, scene.case.jobs)
        return f"{measured}no fault in {seen if seen == GIVEN else f'what was seen of {seen}'}"
    last = [job for job in scene.case.jobs if job.name not in scene.earlier]
    runs = f"the last of {len(last) + len(scene.earlier)} runs" if len(last) == 1 else "the last runs"
    return f"{runs}: {measured}no fault in what was seen of {seen_words(scene, last)}{_past_words(past)}"


def _past_words(past: State) -> str:
    """How the worst of the earlier runs of the same log was; "" where all were well."""
    how = {State.UNKNOWN: "is not judged", State.SLOW: "was slow", State.AT_RISK: "was at risk"}.get(past, past.value)
    return "" if past is State.HEALTHY else f"; an earlier run {how} (unrelated)"


def seen_words(scene: Scene, jobs: Sequence[Job]) -> str:
    words = []
    if jobs:
        ranks = sum(len(job.ranks) for job in jobs)
        words.append(f"{plural(len(jobs), 'job')} of {plural(ranks, 'rank')}" if ranks else plural(len(jobs), "job"))
    if scene.captures:
        words.append(plural(len({node.host for node in scene.captures}), "node"))
    return " and ".join(words) or GIVEN


def loss_words(benchmarks: Sequence[Benchmark]) -> str:
    """`all_reduce reaches 285.6 of 476.8 GB/s (-40%)`, of the run that lost most; "" where none is low."""
    low = []
    for benchmark in benchmarks:
        if benchmark.verdict == "low" and benchmark.expected is not None and benchmark.run.top is not None:
            size, reached = benchmark.run.top
            wanted = benchmark.expected.busbw.get(size, benchmark.expected.busbw_gbs)  # as BEN001 compares them
            if wanted > 0:
                low.append((1 - reached / wanted, benchmark.run.collective or "the benchmark", reached, wanted))
    if not low:
        return ""
    lost, name, reached, wanted = max(low, key=itemgetter(0))
    return f"{name} reaches {spell_gbs(reached)} of {in_gbs(wanted)} (-{percent(lost)})"


def joined(result: Result, case: Case) -> tuple[str, ...]:
    """`log 16/16 ranks`, `captures 1/2 nodes`, `nccl-tests none`, `flight recorder 8 ranks`, ..."""
    scene = Scene(case)
    hosts = scene.hosts(host for job in case.jobs for host in job.hosts)
    seen = sum(len(job.ranks) for job in case.jobs)
    world = sum(max(job.world_size, len(job.ranks), *(comm.nranks for comm in job.communicators)) for job in case.jobs)
    logged = sum(map(_is_logged, case.jobs))
    read = f"log {seen}/{world} ranks" if world else f"log of {plural(logged, 'job')}, no rank named"
    texts = [read if logged else "log none"]
    texts += _captures(scene.captured, hosts)
    programs = Counter(benchmark.run.program for benchmark in result.benchmarks)
    texts += [f"{name} {plural(number, 'run')}" for name, number in programs.items()] or ["nccl-tests none"]
    flight = len({record.rank for job in case.jobs for record in job.flight})
    texts += [f"flight recorder {plural(flight, 'rank')}"] if flight else []
    texts += _asked(case.jobs)
    steps = sum(len(step.steps) for job in case.jobs for step in job.steps)
    texts += [f"training log {plural(steps, 'line')} of steps"] if steps else []
    texts += [f"hostfiles {len(case.layouts)}"] if case.layouts else []
    texts += [f"cluster {plural(len(case.clusters), 'file')}"] if case.clusters else []
    return tuple(texts)


def _is_logged(job: Job) -> bool:
    return bool(job.processes or job.ranks) or not (job.steps or job.ras)


def _asked(jobs: Sequence[Job]) -> list[str]:
    """How many ranks answered RAS."""
    asked = [counted for job in jobs if (counted := answered(job.ras)) is not None]
    return [f"RAS {sum(seen for seen, _ in asked)}/{sum(total for _, total in asked)} ranks"] if asked else []


def _captures(captured: Set[str], hosts: Set[str]) -> list[str]:
    """How many nodes of the jobs have a capture; without a job, how many nodes."""
    if not hosts:
        return [f"captures {plural(len(captured), 'node')}" if captured else "captures none"]
    beside = captured - hosts
    texts = [f"captures {len(captured & hosts)}/{len(hosts)} nodes"]
    return texts + ([f"{plural(len(beside), 'capture')} of no node of a job"] if beside else [])
