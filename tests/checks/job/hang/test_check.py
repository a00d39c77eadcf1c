"""JOB006: who did not enter the collective that the others wait in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tests.checks import jobs
from topodiag.checks.job.hang.check import RankBehind
from topodiag.model.finding import Severity, Status
from topodiag.model.job import FlightRecord, Job, Operations

WATCHDOG = jobs.event("watchdog", "Watchdog caught collective operation timeout", rank=0, level="APP")


def ops(last: int, odd: int = -1) -> Operations:
    """Calls up to `last`; the one numbered `odd` has another count."""
    tail = tuple((n, "AllReduce", 512 if n == odd else 1024, 7, 0, 0) for n in range(max(0, last - 15), last + 1))
    return Operations(last, last + 1, tail=tail, origin=jobs.origin(f"AllReduce: opCount {last:x}"))


def counted(by_rank: Mapping[int, Operations], *, hung: bool = True, destroyed: int = 0) -> Job:
    return jobs.job(
        world=lambda communicator: replace(communicator, operations=dict(by_rank), destroyed=destroyed),
        events=[WATCHDOG] if hung else [],
    )


def test_equal_counts_are_clean() -> None:
    assert RankBehind().judge(counted({rank: ops(20) for rank in range(16)})).status is Status.CLEAN


def test_the_rank_behind_in_a_hang_is_an_error_with_its_operation() -> None:
    operations = {rank: ops(17 if rank == 11 else 20) for rank in range(16)}
    [finding] = RankBehind().judge(counted(operations)).findings
    assert finding.severity is Severity.ERROR
    assert finding.where.ranks == (11,)
    assert finding.where.nodes == ("n1",)
    assert "3 operations behind" in finding.message
    assert "AllReduce of 1024 elements" in finding.observed


def test_what_to_run_on_the_host_now_is_named_and_only_reads() -> None:
    job = counted({rank: ops(17 if rank == 3 else 20) for rank in range(16)})
    (finding,) = RankBehind().judge(job).findings
    now = finding.fix[1]
    assert now.startswith("while it hangs, on n0: `py-spy dump --pid ")
    assert "nvidia-smi dmon" in now
    assert "dmesg -T" in now


def test_one_operation_apart_without_a_hang_is_a_log_cut_while_running() -> None:
    operations = {rank: ops(19 if rank == 11 else 20) for rank in range(16)}
    assert RankBehind().judge(counted(operations, hung=False)).status is Status.CLEAN
    operations[11] = ops(15)
    assert RankBehind().judge(counted(operations, hung=False)).findings[0].severity is Severity.INFO


def test_ranks_without_a_part_in_the_network_keep_a_low_op_count() -> None:
    tail = tuple((0, "AllReduce", 1024, 7, 0, 0) for _ in range(16))
    operations = {rank: ops(20) if rank in {0, 8} else Operations(0, 21, tail=tail) for rank in range(16)}
    assert RankBehind().judge(counted(operations)).status is Status.CLEAN


def test_a_log_that_lost_its_start_leaves_nobody_behind() -> None:
    operations = {rank: replace(ops(20), calls=14) if rank == 3 else ops(20) for rank in range(16)}
    assert RankBehind().judge(counted(operations)).status is Status.CLEAN


def test_a_communicator_that_was_destroyed_left_nobody_behind() -> None:
    operations = {rank: ops(15 if rank == 11 else 20) for rank in range(16)}
    assert RankBehind().judge(counted(operations, destroyed=16)).status is Status.CLEAN


def test_a_call_that_differs_at_an_equal_count_is_told() -> None:
    operations = {rank: ops(20, odd=18 if rank == 4 else -1) for rank in range(16)}
    [finding] = RankBehind().judge(counted(operations)).findings
    assert finding.where.ranks == (4,)
    assert "call 19 of 21" in finding.message
    assert "512" in finding.observed


def test_sends_and_receives_may_differ() -> None:
    operations = {}
    for rank in range(4):
        tail = tuple((n, "Send", 10 + rank, 7, 0, rank) for n in range(8))
        operations[rank] = Operations(7, 8, tail=tail)
    assert RankBehind().judge(counted(operations)).status is Status.CLEAN


def mixed(rank: int, collectives: int, sends: int, odd: bool = False) -> Operations:
    """Collectives with sends between them, in another number on each rank."""
    tail = [(0, "Send", 10 + rank, 7, 0, rank)] * sends + [(0, "AllReduce", 1024, 7, 0, 0)] * collectives
    tail[-1] = (0, "AllReduce", 512 if odd else 1024, 7, 0, 0)
    calls = {"Send": sends, "AllReduce": collectives}
    return Operations(collectives + sends, collectives + sends, 0, calls, calls, tuple(tail[-16:]))


def test_collectives_among_sends_are_counted_by_themselves() -> None:
    operations = {rank: mixed(rank, 20, rank) for rank in range(16)}
    assert RankBehind().judge(counted(operations)).status is Status.CLEAN
    operations[11] = mixed(11, 17, 30)
    [finding] = RankBehind().judge(counted(operations)).findings
    assert finding.where.ranks == (11,)
    assert "3 operations behind" in finding.message
    operations[11] = mixed(11, 20, 30, odd=True)
    [finding] = RankBehind().judge(counted(operations)).findings
    assert finding.where.ranks == (11,)
    assert "call 20 of 20" in finding.message


def test_a_log_without_the_start_of_a_communicator_that_sends_leaves_nobody_behind() -> None:
    operations = {rank: mixed(rank, 17 if rank == 11 else 20, rank) for rank in range(16)}
    job = counted(operations)
    world = job.communicators[0]
    started = world.started.copy()
    started[11] = False
    job = replace(job, communicators=(replace(world, started=started), *job.communicators[1:]))
    assert RankBehind().judge(job).status is Status.CLEAN


def test_without_operations_and_dumps_it_is_unknown_and_names_what_to_set() -> None:
    outcome = RankBehind().judge(jobs.job())
    assert outcome.status is Status.UNKNOWN
    assert "COLL" in outcome.why


def dump(rank: int, states: Sequence[str], members: int = 4, operation: str = "all_reduce") -> FlightRecord:
    entries = tuple(("0", seq + 1, operation, state) for seq, state in enumerate(states))
    return FlightRecord(rank, entries, {"0": tuple(range(members))}, {"0": "default_pg"}, jobs.origin("{}"))


def test_the_flight_recorder_shows_who_did_not_enter() -> None:
    flight = [dump(rank, ["completed", "completed", "started"][: 1 if rank == 2 else 3]) for rank in range(4)]
    [finding] = RankBehind().judge(jobs.job(flight=tuple(flight))).findings
    assert finding.severity is Severity.ERROR
    assert finding.where.ranks == (2,)
    assert "all_reduce number 3 of process group default_pg" in finding.message


def test_a_rank_with_an_empty_dump_entered_nothing() -> None:
    flight = [dump(rank, [] if rank == 2 else ["started"]) for rank in range(4)]
    [finding] = RankBehind().judge(jobs.job(flight=tuple(flight), events=(WATCHDOG,))).findings
    assert finding.severity is Severity.ERROR
    assert finding.where.ranks == (2,)


def test_dumps_of_equal_length_or_all_completed_are_clean() -> None:
    level = tuple(dump(rank, ["completed", "started"]) for rank in range(4))
    assert RankBehind().judge(jobs.job(flight=level)).status is Status.CLEAN
    done = tuple(dump(rank, ["completed"] * (2 if rank else 1)) for rank in range(4))
    assert RankBehind().judge(jobs.job(flight=done)).status is Status.CLEAN


def test_different_collectives_at_one_number_are_told() -> None:
    flight = tuple(dump(rank, ["started"], operation="all_gather" if rank == 3 else "all_reduce") for rank in range(4))
    [finding] = RankBehind().judge(jobs.job(flight=flight)).findings
    assert finding.where.ranks == (3,)
    assert "all_gather where the others called all_reduce" in finding.message


def test_the_rank_without_a_dump_is_named_where_all_others_wait_in_one_collective() -> None:
    waiting = tuple(dump(rank, ["completed", "timed out"]) for rank in (0, 1, 3))
    (finding,) = RankBehind().judge(replace(jobs.job(1), flight=waiting)).findings
    assert finding.message.startswith("rank 2 left no flight recorder dump, and all others of process group")
    assert finding.where.ranks == (2,)


@pytest.mark.parametrize(
    "records",
    [
        [dump(rank, ["completed", "scheduled"]) for rank in (0, 1, 3)],
        [dump(rank, ["completed", "completed"]) for rank in (0, 1, 3)],
        [dump(rank, ["completed", "timed out"]) for rank in (0, 1, 2, 3)],
        [dump(rank, ["completed", "timed out"]) for rank in (0, 1)],
    ],
    ids=["nothing says that it hung", "all completed", "all dumped", "half of the files"],
)
def test_a_missing_dump_alone_blames_nobody(records: list[FlightRecord]) -> None:
    assert not RankBehind().judge(replace(jobs.job(1), flight=tuple(records))).findings
