"""Findings, cases and benchmarks from which tests of the verdict are made, and the verdict on them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.checks import jobs
from tests.checks.wanted import matches
from tests.verdict.test_order import E, found
from topodiag.model.bench import BenchDevice, Benchmark, BenchRow, BenchRun, Expectation, Fit, Timing
from topodiag.model.connections import no_connections
from topodiag.model.events import Progress
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity, Status, Where
from topodiag.model.job import Job, Process
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.model.result import Case, Host, Identity, Result, Tie
from topodiag.model.verdict import Verdict
from topodiag.verdict.causes import arranged
from topodiag.verdict.judge import judge

LINE = Origin("trees/sys.tree", 7, "1: DOWN")
LOG = Origin("job.log", 3, "NET/IB : Using")


def seen(check: str, severity: Severity = E, *, line: Origin = LINE, **parts: Any) -> Finding:
    """A finding with a line of evidence."""
    return replace(found(check, severity, **parts), evidence=(line,))


def verdict(
    *findings: Finding, case: Case | None = None, clean: str = "", on: Sequence[str] = ("n0",), **parts: Any
) -> Verdict:
    """The verdict on these findings; `clean` are checks that found nothing, on these nodes or in the job."""
    case = case or Case()
    outcomes = tuple(
        Outcome(check, Status.CLEAN, node)
        for check in clean.split()
        for node in ([""] if check.startswith("NET") else on)
    )
    result = Result(nodes=case.nodes, jobs=case.jobs, outcomes=outcomes, findings=arranged(findings, case), **parts)
    return judge(result, case)


def running(**changes: Any) -> Case:
    """A healthy job on n0 and n1."""
    return Case(jobs=(jobs.job(2, files=("job.log",), **changes),))


def measured(name: str = "normal", hosts: tuple[str, ...] = ("n0", "n1"), made: float = 470.0) -> Benchmark:
    """An all_reduce over these hosts that reaches `made` of 470 GB/s."""
    row = BenchRow(1 << 34, out_of_place=Timing(1000.0, made / 2, made))
    devices = tuple(BenchDevice(at, host, 0) for at, host in enumerate(hosts))
    table = Origin("all_reduce.txt", 1, "# nccl-tests")
    run = BenchRun("all_reduce", (row,), devices, len(hosts), source="all_reduce.txt", origin=table)
    wanted = Expectation("n0", 470.0, 420.0, 480.0, Confidence.HIGH)
    return Benchmark(run, Fit(plateau_gbs=made), wanted, name)


Given = dict[str, Any]


def finding_of(told: str | Given) -> Finding:
    """A finding as a row tells it: its check, or a table of it with its `where`; `line` is a source and a number."""
    parts = {"id": told} if isinstance(told, str) else dict(told)
    line, where = parts.pop("line", None), parts.pop("where", None)
    for name, kind in (("severity", Severity), ("confidence", Confidence)):
        if name in parts:
            parts[name] = kind[parts[name]]
    made: dict[str, Callable[[Any], Any]] = {
        "nodes": tuple,
        "jobs": tuple,
        "cost": lambda cost: Cost(*cost),
        "settings": lambda pairs: tuple((name, None if value == "null" else value) for name, value in pairs),
    }
    parts |= {name: made[name](part) for name, part in parts.items() if name in made}
    finding = seen(parts.pop("id"), line=Origin(*line, "NET/IB : Using") if line else LINE, **parts)
    return replace(finding, where=Where(**{name: tuple(part) for name, part in where.items()})) if where else finding


def silent(_: int, __: int, process: Process) -> Process:
    """A process of which no line names its network."""
    return replace(process, network="", messages=())


def job_of(told: Given) -> Job:
    """A job as a row tells it: keywords of `jobs.job`; of an event its kind may stand alone, as its text. A job that is
    not `connected` has no connection, one with `steps` went on, one that was not `met` has no rank."""
    given = {"files": ["job.log"]} | told
    own = {name: given.pop(name) for name in ("connected", "steps", "destroyed", "met") if name in given}
    given["events"] = [[event, event] if isinstance(event, str) else event for event in given.get("events", ())]
    job = jobs.of_row(given | {"files": tuple(given["files"])}, silent=silent)
    if not own.get("connected", True):
        job = replace(job, connections=no_connections())
    if "steps" in own:
        job = replace(job, progress=(Progress("progress.step", 9, Origin("job.log", 1), Origin("job.log", 9)),))
    if "destroyed" in own:
        job = replace(job, communicators=tuple(replace(each, destroyed=1) for each in job.communicators))
    return job if own.get("met", True) else replace(job, ranks=(), communicators=())


def case_of(told: Given) -> Case:
    """A case as a row tells it: a `job` or several; `nodes` by name; the addresses of `hosts`; hosts whose capture is
    `stale`; names that `ties` join."""
    case = Case(
        nodes=tuple(map(Node, told.get("nodes", ()))),
        ties=tuple(Tie(tuple(names)) for names in told.get("ties", ())),
        jobs=tuple(map(job_of, told.get("jobs", [told["job"]] if "job" in told else ()))),
    )
    if "hosts" in told:
        hosts = tuple(Host(name, tuple(addresses)) for name, addresses in told["hosts"].items())
        case = replace(case, identity=Identity(hosts))
    if "stale" in told:
        stale = tuple(Host(name, stale="booted after the last line of the job") for name in told["stale"])
        case = replace(case, identity=Identity(stale))
    return case


def verdict_of(
    case: Given | None,
    findings: list[str | Given] | None,
    clean: str | None = None,
    on: list[str] | None = None,
    benchmarks: list[list[Any]] | None = None,
) -> Verdict:
    """The verdict of a row: what is judged `clean`, `on` which nodes; benchmarks by their verdict, their bandwidth, and
    their hosts where those are not n0 and n1."""
    measurements = tuple(
        measured(name, made=made, **{"hosts": tuple(hosts[0])} if hosts else {})
        for name, made, *hosts in benchmarks or ()
    )
    told = map(finding_of, findings or ())
    return verdict(*told, case=case_of(case or {}), clean=clean or "", on=tuple(on or ("n0",)), benchmarks=measurements)


def shown(judgement: Verdict, wanted: Given) -> Given:
    """What a verdict has where `wanted` says what it should have; what is as wanted is shown as it was written."""
    have = {
        "state": judgement.state.name,
        "headline": judgement.headline,
        "confidence": judgement.confidence.name if judgement.confidence else "",
        "first": judgement.first,
        "causes": [cause.finding.id for cause in judgement.causes],
        "statuses": [cause.status.name for cause in judgement.causes],
        "mechanisms": [cause.mechanism for cause in judgement.causes],
        "contradicted": [bool(cause.contradicted_by) for cause in judgement.causes],
        "contradictions": [[line.text for line in cause.contradicted_by] for cause in judgement.causes],
        "places": [cause.finding.where.nodes for cause in judgement.causes],
        "messages": [cause.finding.message for cause in judgement.causes],
        "below": [[below.finding.id for below in cause.consequences] for cause in judgement.causes],
        "whys": [[below.why for below in cause.consequences] for cause in judgement.causes],
        "unrelated": [finding.id for finding in judgement.unrelated],
        "ruled_out": [part.what for part in judgement.ruled_out],
        "ruled_out_by": [part.by for part in judgement.ruled_out],
        "next": [(step.where, step.command) for step in judgement.next_evidence],
        "next_why": [step.why for step in judgement.next_evidence],
        "jobs": [(job.name, job.state.name) for job in judgement.jobs],
        "accused": [job.causes for job in judgement.jobs],
        "confirm": [cause.confirm[0] for cause in judgement.causes if cause.confirm],
        "not_explained": judgement.not_explained,
        "joined": judgement.joined,
    }
    return {name: value if matches(have[name], value) else have[name] for name, value in wanted.items()}
