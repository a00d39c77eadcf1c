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


@pytest.mark.parametrize("front", ["3: ", "[1,3]<stderr>:", "[rank3]: "])
def test_the_rank_is_the_one_that_the_launcher_puts_in_front(front: str) -> None:
    text = "".join(f"{front}{line}\n" for line in (TRACE + "KeyError: 'input_ids'").split("\n"))
    assert _findings(text)[0].where.ranks == (3,)


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


@examples("text", "check", "words")
def test_a_cause_is_named_in_any_program_s_words(text: str, check: str, words: str) -> None:
    first = _findings(text + "\n")[0]
    assert first.id == check
    assert words in f"{first.message} {first.observed}"


@examples("text")
def test_what_large_or_ordinary_is_no_cause(text: str) -> None:
    assert not [finding for finding in _findings(text + "\n") if finding.id in ("HST001", "NET002", "JOB005", "JOB006")]
