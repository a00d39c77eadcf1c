"""Ends of one process in the words of interpreters, shells and launchers."""

from __future__ import annotations

from pathlib import Path

from tests.pasted import first_of, loud
from tests.tables import examples
from topodiag.evidence.nccl_log.grammar.job_lines import end_of, said_of
from topodiag.evidence.nccl_log.grammar.prefix import application


@examples("text", "named")
def test_a_line_says_how_one_process_ended(text: str, named: dict[str, str]) -> None:
    kind, said = said_of(text) or ("", {})
    assert kind == "ended"
    assert {name: said.get(name) for name in named} == named


@examples("text")
def test_what_is_listed_raised_in_source_or_still_running_is_no_end(text: str) -> None:
    assert end_of(text) is None


def test_the_rank_of_an_exception_without_a_message_is_the_one_in_front() -> None:
    for front, rank in (("[rank3]: ", "3"), ("2025-10-31 03:11:02 [rank12]: ", "12"), ("", "")):
        table, row = application(f"{front}AssertionError") or ("", {})
        assert (table, row["label"]) == ("event", rank)


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
