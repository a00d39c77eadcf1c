"""JOB006 by the lines of RAS in NCCL's own log: a process that the others gave up, and silence at the end of a job."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.checks import jobs
from topodiag.checks.job.hang.check import RankBehind
from topodiag.model.finding import Finding, Severity
from topodiag.model.job import Job, Process
from topodiag.model.ras import RasAnswer


def address(rank: int) -> str:
    return f"10.0.0.{rank // 8 + 1}<{40_000 + rank}>"


def of(dead: Sequence[int], tellers: Sequence[int], *, silent: Sequence[int] = (), **changes: object) -> Job:
    """16 ranks; the `tellers` gave up the `dead`, those in `silent` did not print their own address."""

    def hook(rank: int, _host: int, process: Process) -> Process:
        lines = [] if rank in silent else [f"RAS network listening socket at {address(rank)}"]
        if rank in tellers:
            lines += [f"RAS declaring peer {address(number)} as DEAD; rasDeadPeersHash 0x1f" for number in dead]
        return replace(process, messages=(*process.messages, *(jobs.message("ras", line) for line in lines)))

    job = jobs.job(process=hook)
    return replace(job, **changes)  # type: ignore[arg-type]


def found(job: Job) -> list[Finding]:
    return [finding for finding in RankBehind().judge(job).findings if "gave up" in finding.message]


def test_a_process_that_the_others_gave_up_is_named() -> None:
    (finding,) = found(of([11], [rank for rank in range(16) if rank != 11]))
    assert finding.severity is Severity.WARNING
    assert finding.where.ranks == (11,)
    assert finding.where.nodes == ("n1",)
    assert finding.message.startswith("RAS of 15 processes gave up rank 11 (n1)")
    assert "NCCL_RAS_TIMEOUT_FACTOR" in (finding.observed or "")


def test_one_teller_is_enough() -> None:
    assert [finding.where.ranks for finding in found(of([3], [0]))] == [(3,)]


def test_a_process_whose_own_log_is_missing_is_named_by_its_address() -> None:
    (finding,) = found(of([11], [0, 1], silent=[11]))
    assert finding.where.ranks == ()
    assert "the process at 10.0.0.2" in finding.message


def test_two_sides_that_give_each_other_up_are_not_half_of_the_job() -> None:
    """A cut link: eight of sixteen, and nobody says which half is the faulty one."""
    assert not found(of(range(8, 16), range(8)))


@pytest.mark.parametrize("dead", [range(1, 16), range(8, 16)])
def test_where_half_of_the_processes_and_more_are_gone_the_job_has_ended(dead: Sequence[int]) -> None:
    """Rank 0 saves a checkpoint, the others have exited: its RAS gives them up after a minute."""
    assert not found(of(list(dead), [0]))


def test_a_communicator_that_was_torn_down_is_the_end_of_the_job() -> None:
    ended = of([11], [0, 1])
    world = replace(ended.communicators[0], destroyed=1)
    assert not found(replace(ended, communicators=(world, *ended.communicators[1:])))


def test_answers_of_ras_say_more_than_its_lines() -> None:
    assert not found(of([11], [0, 1], ras=(RasAnswer("ras.txt", processes=16),)))


def test_of_a_job_whose_peers_answer_nothing_is_said() -> None:
    assert not found(of([], range(16)))
