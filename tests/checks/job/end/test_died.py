"""JOB009: a process that ended by itself, and when the check stays silent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import jobs
from topodiag.checks.job.end.died import ProcessDied
from topodiag.evidence.nccl_log.grammar.job_lines import end_of, said_of
from topodiag.evidence.nccl_log.grammar.prefix import application
from topodiag.model.finding import Confidence, Finding, Severity, Status
from topodiag.model.job import Event
from topodiag.model.progress import Progress

OOM = "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0."
TASK = "srun: error: n1: task 8: Out Of Memory"
EXCEPTION = "[rank11]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.35 GiB."
LIMIT = "slurmstepd: error: *** JOB 8 ON n1 CANCELLED AT 2024-04-20T09:09:37 DUE TO TIME LIMIT ***"
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


def found(*events: Event) -> list[Finding]:
    return list(ProcessDied().judge(jobs.job(2, events=list(events))).findings)


def test_the_exception_of_the_rank_that_died_first_is_the_cause() -> None:
    watchdogs = [error("watchdog", 5 + rank, rank=rank, level="APP", details={"op": "ALLREDUCE"}) for rank in range(8)]
    [finding] = found(end(EXCEPTION), *watchdogs)
    assert (finding.id, finding.severity, finding.confidence) == ("JOB009", Severity.ERROR, Confidence.HIGH)
    assert finding.message == "rank 11 on n1 ended with an exception that nobody caught (OutOfMemoryError)"
    assert finding.where.ranks == (11,)


@pytest.mark.parametrize(("line", "cause"), [(40, "was cancelled"), (400, "crashed"), (9, "crashed")])
def test_a_crash_right_below_ctrl_c_is_its_end(line: int, cause: str) -> None:
    [finding] = found(
        replace(end(PLAIN, 10), details={"how": "cancelled"}), end("Segmentation fault (core dumped)", line)
    )
    assert cause in finding.message


@pytest.mark.parametrize(
    ("texts", "who", "fix"),
    [
        pytest.param([f"[rank{rank}]: {PLAIN}" for rank in (3, 1, 2)], "ranks 1-3 on n0", "ranks 1-3 raised", id="1"),
        pytest.param(
            [f"[rank3]: {PLAIN}", "[rank1]: KeyError: 'x'"], "rank 3 on n0", "the other ranks only report", id="another"
        ),
    ],
)
def test_all_ranks_that_raised_one_exception_are_named(texts: list[str], who: str, fix: str) -> None:
    [finding] = found(*(end(text, at) for at, text in enumerate(texts, 1)))
    assert finding.message == f"{who} ended with an exception that nobody caught (ValueError)"
    assert fix in finding.fix[0]


QUOTES = "[rank1]: RuntimeError: Failed to import the model because of the following error:"


@pytest.mark.parametrize(
    ("first", "at", "named"),
    [
        pytest.param(QUOTES, 9, "ImportError", id="the root stands below"),
        pytest.param(QUOTES, 900, "RuntimeError", id="far below stands another one"),
        pytest.param(QUOTES[:-1], 9, "RuntimeError", id="the message quotes nothing"),
        pytest.param(
            "[rank1]: KeyError: Caught KeyError in replica 0 on device 0.", 9, "ImportError", id="torch caught it"
        ),
    ],
)
def test_an_exception_that_another_one_quotes_is_the_root(first: str, at: int, named: str) -> None:
    [finding] = found(end(first, 2), end("[rank1]: ImportError: cannot import name 'x' from 'y'", at))
    assert finding.message.endswith(f"({named})")


def test_what_a_launcher_says_below_an_exception_is_not_what_it_quotes() -> None:
    torn = "FileNotFoundError: [Errno 2] No such file or directory: 'a.pt'[Errno 2] No such file or directory: 'a.pt':"
    [finding] = found(end(torn, 2), end("srun: error: n1: task 0: Exited with exit code 1", 9))
    assert finding.message.endswith("(FileNotFoundError)")


@pytest.mark.parametrize(
    ("times", "below", "named"),
    [
        pytest.param(2, [0, 1], "ValueError", id="all that raised it go on"),
        pytest.param(3, [0, 1], "ImportError", id="one is missing"),
        pytest.param(1, [0, 1], "ImportError", id="a single one may have ended"),
    ],
)
def test_an_exception_below_which_as_many_ranks_go_on_was_caught(times: int, below: list[int], named: str) -> None:
    caught = replace(end("ImportError: cannot import name 'x' from 'y'", 2), count=times)
    notes = [error("note", 10 + rank, rank=rank, level="APP") for rank in below]
    [finding] = found(caught, *notes, end(KILLED, 50), end(PLAIN, 60))
    assert finding.message.endswith(f"({named})")


@pytest.mark.parametrize(("last", "named"), [("1", ["ValueError"]), ("", [])])
def test_an_exception_counts_where_the_launchers_own_ends_the_text(last: str, named: list[str]) -> None:
    launcher = end("subprocess.CalledProcessError: Command 'train.py' returned non-zero exit status 1.", 40)
    findings = found(end(PLAIN, 10), replace(launcher, details={**launcher.details, "last": last}))
    assert [finding.message.rpartition("(")[2].rstrip(")") for finding in findings] == named


REFERS = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
BETWEEN = "RuntimeError: Worker failed, please check the stack trace above for the root cause"
OF_A_LOGGER = "ERROR 03-01 10:00:10 worker_base.py:620] torch.OutOfMemoryError: CUDA out of memory."
UNRELATED = "ImportError: cannot import name 'x' from 'y'"


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        pytest.param([UNRELATED, OF_A_LOGGER, REFERS], "OutOfMemoryError", id="the nearest one above"),
        pytest.param([OF_A_LOGGER, BETWEEN, REFERS], "OutOfMemoryError", id="and that one refers to another"),
        pytest.param([REFERS], "RuntimeError", id="none stands above"),
        pytest.param([KILLED, REFERS], "killed by signal 9 (exit code -9", id="a signal"),
        pytest.param(["ERROR worker 3 was killed by a signal", REFERS], "died", id="a worker that died"),
        pytest.param(
            [OF_A_LOGGER, "ERROR worker 3 was killed by a signal", REFERS], "OutOfMemoryError", id="and why it died"
        ),
        pytest.param([OF_A_LOGGER, "RuntimeError: no port"], "RuntimeError", id="it refers to none"),
    ],
)
def test_an_exception_that_says_its_cause_stands_above_follows_from_the_one_above(texts: list[str], named: str) -> None:
    *above, last = [end(text, at) for at, text in enumerate(texts, 1)]
    [finding] = found(*above, replace(last, details={**last.details, "last": "1"}))
    assert finding.message.strip("()").endswith(named)


ROOT = ["Root Cause (first observed failure):", "  rank      : 3 (local_rank: 3)"]


@pytest.mark.parametrize(
    ("kind", "texts", "is_cause"),
    [
        pytest.param("peer closed", [*ROOT, "  exitcode  : -9 (pid: 3)"], True, id="what torch saw fail first"),
        pytest.param(
            "peer closed",
            ["mpirun noticed that process rank 3 with PID 7 on node n0 exited on signal 9 (Killed)."],
            True,
            id="what mpirun saw end first",
        ),
        pytest.param("watchdog", [*ROOT, "  exitcode  : -9 (pid: 3)"], False, id="after a hang"),
        pytest.param("peer closed", ["Killed"], False, id="nobody says that it was the first"),
    ],
)
def test_a_peer_that_is_gone_kills_no_rank_that_failed_first(kind: str, texts: list[str], is_cause: bool) -> None:
    events = [end(text, at) for at, text in enumerate(texts, 10)]
    messages = [finding.message for finding in found(error(kind, 2, level="APP", secondary=True), *events)]
    assert [message.partition(" (")[0] for message in messages] == ["rank 3 on n0 was killed by signal 9"] * is_cause


@pytest.mark.parametrize(("above", "who"), [(ROOT, "rank 3 on n1"), ([], "rank 8 on n1")])
def test_a_task_of_slurms_is_no_rank_where_torchs_launcher_names_ranks(above: list[str], who: str) -> None:
    [finding] = found(*(end(text, at) for at, text in enumerate([*above, TASK], 1)))
    assert finding.message == f"{who} was killed for using more host memory than allowed"


def test_the_rank_that_called_abort_is_named() -> None:
    [finding] = found(end("MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD"))
    assert finding.message == "rank 3 on n0 ended with an error code"


RETURNED = "Primary job  terminated normally, but 1 process returned"
DETECTED = "mpirun detected that one or more processes exited with non-zero status, thus causing"


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        pytest.param(
            [RETURNED, "mpirun noticed that process rank 2 with PID 0 on node n4 exited on signal 9 (Killed)."],
            "rank 2 on n4 was killed by signal 9", id="a signal",
        ),
        pytest.param(
            [RETURNED, "mpirun noticed that process rank 2 with PID 0 on node n4 exited on signal 15 (Terminated)."],
            "rank 2 on n4 was ended from outside with SIGTERM", id="SIGTERM",
        ),
        pytest.param(
            [DETECTED, "  Process name: [[44919,1],25]", "  Exit code:    137"], "rank 25 was killed", id="its code",
        ),
        pytest.param(
            ["=   PID 4242 RUNNING AT n5", "=   EXIT CODE: 9", "", "", "",
             "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"],
            "on n5 was killed by signal 9", id="Hydra gives the signal as a code first",
        ),
        pytest.param([DETECTED, "  Process name: [[44919,1],25]"], "rank 25 ended with an error code", id="no signal"),
        pytest.param(
            ["  exitcode  : 1 (pid: 178)", "  exitcode  : -9 (pid: 179)"], "exit code 1)", id="a code of its own",
        ),
        pytest.param([RETURNED, *[""] * 9, "Killed"], "a process ended with an error code", id="far below"),
    ],
)  # fmt: skip
def test_the_signal_below_a_launchers_word_that_a_process_ended_says_more(texts: list[str], says: str) -> None:
    [finding] = found(*(end(text, at) for at, text in enumerate(texts, 1) if text))
    assert says in finding.message


def test_a_summary_that_quotes_no_exception_leaves_all_of_them() -> None:
    [finding] = found(
        end(EXCEPTION, 1), end("  rank      : 3 (local_rank: 3)", 10), end("  exitcode  : -9 (pid: 3)", 11)
    )
    assert "OutOfMemoryError" in finding.message


@pytest.mark.parametrize(("far", "named"), [(20, "ValueError"), (900, "ModuleNotFoundError")])
def test_the_exception_that_torchs_summary_quotes_is_that_of_the_job(far: int, named: str) -> None:
    [finding] = found(
        end("ModuleNotFoundError: No module named 'matplotlib'", 2),
        end("E0503 08:45:08.632000 4711 api.py:986] failed (exitcode: 1) local_rank: 0 (pid: 41)", 380),
        end("  rank      : 0 (local_rank: 0)", 400),
        end("  ValueError: the number of microbatches is no multiple of 7", 400 + far),
    )
    assert f"({named})" in finding.message


def test_a_rank_killed_for_memory_is_named_by_slurms_next_line() -> None:
    [finding] = found(end(OOM, 1), end(TASK, 2))
    assert finding.message == "rank 8 on n1 was killed for using more host memory than allowed"


def test_a_time_limit_and_a_preemption_are_no_faults_and_end_the_job() -> None:
    [finding] = found(end(LIMIT))
    assert finding.message == "the job on n1 reached its time limit"
    assert finding.fix[0].startswith("no fault by itself")
    assert finding.severity is Severity.WARNING


def test_torchs_summary_names_rank_and_host() -> None:
    lines = ["  host      : n1", "  rank      : 3 (local_rank: 3)", "  exitcode  : -9 (pid: 30112)"]
    [finding] = found(*(end(text, 10 + at) for at, text in enumerate(lines)))
    assert finding.message == "rank 3 on n1 was killed by signal 9 (exit code -9)"


def test_what_says_why_comes_before_the_code_that_a_launcher_prints_first() -> None:
    [finding] = found(end(KILLED, 1), end(EXCEPTION, 2))
    assert "OutOfMemoryError" in finding.message


def test_that_somebody_cancelled_a_job_is_no_fault() -> None:
    [finding] = found(end("slurmstepd: error: *** STEP 8.0 ON n1 CANCELLED AT 2024-04-20T09:09:37 ***"))
    assert finding.message == "the job on n1 was cancelled: by a user, a script or the scheduler"
    assert finding.severity is Severity.INFO


@pytest.mark.parametrize(
    "text",
    [
        "  exitcode  : -15 (pid: 178)",
        "  [SignalInfo: *** SIGTERM (@0x1) received by PID 92 (TID 0x7f8e8c8c1740) from PID 1 ***]",
        "[launch.py:328:sigkill_handler] Main process received SIGTERM, exiting",
        "./run.sh: line 3: 12345 Terminated              python train.py",
        "mpirun noticed that process rank 0 with PID 3 on node n1 exited on signal 15 (Terminated).",
    ],
)
def test_a_signal_from_outside_is_no_fault_of_the_job(text: str) -> None:
    [finding] = found(end(text))
    assert "from outside with SIGTERM" in finding.message
    assert finding.severity is Severity.WARNING
    assert "SIGTERM" not in found(end(text, 1), end(KILLED, 9))[0].message


@pytest.mark.parametrize(
    "events",
    [
        [error("watchdog", 1), end(LIMIT, 9)],
        [error("ib completion", 1), end(EXCEPTION, 9)],
        [end(KILLED, 1), error("watchdog", 9)],
        [end(PLAIN)],
    ],
    ids=["a time limit after a hang", "an exception after an RDMA error", "a signal beside a hang",
         "an exception that may have been caught"],
)  # fmt: skip
def test_an_end_that_follows_from_something_else_is_silent(events: list[Event]) -> None:
    outcome = ProcessDied().judge(jobs.job(2, events=events))
    assert outcome.status is not Status.FINDING


@pytest.mark.parametrize(("line", "is_cause"), [(21, True), (400, False), (5, False)])
def test_an_exception_right_above_a_signal_from_outside_was_not_caught(line: int, is_cause: bool) -> None:
    stopped = end("FatalError: `Termination signal` is detected by the operating system.", line)
    messages = [finding.message for finding in found(end(PLAIN, 9), stopped)]
    assert any("ValueError" in message for message in messages) == is_cause


def test_a_job_without_lines_of_a_launcher_is_unknown() -> None:
    assert ProcessDied().judge(jobs.job(2)).status is Status.UNKNOWN


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


@pytest.mark.parametrize(
    "text",
    ["Insufficient shared memory for the data loader", "0/12 nodes are available", "enough slots available: 16",
     "Normal  Scheduled  2m  default-scheduler  Successfully assigned ml/worker-0 to gpu-17"],
)  # fmt: skip
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
    (finding,) = found(end(step, 1))
    assert finding.where.nodes == ()
    text = "srun: error: Node failure on n1"
    kind, details = said_of(text) or ("", {})
    srun = jobs.event(kind, text, "", level="APP", secondary=True, details=details, pid=-1, origin=jobs.origin(text, 2))
    (named,) = found(end(step, 1), srun)
    assert named.where.nodes == ("n1",)
