"""JOB006 by the words of frameworks: one line is the verdict."""

from __future__ import annotations

from tests.checks import jobs
from topodiag.checks.job.hang.check import RankBehind
from topodiag.evidence.nccl_log.rebuild.events import classify
from topodiag.model.finding import Confidence, Finding, Severity
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


def test_a_pasted_mismatch_line_alone_gives_the_finding() -> None:
    text = (
        "Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint("
        "SequenceNumber=7, OpType=ALLGATHER, TensorShape=[12]), but Rank 3 is running collective:"
        " CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[12])."
    )
    [finding] = found(told(text))
    assert finding.message == "ranks 1, 3 call different operations at number 7: ALLGATHER [12] and ALLREDUCE [12]"
    assert finding.severity is Severity.ERROR


def test_a_truncated_message_alone_gives_the_finding() -> None:
    text = "NET/Socket : peer 10.0.0.1<59210> message truncated : receiving 1048576 bytes instead of 65536"
    [finding] = found(told(text, "WARN"))
    assert finding.message == "ranks do not agree on an operation: 1048576 bytes came where 65536 were expected"


def test_horovods_missing_ranks_are_those_to_look_at() -> None:
    [finding] = found(told("grads_0 [missing ranks: 0]"), told("grads_1 [missing ranks: 0, 9]"))
    assert finding.where.ranks == (0, 9)
    assert finding.confidence is Confidence.HIGH


def test_a_watchdog_alone_says_who_waited_in_what_and_how_long() -> None:
    [finding] = found(told(WAIT, rank=7))
    assert finding.message.startswith("rank 7 of 16 waited in ALLREDUCE number 12 until the watchdog")
    assert "they waited 1200 s" in finding.observed
    assert finding.confidence is Confidence.LOW


def test_a_watchdog_of_old_torch_without_a_number_is_read() -> None:
    text = WAIT.replace("SeqNum=12, ", "")
    assert classify("APP", text)[2][:1] == (("op", "ALLREDUCE"),)
    assert len(found(told(text, rank=7))) == 1


def test_sends_and_receives_that_wait_name_nobody() -> None:
    assert found(told(WAIT.replace("ALLREDUCE", "RECV"), rank=7)) == []


def test_a_collective_check_that_names_one_rank_says_that_others_call_another_operation() -> None:
    text = (
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 4 is running inconsistent collective:"
        " CollectiveFingerPrint(OpType=BROADCAST, TensorShape=[8], TensorDtypes=Float)"
    )
    [finding] = found(told(text))
    assert finding.message == "rank 4 calls BROADCAST [8] Float, and other ranks call another one"
    assert finding.where.ranks == (4,)
