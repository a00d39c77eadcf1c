"""JOB005 and JOB009: the first error, apart from its cascade, and a process that ended by itself."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.interface import quoted
from topodiag.checks.job.end.died import ProcessDied
from topodiag.checks.job.end.errors import FirstError
from topodiag.evidence.nccl_log.grammar.job_lines import end_of, said_of
from topodiag.evidence.nccl_log.grammar.prefix import application
from topodiag.model.events import Progress
from topodiag.model.finding import Confidence, Finding, Severity, Status
from topodiag.model.job import Communicator, Event

COMPLETION = "NET/IB: Got completion from peer 10.0.0.1<49872> with status=12 opcode=0 len=0 vendor err 129 hca mlx5_3"
CLOSED = "socketProgress: Connection closed by remote peer n1<51234>"


def open_init(world: Communicator) -> Communicator:
    return replace(world, completed=np.zeros_like(world.completed))


def port_error(rank: int = 9, **changes: object) -> Event:
    return jobs.event("ib completion", COMPLETION, "n1", rank=rank, details={"hca": "mlx5_3"}, **changes)


def closed(rank: int, **changes: object) -> Event:
    host = f"n{rank // 8}"
    return jobs.event("peer closed", CLOSED, host, rank=rank, secondary=True, **changes)


def test_the_completion_error_is_first_and_the_closed_connections_follow() -> None:
    events = [closed(rank, ts=90.0) for rank in range(8)] + [port_error(ts=100.0)]
    [finding] = FirstError().judge(jobs.job(events=events)).findings
    assert finding.severity is Severity.ERROR
    assert finding.where.ranks == (9,)
    assert finding.where.nics == ("mlx5_3",)
    assert finding.message.endswith("; 8 later errors on 8 ranks follow")
    assert "peer n0 (10.0.0.1)" in finding.observed


@examples("given", "wanted")
def test_the_first_error_of_a_job(given: jobs.Given, wanted: Wanted) -> None:
    texts = {"COMPLETION": COMPLETION, "REGISTER": COMPLETION.replace("status=12", "status=4")}
    events = [[kind, texts.get(text, text), *more] for kind, text, *more in given["events"]]
    assert shown(FirstError().judge(jobs.of_row({**given, "events": events})), wanted) == wanted


def test_with_consequences_only_the_peer_most_name_is_a_suspect() -> None:
    text = "socketProgress: Connection closed by remote peer 10.0.0.2<51234>"
    events = [jobs.event("peer closed", text, "n0", rank=rank, secondary=True) for rank in range(8)]
    expect(FirstError().judge(jobs.job(events=events)), confidence="LOW", nodes=("n1",), message="*8 of 8 reports*")


@examples("kind", "text", "place", "advice")
def test_the_advice_is_for_these_words_in_this_place(kind: str, text: str, place: str, advice: str) -> None:
    events = [jobs.event(kind, text, place=place), jobs.event("unwind", "transport.cc:1 -> 2", level="UNWIND")]
    [finding] = FirstError().judge(jobs.job(world=open_init, events=events)).findings
    assert advice in finding.fix[0]


def test_a_long_text_is_cut_between_words_so_that_no_number_is_left_half() -> None:
    text = "Watchdog caught collective operation timeout: " + "word " * 18 + "ran for 600021 milliseconds"
    expect(FirstError().judge(jobs.job(events=[jobs.event("cuda", text)])), message="*ran for ...")
    assert quoted("a  b\nc") == "a b c"
    assert len(quoted("x" * 500, 100)) == 100


@examples("text")
def test_a_warning_that_nccl_goes_on_after_is_never_the_first_error(text: str) -> None:
    went_on = jobs.event("other", text, pid=7, origin=jobs.origin(text, 3))
    unwind = jobs.event("unwind", "transport.cc:291 -> 2", level="UNWIND", secondary=True, pid=7)
    assert FirstError().judge(jobs.job(events=[went_on, unwind])).status is Status.CLEAN
    words = "Connect to 10.0.0.2<4000> failed : Network is unreachable"
    later = jobs.event("connect", words, pid=7, origin=jobs.origin(words, 9))
    [finding] = FirstError().judge(jobs.job(events=[went_on, later, unwind])).findings
    assert words in finding.message


def test_what_a_process_printed_after_its_own_error_did_not_cause_it() -> None:
    first = jobs.event("ib completion", COMPLETION, pid=5, origin=jobs.origin(COMPLETION, 10))
    fallout = "Cuda failure 'an illegal memory access was encountered'"
    after = jobs.event("cuda", fallout, pid=5, origin=jobs.origin(fallout, 30))
    expect(FirstError().judge(jobs.job(events=[first, after])), message="*Got completion*")
    elsewhere = jobs.event("cuda", fallout, "n1", pid=5, origin=jobs.origin(fallout, 30))
    [finding] = FirstError().judge(jobs.job(events=[first, elsewhere])).findings
    assert fallout in finding.message


def test_nvlink_sharp_that_fails_while_the_job_goes_on_is_a_warning() -> None:
    failed = [jobs.event("cuda", "Cuda failure 1 'invalid argument'", rank=rank, place="transport/nvls.cc:621")
              for rank in (0, 1)]  # fmt: skip
    [finding] = FirstError().judge(jobs.job(events=failed)).findings
    assert finding.severity is Severity.WARNING
    assert finding.message.startswith("NVLink SHARP: rank 0 on n0: Cuda failure 1")
    assert finding.message.endswith("init completed without it")
    event = jobs.event("other", "NCCL error: unhandled cuda error", "", level="APP", secondary=True)
    for job in (jobs.job(events=[*failed, event]), jobs.job(world=open_init, events=failed)):
        assert FirstError().judge(job).findings[0].severity is Severity.ERROR


@pytest.mark.parametrize("ts", [None, 100.0])
def test_a_warning_that_its_process_survived_is_not_the_first_error_beside_one_that_ended_a_process(
    ts: float | None,
) -> None:
    later = None if ts is None else ts + 7200
    warned = jobs.event("plugin", "NET/OFI aws-ofi-nccl initialization failed", "n0", pid=4, ts=ts)
    expect(FirstError().judge(jobs.job(events=[warned, port_error(pid=5, ts=later)])), message="*Got completion*")
    unwind = jobs.event("unwind", "init.cc:1303 -> 2", "n0", pid=4, level="UNWIND", secondary=True)
    expect(FirstError().judge(jobs.job(events=[warned, unwind, port_error(pid=5, ts=later)])), message="*aws-ofi-nccl*")


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
