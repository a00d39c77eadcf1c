"""What still ran while a job's output was written: counted over the whole file, and part of the JSON."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import program
from tests.tables import examples
from topodiag.app import diagnose
from topodiag.app.case.jobs import LogOptions
from topodiag.app.logs import logs
from topodiag.cli import cli
from topodiag.cli.errors import Outcome
from topodiag.evidence.intake.pieces import Intake, Piece
from topodiag.evidence.intake.reading import blocks_of
from topodiag.evidence.nccl_log.input.streams import Reading

STEP = "[2026-03-01 11:00:{:02d}] iteration {:8d}/  500000 | consumed samples: {:12d} | lm loss: 2.3E+00 |"
ENDED = "[rank0]: torch.OutOfMemoryError: CUDA out of memory."
SERVED = 'INFO:     10.0.0.1:1234 - "POST /v1/completions HTTP/1.1" {} OK'


def _progress(tmp_path: Path, lines: list[str]) -> list[dict[str, object]]:
    path = tmp_path / "job.out"
    path.write_text("\n".join([*lines, ENDED, ""]), encoding="utf-8")
    done = CliRunner().invoke(cli, ["diagnose", str(path), "--format", "json"], obj=Outcome())
    progress: list[dict[str, object]] = json.loads(done.stdout)["progress"]
    return progress


def test_steps_are_counted_with_their_first_and_last_line_and_the_longest_gap(tmp_path: Path) -> None:
    lines = [STEP.format(at, number, number * 256) for number, at in ((1, 1), (2, 4), (3, 30), (4, 33))]
    (steps,) = _progress(tmp_path, lines)
    assert (steps["kind"], steps["number"]) == ("progress.step", 4)
    assert (steps["first_line"], steps["last_line"], steps["longest_gap_s"]) == (1, 4, 26.0)


def test_a_text_of_which_nothing_else_is_known_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, opened = tmp_path / "out.log", list[str]()
    file.write_text("[1,     2] loss: 2.200\nTraceback (most recent call last):\nkilled\n", encoding="utf-8")

    def counted(intake: Intake, piece: Piece, reading: Reading) -> AbstractContextManager[Iterator[bytes]]:
        opened.append(piece.name)
        return blocks_of(intake, piece, reading)

    monkeypatch.setattr("topodiag.app.case.progress.blocks_of", counted)
    diagnose.diagnose([str(file)])
    assert opened == [str(file)]


def test_requests_that_failed_are_no_progress(tmp_path: Path) -> None:
    lines = [STEP.format(1, 1, 1), STEP.format(2, 2, 2), STEP.format(3, 3, 3), SERVED.format(200), SERVED.format(503)]
    document = {str(record["kind"]): record["number"] for record in _progress(tmp_path, lines)}
    assert document == {"progress.step": 3, "progress.request": 1}


def test_each_rank_has_its_own_count(tmp_path: Path) -> None:
    line = "[rank{}]: {{'loss': 1.2, 'grad_norm': 0.3, 'learning_rate': 1e-05, 'epoch': 0.{}}}"
    ranks = [(0, 1), (0, 2), (1, 1), (0, 3)]
    records = _progress(
        tmp_path, [line.format(*rank) for rank in ranks] + [STEP.format(at, at, at) for at in (1, 2, 3)]
    )
    assert {record["rank"]: record["number"] for record in records} == {0: 3, 1: 1, None: 3}


def test_several_processes_find_what_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in range(3):
        lines = [*(STEP.format(at, at, at) for at in range(1, 5 + rank)), *TRACEBACK.splitlines(), ENDED]
        (tmp_path / f"rank{rank}.log").write_text("\n".join(lines), encoding="utf-8")
    found = []
    for size in (1 << 20, 0):
        monkeypatch.setattr("topodiag.app.case.progress.MUCH_BYTES", size)
        (job,) = logs([str(tmp_path)], options=LogOptions(workers=2)).jobs
        found.append((job.progress, job.events, job.cut_logs))
    assert found[0] == found[1]
    assert [line.number for line in found[0][0]] == [4, 5, 6]


@examples("line", "says")
def test_a_training_without_a_line_of_nccl_is_unknown_and_no_error(line: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("".join(f"{line.format(n=n)}\n" for n in range(1, 5)), encoding="utf-8")
    done = program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path)
    assert done.returncode == 0
    assert says in done.stdout
    assert done.stdout.startswith("? UNKNOWN")


TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 9, in main
    fetch(url)
"""


@examples("above", "error", "below", "says")
def test_a_process_that_ends_with_a_traceback_failed_and_one_that_goes_on_did_not(
    above: str, error: str, below: str, says: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "train.log").write_text(f"{above}\n{TRACEBACK}{error}\n{below}\n", encoding="utf-8")
    done = program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path)
    assert all(part in done.stdout for part in says)
    assert done.returncode == (says[0] == "FAILED")


BOUND = (
    "[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use)."
)
WATCHDOG = (
    "[E ProcessGroupNCCL.cpp:828] [Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, "
    "OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1801501 milliseconds"
)
PREEMPTED = "slurmstepd: error: *** JOB {} ON n7 CANCELLED AT 2026-03-01T09:14:02 DUE TO PREEMPTION ***"
STOPPED = "slurmstepd: error: *** JOB {} ON n7 CANCELLED AT 2026-03-02T09:14:02 ***"
STEPS = [f"step {n}00 loss 2.31" for n in range(1, 301)]
LOST_ATOMS = "ERROR: Lost atoms: original 4000 current 3999 (src/thermo.cpp:494)"
NO_PROGRAM = "/var/spool/slurmd/job7/slurm_script: line 364: python: command not found"
USAGE = "train.py: error: unrecognized arguments: --foo"
ROWS = [f"row {n} of the table of graphs was read and written" for n in range(2000)]
HYDRA = "=   EXIT CODE: 174"
LAUNCHER_FELL = [
    *TRACEBACK.splitlines(),
    "subprocess.CalledProcessError: Command '['python', 'train.py']' returned non-zero exit status 2.",
]
FELL = [*TRACEBACK.splitlines(), "KeyError: 'x'"]
SUMMARY = [
    "Root Cause (first observed failure):",
    "[0]:",
    "  host      : n1",
    "  rank      : 0 (local_rank: 0)",
    "  exitcode  : 1 (pid: 1886)",
    "srun: error: n1: task 0: Exited with exit code 1",
]
SUBMITTED = "000 (8124.000.000) 2024-07-11 10:22:03 Job submitted from host: <10.0.0.4:9618>"
EXECUTING = "001 (8124.000.000) 2024-07-11 10:22:03 Job executing on host: <10.0.0.5:9618>"
RETURNED = [
    "005 (8124.000.000) 2024-07-11 10:23:03 Job terminated.",
    "\t(1) Normal termination (return value {})",
    "...",
]
CONDOR = [SUBMITTED, "...", EXECUTING, "...", *RETURNED]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([BOUND, WATCHDOG.format(0), WATCHDOG.format(1)], ("HUNG", "job 1", "another process has its port")),
        ([*STEPS[:9], *FELL, PREEMPTED.format(7), *STEPS[:60]], ("UNKNOWN", "an earlier run", "was preempted")),
        ([*FELL, PREEMPTED.format(7), "loading", *FELL, "caught", STOPPED.format(8)], ("UNKNOWN", "an earlier run")),
        ([*STEPS[:9], LOST_ATOMS, *STEPS[:60]], ("UNKNOWN", "an earlier run", "(Lost atoms")),
        ([*STEPS[:60], LOST_ATOMS, "Last command: run 1000"], ("FAILED", "(Lost atoms")),
        ([*FELL, *STEPS, "Killed"], ("FAILED", "signal 9", "train.log:305")),
        (["Killed", *FELL, *STEPS, "Killed"], ("FAILED", "signal 9", "train.log:306")),
        ([USAGE, "loading", *FELL], ("FAILED", "train.py:9 raised", "train.log:6", "job 1")),
        ([*FELL, NO_PROGRAM, "loading", *FELL, "ranks", *FELL], ("FAILED", "train.py:9 raised", "train.log:15")),
        ([NO_PROGRAM, "loading"], ("FAILED", "its program is not there")),
        ([USAGE, *LAUNCHER_FELL], ("FAILED", "does not take the arguments", "train.log:1")),
        ([USAGE, *ROWS], ("UNKNOWN", "an earlier run")),
        ([LOST_ATOMS, *ROWS], ("UNKNOWN", "an earlier run", "(Lost atoms")),
        ([LOST_ATOMS, *ROWS, "srun: error: n1: task 3: Exited with exit code 1"], ("FAILED", "(Lost atoms")),
        (["loading", HYDRA, *ROWS[:400], HYDRA, *ROWS[400:700]], ("UNKNOWN", "an earlier run")),
        (["loading", HYDRA, *ROWS[:400], HYDRA, *ROWS[400:409]], ("FAILED", "exit code 174")),
        ([*ROWS, USAGE], ("FAILED", "does not take the arguments")),
        ([USAGE, *ROWS, f"3: {USAGE}"], ("FAILED", "does not take the arguments")),
        ([*FELL, *SUMMARY, *STEPS[:60]], ("UNKNOWN", "an earlier run")),
        ([*STEPS[:9], *FELL, *SUMMARY, *STEPS[9:18]], ("FAILED", "KeyError")),
        ([line.format(code) for code in (126, 0) for line in CONDOR], ("UNKNOWN", "an earlier run")),
        ([line.format(code) for code in (0, 126) for line in CONDOR], ("FAILED",)),
    ],
    ids=["the port of another launch", "steps below the end", "another job of the scheduler",
         "a simulation that another one follows", "a simulation that ends", "started again", "twice",
         "arguments of an earlier start", "another command of the script", "the command of this start",
         "arguments of this start", "arguments of a start far above",
         "a fatal error far above", "a fatal error far above the end of its launcher",
         "mpirun ended all, twice, above the last launch", "mpirun ended all",
         "arguments below the work of another command",
         "arguments that a rank repeats",
         "torch's summary above later steps", "torch's summary above steps out of a buffer",
         "a job of HTCondor's after one that failed",
         "one that failed, the last of a log of HTCondor's"],
)  # fmt: skip
def test_the_last_launch_of_a_log_says_how_the_job_is(lines: list[str], says: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("\n".join([*lines, ""]), encoding="utf-8")
    done = program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path)
    assert all(part in done.stdout for part in says)


@pytest.mark.parametrize(
    "lines",
    [
        [PREEMPTED.format(7), *STEPS[:9]],
        [PREEMPTED.format(7), PREEMPTED.format(7).replace("n7", "n8").replace("JOB 7", "STEP 7.0")],
        [BOUND, "RuntimeError: The server socket has failed to listen on any local network address."],
    ],
    ids=["steps out of a buffer", "several nodes of one job", "the port of this launch"],
)
def test_one_launch_is_one_job(lines: list[str], tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("\n".join([*STEPS[:9], *lines, ""]), encoding="utf-8")
    assert "job 1" not in program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path).stdout


def test_a_start_below_an_end_is_a_later_launch_in_logs_of_several_ranks(tmp_path: Path) -> None:
    start = "I0301 11:00:01.123456 4711 tcp_utils.cc:130] Successfully connected to 10.0.0.1:39256"
    end = ["Traceback (most recent call last):", '  File "train.py", line 3, in main', "KeyError: 'eval'"]
    for rank in range(2):
        text = "\n".join([start, *end, start, "the model is loaded", ""])
        (tmp_path / f"workerlog.{rank}").write_text(text, encoding="utf-8")
    done = program.run("diagnose", ".", "--width", "200", cwd=tmp_path)
    assert done.stdout.startswith("? UNKNOWN")
    assert "an earlier run failed" in done.stdout


LEFT = (
    "[rank7]:[E814 01:57:12.984 ProcessGroupNCCL.cpp:542] [Rank 7] Collective WorkNCCL(SeqNum=19, OpType=ALLREDUCE, "
    "NumelIn=196608, NumelOut=196608, Timeout(ms)=600000) raised the following async exception: NCCL error: unhandled "
    "system error (run with NCCL_DEBUG=INFO for details)"
)


SERVICE = "n1:27:39 [0] proxy.cc:1458 NCCL WARN [Service thread] Accept failed Resource temporarily unavailable"
REFUSED = LEFT.replace("unhandled system error", "invalid usage")
RUN_STOP = (
    ':::MLLOG {"event_type": "INTERVAL_END", "key": "run_stop", "value": null, "metadata": {"status": "success"}}'
)


BELOW = {"a peer": LEFT, "NCCL's own thread": SERVICE, "a refused call": REFUSED}


@examples("last", "below", "state")
def test_what_ranks_meet_when_others_leave_is_no_failure_below_the_last_step(
    last: str, below: str, state: str, tmp_path: Path
) -> None:
    steps = [f"step {n}0/2000 | loss 0.{n}" for n in range(1, 9)]
    (tmp_path / "train.log").write_text(
        "\n".join([*steps, last.replace("RUN STOP", RUN_STOP), BELOW[below], ""]), encoding="utf-8"
    )
    assert state in program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path).stdout


WORKER = "RuntimeError: DataLoader worker (pid 85171) is killed by signal: Broken pipe. "


@pytest.mark.parametrize(
    ("below", "state"),
    [(["generated a batch for the next index"] * 4000, "UNKNOWN"), (["generated a batch"] * 40, "FAILED"),
     (["generated a batch for the next index"] * 4000 + [NO_PROGRAM], "FAILED")],
    ids=["the text goes on for long", "it ends soon", "and something ends it"],
)  # fmt: skip
def test_a_loader_that_lost_a_worker_far_above_ended_nothing(below: list[str], state: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("\n".join(["start", WORKER, *below, ""]), encoding="utf-8")
    assert state in program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path).stdout


SHARP = "n{}:1:9 [0] NCCL WARN NET/IB :SHARP coll init error: Cannot create SHArP job(-11)"
NO_VERBS = "[1.5] [n1:117  :0] ib_md.c:1933 UCX  ERROR ibv_open_device(mlx5_9) failed: No such file or directory"
NO_DEVICE = "n{}:117:940 [0] transport/net_ib.cc:148 NCCL WARN NET/IB : Unable to open device mlx5_9"


@pytest.mark.parametrize(
    ("lines", "steps", "state"),
    [([SHARP.format(1), SHARP.format(2)], 9, "UNKNOWN"), ([SHARP.format(1), SHARP.format(2)], 0, "AT RISK"),
     ([NO_VERBS, NO_DEVICE.format(1)], 9, "UNKNOWN"), ([NO_VERBS, NO_DEVICE.format(1)], 0, "FAILED"),
     ([NO_VERBS, NO_DEVICE.format(1), NO_DEVICE.format(2)], 9, "AT RISK")],
    ids=["SHARP, and it works", "SHARP alone", "RDMA that one node does not need", "RDMA alone", "RDMA of two nodes"],
)  # fmt: skip
def test_what_the_work_of_a_job_goes_on_without_is_a_remark(
    lines: list[str], steps: int, state: str, tmp_path: Path
) -> None:
    done = [f"step {n}0/2000 | loss 0.{n}" for n in range(1, steps + 1)]
    (tmp_path / "train.log").write_text("\n".join([*lines, *done, ""]), encoding="utf-8")
    assert state in program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path).stdout


KILLED = "bash: line 1: 25484 Killed                  python3 -W ignore train.py --epochs 10"


@pytest.mark.parametrize(
    ("above", "state"),
    [("Finished epoch 9", "FAILED"), ("Finished the program", "UNKNOWN"), ("Training complete.", "UNKNOWN")],
    ids=["it was at work", "its work was done", "by other words"],
)
def test_a_program_that_is_killed_when_its_work_is_done_did_not_fail(above: str, state: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(f"epoch 9 is on its way\n{above}\n{KILLED}\n", encoding="utf-8")
    assert state in program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path).stdout


LIMIT = "slurmstepd: error: *** JOB 40 ON n1 CANCELLED AT 2025-09-18T15:23:24 DUE TO TIME LIMIT ***"
DAEMON = "ORTE has lost communication with a remote daemon."


@pytest.mark.parametrize(
    ("lines", "state"),
    [([LIMIT], "UNKNOWN"), ([LIMIT, DAEMON], "UNKNOWN"), ([DAEMON], "FAILED")],
    ids=["its limit", "and what others met then", "what others met alone"],
)
def test_what_others_meet_when_a_job_reaches_its_limit_is_no_failure(
    lines: list[str], state: str, tmp_path: Path
) -> None:
    steps = [f"step {n}0/2000 | loss 0.{n}" for n in range(1, 9)]
    (tmp_path / "train.log").write_text("\n".join([*steps, *lines, ""]), encoding="utf-8")
    assert state in program.run("diagnose", "train.log", "--width", "200", cwd=tmp_path).stdout
