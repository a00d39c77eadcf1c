"""Findings, cases and benchmarks from which tests of the verdict are made, and the verdict on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.checks import jobs
from tests.verdict.test_order import E, found
from topodiag.model.bench import BenchDevice, Benchmark, BenchRow, BenchRun, Expectation, Fit, Timing
from topodiag.model.case import Case
from topodiag.model.finding import Confidence, Finding, Outcome, Severity, Status
from topodiag.model.provenance import Origin
from topodiag.model.result import Result
from topodiag.model.verdict import Verdict
from topodiag.verdict.judge import judge
from topodiag.verdict.order import arranged

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
