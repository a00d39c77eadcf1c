"""JOB006 by the lines of RAS in NCCL's own log: a process that the others gave up, and silence at the end of a job."""

from collections.abc import Sequence
from dataclasses import replace

from tests.checks import jobs
from tests.tables import examples
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


@examples("dead", "tellers", "silent", "ranks", "message")
def test_a_process_that_the_others_gave_up_is_named(
    dead: list[int], tellers: list[int], silent: list[int] | None, ranks: list[int] | None, message: str | None
) -> None:
    findings = found(of(dead, tellers, silent=silent or ()))
    assert [list(finding.where.ranks) for finding in findings] == ([] if ranks is None else [ranks])
    for finding in findings:
        assert finding.severity is Severity.WARNING
        assert message in finding.message
        assert "NCCL_RAS_TIMEOUT_FACTOR" in (finding.observed or "")


def test_a_communicator_that_was_torn_down_is_the_end_of_the_job() -> None:
    ended = of([11], [0, 1])
    world = replace(ended.communicators[0], destroyed=1)
    assert not found(replace(ended, communicators=(world, *ended.communicators[1:])))


def test_answers_of_ras_say_more_than_its_lines() -> None:
    assert not found(of([11], [0, 1], ras=(RasAnswer("ras.txt", processes=16),)))
