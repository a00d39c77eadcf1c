"""JOB006 by the words of frameworks: one line is the verdict."""

from tests.checks import jobs
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.job.hang.check import RankBehind
from topodiag.evidence.nccl_log.rebuild.events import classify
from topodiag.model.finding import Finding
from topodiag.model.job import Event

WAIT = (
    "[Rank 7] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1,"
    " NumelOut=1, Timeout(ms)=1200000) ran for 1200027 milliseconds before timing out."
)


def told(text: str, level: str = "APP", rank: int = -1) -> Event:
    kind, secondary, details = classify(level, text)
    return jobs.event(kind, text, "", level=level, secondary=secondary, details=dict(details), rank=rank)


def found(*events: Event) -> list[Finding]:
    return list(RankBehind().judge(jobs.job(2, events=list(events), communicators=())).findings)


@examples("lines", "wanted")
def test_words_of_programs_that_wait(lines: list[tuple[str, int, str]], wanted: Wanted) -> None:
    """Each line with its level and its rank."""
    events = [told(text, level, rank) for level, rank, text in lines]
    assert shown(RankBehind().judge(jobs.job(2, events=events)), wanted) == wanted


def test_a_watchdog_of_old_torch_without_a_number_is_read() -> None:
    text = WAIT.replace("SeqNum=12, ", "")
    assert classify("APP", text)[2][:1] == (("op", "ALLREDUCE"),)
    assert len(found(told(text, rank=7))) == 1


def test_sends_and_receives_that_wait_name_nobody() -> None:
    assert found(told(WAIT.replace("ALLREDUCE", "RECV"), rank=7)) == []
