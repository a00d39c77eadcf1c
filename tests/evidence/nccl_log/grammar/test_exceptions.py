"""Ends of one process in the words of interpreters, shells and launchers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pasted import first_of, loud
from topodiag.evidence.nccl_log.grammar.ends import end_of, label_of

CALLED = "subprocess.CalledProcessError: Command '['/usr/bin/python', 'train.py', '--lr', '1e-4']'"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[rank3]: AssertionError", {"how": "exception", "what": "AssertionError", "uncaught": "1"}),
        ("2025-10-31 03:11:02,478 - train - INFO - [rank0]: AssertionError", {"how": "exception", "uncaught": "1"}),
        ("[rank3]: ValueError", {"how": "exception", "what": "ValueError", "uncaught": "1"}),
        ("[rank3]: app.loader.ShardError", {"how": "exception", "what": "ShardError", "uncaught": "1"}),
        ("2025-01-01 01:01:01,100 - app - ERROR - StopIteration", {"how": "exception", "uncaught": ""}),
        ("MemoryError", {"how": "exception", "what": "MemoryError", "uncaught": ""}),
        ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 12 GiB", {"how": "exception"}),
        ("KeyboardInterrupt", {"how": "cancelled"}),
        ("^CKeyboardInterrupt", {"how": "cancelled"}),
        ("[rank1]: KeyboardInterrupt", {"how": "cancelled"}),
        (f"{CALLED} died with <Signals.SIGKILL: 9>.", {"how": "killed"}),
        (f"{CALLED} died with <Signals.SIGSEGV: 11>.", {"how": "crash"}),
        (f"{CALLED} died with <Signals.SIGTERM: 15>.", {"how": "cancelled"}),
        (f"{CALLED} died with <Signals.SIGABRT: 6>.", {"how": "crash"}),
        ("mpirun noticed that process rank 3 with PID 0 on node n2 exited on signal 6 (Aborted).", {"how": "crash"}),
        (f"{CALLED} returned non-zero exit status 1.", {"how": "exception", "what": "CalledProcessError"}),
        ("torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with signal SIGKILL",
         {"how": "killed"}),
        ("mpirun noticed that process rank 3 with PID 0 on node n2 exited on signal 9 (Killed).",
         {"how": "killed", "named_rank": "3", "host": "n2"}),
        ("prterun noticed that process rank 1 with PID 5 on node n2 exited on signal 7 (Bus error).",
         {"how": "crash", "named_rank": "1", "host": "n2"}),
        ("=   KILLED BY SIGNAL: 9 (Killed)", {"how": "killed"}),
        ("=   RANK 5 PID 77 RUNNING AT n4", {"how": "context", "named_rank": "5", "host": "n4"}),
        ("YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)", {"how": "crash"}),
        ("pdsh@n1: n2: ssh exited with exit code 137", {"how": "killed", "host": "n2"}),
        ("pdsh@n1: n2: ssh exited with exit code 1", {"how": "exit", "host": "n2"}),
        ("pdsh@n1: n2: ssh exited with exit code 255", {"how": "not launched"}),
        ("srun: StepId=8.0 task 5: exited abnormally", {"how": "exit", "tasks": "5"}),
        ("zsh: killed     python train.py", {"how": "killed"}),
    ],
)  # fmt: skip
def test_a_line_says_how_one_process_ended(text: str, named: dict[str, str]) -> None:
    kind, said = end_of(text) or ("", {})
    assert kind == "ended"
    assert {name: said.get(name) for name in named} == named


@pytest.mark.parametrize(
    "text",
    [
        "    raise KeyboardInterrupt", "except KeyboardInterrupt:", "on KeyboardInterrupt the server drains its queue",
        "  - AssertionError", "ValueError", "    assert x is not None", "errors: AssertionError, MemoryError",
        "=   PID RUNNING AT n4", "srun: task 3: running", "zsh: command not found: python",
        "pdsh@n1: n2: ssh exited with exit code 0", "process 2 terminated with signal handling on",
    ],
)  # fmt: skip
def test_what_is_listed_raised_in_source_or_still_running_is_no_end(text: str) -> None:
    assert end_of(text) is None


def test_the_rank_of_an_exception_without_a_message_is_the_one_in_front() -> None:
    assert label_of("[rank3]: AssertionError") == "3"
    assert label_of("2025-10-31 - app - INFO - [rank12]: ValueError") == "12"
    assert not label_of("AssertionError")


def test_hydra_names_rank_and_host_above_the_signal(tmp_path: Path) -> None:
    text = "=   RANK 5 PID 77 RUNNING AT n4\n=   KILLED BY SIGNAL: 9 (Killed)\n"
    first = first_of(tmp_path, text)
    assert first["id"] == "JOB009"
    assert first["message"].startswith("rank 5 on n4 was killed by signal 9")


def test_an_exception_that_a_logger_prints_for_a_rank_ends_the_job(tmp_path: Path) -> None:
    head = "2025-10-31 03:11:02,478 - train - INFO - [rank0]: "
    text = f"{head}Traceback (most recent call last):\n{head}    assert metadata is not None\n{head}AssertionError\n"
    assert first_of(tmp_path, text)["message"].startswith("rank 0 ended with an exception that nobody caught")


def test_lightnings_code_of_a_child_is_the_signal_that_ended_it(tmp_path: Path) -> None:
    text = "[rank: 1] Child process with PID 12 terminated with code {}. Forcefully terminating all other processes\n"
    assert "killed by signal 9" in first_of(tmp_path, text.format(-9))["message"]
    assert "error code (exit code 1)" in first_of(tmp_path, text.format(1))["message"]


def test_a_program_that_failed_and_was_done_without_ends_nobody(tmp_path: Path) -> None:
    text = "WARNING: subprocess.CalledProcessError: Command '['git', 'rev-parse']' returned non-zero exit status 128.\n"
    assert loud(tmp_path, text + "step done\n" * 9) == []


def test_a_bare_name_that_a_program_caught_and_went_on_after_is_no_end(tmp_path: Path) -> None:
    text = 'Traceback (most recent call last):\n  File "t.py", line 3, in f\nAssertionError\n' + "step done\n" * 9
    assert loud(tmp_path, text) == []
