"""The output of a job without NCCL's lines: what each program says of its end, and what is no end."""

from __future__ import annotations

import pytest

from tests.checks.excerpts import result_of
from tests.tables import examples
from topodiag.model.finding import Finding, Severity

TRACE = 'Traceback (most recent call last):\n  File "t.py", line 9, in <module>\n'
RAN = "Timeout(ms)=600000) ran for 600061 milliseconds before timing out."
WATCHDOG = (
    f"[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, {RAN}\n"
)


def _findings(text: str) -> list[Finding]:
    return list(result_of(text).findings)


@examples("text", "words")
def test_each_program_says_in_its_own_words_how_a_process_ended(text: str, words: str) -> None:
    first = _findings(text)[0]
    assert (first.id, words in first.message) == ("JOB009", True)


def test_a_node_failure_is_read_with_the_hint_that_slurm_adds() -> None:
    text = "slurmstepd: error: *** STEP 5.0 ON n9 CANCELLED AT 2025-01-01T00:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n"  # noqa: E501
    assert "node that failed" in _findings(text)[0].message


@pytest.mark.parametrize("front", ["3: ", "[1,3]<stderr>:", "[rank3]: "])
def test_the_rank_is_the_one_that_the_launcher_puts_in_front(front: str) -> None:
    text = "".join(f"{front}{line}\n" for line in (TRACE + "KeyError: 'input_ids'").split("\n"))
    assert _findings(text)[0].where.ranks == (3,)


def test_the_exception_stands_above_the_timeouts_of_the_others() -> None:
    text = f"[default3]:{TRACE}[default3]:RuntimeError: CUDA error: device-side assert triggered\n{WATCHDOG * 3}"
    assert _findings(text)[0].id == "JOB009"


@examples("text")
def test_what_was_caught_asked_for_or_of_another_program_is_no_end(text: str) -> None:
    assert not [finding for finding in _findings(text) if finding.id in ("JOB009", "JOB005", "JOB006")]


@examples("text")
def test_who_interrupts_a_job_mostly_knows(text: str) -> None:
    (finding,) = _findings(text)
    assert (finding.id, finding.severity) == ("JOB009", Severity.INFO)
    assert "cancelled" in finding.message


def test_an_interrupt_of_a_job_that_hangs_is_not_its_cause() -> None:
    assert next(finding.id for finding in _findings(f"{WATCHDOG * 3}{TRACE}KeyboardInterrupt\n")) == "JOB006"


def test_a_peer_that_gloo_lost_is_named() -> None:
    text = (
        "RuntimeError: [/x/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.3]:21\n"
    )
    assert "10.0.0.3" in _findings(text)[0].message


def test_a_store_that_nobody_reaches_is_an_error_of_the_connection() -> None:
    text = "DistNetworkError: The client socket has timed out after 600ms while trying to connect to (10.0.0.1, 29).\n"
    first = _findings(text)[0]
    assert (first.id, "10.0.0.1" in first.observed) == ("NET002", True)


def test_horovods_newer_stall_report_is_a_hang() -> None:
    text = "[1,0]<stderr>:Missing ranks:\n[1,0]<stderr>:2: [DistributedAdam/grad_0]\n"
    assert _findings(text)[0].id == "JOB006"


@examples("text", "check", "words")
def test_a_cause_is_named_in_any_program_s_words(text: str, check: str, words: str) -> None:
    first = _findings(text + "\n")[0]
    assert first.id == check
    assert words in f"{first.message} {first.observed}"


@examples("text")
def test_what_large_or_ordinary_is_no_cause(text: str) -> None:
    assert not [finding for finding in _findings(text + "\n") if finding.id in ("HST001", "NET002", "JOB005", "JOB006")]
