"""JOB009: a process that ended by itself, and when the check stays silent."""

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.job.end.died import ProcessDied
from topodiag.evidence.nccl_log.grammar.job_lines import end_of, said_of
from topodiag.evidence.nccl_log.grammar.prefix import application
from topodiag.model.events import Progress
from topodiag.model.finding import Confidence, Finding, Severity
from topodiag.model.job import Event

EXCEPTION = "[rank11]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.35 GiB."
KILLED = "failed (exitcode: -9) local_rank: 0 (pid: 178) of binary: /usr/bin/python"
PLAIN = "ValueError: shapes do not match"


def end(text: str, line: int = 1, source: str = "job.log") -> Event:
    kind, details = end_of(text) or ("", {})
    assert kind == "ended"
    _, row = application(text) or ("", {})
    label = str(row.get("label", ""))
    return jobs.event(kind, text, "", level="APP", secondary=True, label=label, details=details, pid=-1,
                      rank=int(label or -1), origin=jobs.origin(text, line, source))  # fmt: skip


def error(kind: str, line: int, **changes: Any) -> Event:
    return jobs.event(kind, kind, "n0", origin=jobs.origin(kind, line), **changes)


def event_of(told: str | dict[str, Any], line: int) -> Event:
    """An event as a row tells it: a text, or a table with `text` or with the kind of an `error`, with its `line`,
    `source`, `ts` and more."""
    table = {"text": told} if isinstance(told, str) else dict(told)
    line = table.pop("line", line)
    if "error" in table:
        return error(table.pop("error"), line, **table)
    event = end(table.pop("text"), line, table.pop("source", "job.log"))
    return replace(event, ts=table.pop("ts", None), details={**event.details, **table})


@examples("lines", "wanted")
def test_how_a_process_ended(lines: list[str | dict[str, Any]], wanted: Wanted) -> None:
    """Lines of a log, empty ones for those that are left out."""
    events = [event_of(line, at) for at, line in enumerate(lines, 1) if line]
    assert shown(ProcessDied().judge(jobs.job(2, events=events)), wanted) == wanted


def found(*events: Event) -> list[Finding]:
    return list(ProcessDied().judge(jobs.job(2, events=list(events))).findings)


def test_the_exception_of_the_rank_that_died_first_is_the_cause() -> None:
    watchdogs = [error("watchdog", 5 + rank, rank=rank, level="APP", details={"op": "ALLREDUCE"}) for rank in range(8)]
    [finding] = found(end(EXCEPTION), *watchdogs)
    assert (finding.id, finding.severity, finding.confidence) == ("JOB009", Severity.ERROR, Confidence.HIGH)
    assert (
        finding.message
        == "rank 11 on n1 ran out of GPU memory (OutOfMemoryError: CUDA out of memory. Tried to allocate 4.35 GiB.)"
    )
    assert finding.where.ranks == (11,)


@examples("text")
def test_a_signal_from_outside_is_no_fault_of_the_job(text: str) -> None:
    expect(found(end(text)), message="*from outside with SIGTERM*", severity="WARNING")
    assert "SIGTERM" not in found(end(text, 1), end(KILLED, 9))[0].message


NO_PLACE = (
    "Warning  FailedScheduling  3m  default-scheduler  0/12 nodes are available: 12 Insufficient rdma/hca_shared_a.",
    "There are not enough slots available in the system to satisfy the 16",
    "(autoscaler +1m2s) Error: No available node types can fulfill resource request {'GPU': 8.0}. Add suitable",
    "srun: error: Unable to allocate resources: Requested node configuration is not available",
    "sbatch: error: Batch job submission failed: Node count specification invalid",
)


@pytest.mark.parametrize("text", NO_PLACE)
def test_a_job_for_which_there_is_no_place_never_started(text: str) -> None:
    bare = jobs.job(0, events=[end(text)])
    [finding] = ProcessDied().judge(bare).findings
    assert finding.message.startswith("the job did not start: there is no place for what it asks (")
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.MEDIUM)


@pytest.mark.parametrize("text", NO_PLACE)
def test_a_job_whose_ranks_are_there_found_its_place(text: str) -> None:
    assert found(end(text)) == []


@examples("text")
def test_what_only_sounds_like_it_is_no_end(text: str) -> None:
    assert end_of(text) is None or end_of(text)[1].get("how") != "no room"  # type: ignore[index]


@pytest.mark.parametrize(("first", "number", "ended"), [(9, 40, False), (9, 2, True), (1, 40, True)])
def test_an_end_above_the_first_steps_of_its_log_ended_no_job(first: int, number: int, ended: bool) -> None:
    """Two lines of progress may come out of a buffer, and steps above the end say nothing of what came after it."""
    steps = Progress(
        "progress.step", number, jobs.origin("step 1", first, "job.log"), jobs.origin("step 9", 99, "job.log")
    )
    job = replace(jobs.job(2, events=[end(EXCEPTION, 5)]), progress=(steps,))
    assert bool(ProcessDied().judge(job).findings) == ended


def test_the_node_that_failed_is_the_one_that_srun_names_not_the_one_that_tells_it() -> None:
    step = "slurmstepd: error: *** STEP 9.0 ON n0 CANCELLED AT 2026-04-07T11:40:12 DUE TO NODE FAILURE ***"
    expect(found(end(step, 1)), nodes=())
    text = "srun: error: Node failure on n1"
    kind, details = said_of(text) or ("", {})
    srun = jobs.event(kind, text, "", level="APP", secondary=True, details=details, pid=-1, origin=jobs.origin(text, 2))
    (named,) = found(end(step, 1), srun)
    assert named.where.nodes == ("n1",)


def test_what_a_launcher_says_below_an_exception_is_not_what_it_quotes() -> None:
    torn = "FileNotFoundError: [Errno 2] No such file or directory: 'a.pt'[Errno 2] No such file or directory: 'a.pt':"
    [finding] = found(end(torn, 2), end("srun: error: n1: task 0: Exited with exit code 1", 9))
    assert "(FileNotFoundError: [Errno 2]" in finding.message


@examples("times", "below", "named")
def test_an_exception_below_which_as_many_ranks_go_on_was_caught(times: int, below: list[int], named: str) -> None:
    caught = replace(end("ImportError: cannot import name 'x' from 'y'", 2), count=times)
    notes = [error("note", 10 + rank, rank=rank, level="APP") for rank in below]
    expect(found(caught, *notes, end(KILLED, 50), end(PLAIN, 60)), message=f"*({named}: *)")


@pytest.mark.parametrize(("line", "is_cause"), [(21, True), (400, False), (5, False)])
def test_an_exception_right_above_a_signal_from_outside_was_not_caught(line: int, is_cause: bool) -> None:
    stopped = end("FatalError: `Termination signal` is detected by the operating system.", line)
    messages = [finding.message for finding in found(end(PLAIN, 9), stopped)]
    assert any("ValueError" in message for message in messages) == is_cause
