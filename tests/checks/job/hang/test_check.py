"""JOB006: who did not enter the collective that the others wait in."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.checks import jobs
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.job.hang.check import RankBehind
from topodiag.model.finding import Status
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


@examples("counts", "more", "wanted")
def test_counts_of_operations(counts: dict[str, int], more: dict[str, Any] | None, wanted: Wanted) -> None:
    """Of 16 ranks that came to operation 20, but for these; `odd` are calls that differ, by rank."""
    parts = dict(more or {})
    odd = parts.pop("odd", {})
    by_rank = {rank: ops(counts.get(str(rank), 20), odd.get(str(rank), -1)) for rank in range(16)}
    assert shown(RankBehind().judge(counted(by_rank, **parts)), wanted) == wanted


def test_ranks_without_a_part_in_the_network_keep_a_low_op_count() -> None:
    tail = tuple((0, "AllReduce", 1024, 7, 0, 0) for _ in range(16))
    operations = {rank: ops(20) if rank in {0, 8} else Operations(0, 21, tail=tail) for rank in range(16)}
    assert RankBehind().judge(counted(operations)).status is Status.CLEAN


def test_a_log_that_lost_its_start_leaves_nobody_behind() -> None:
    operations = {rank: replace(ops(20), calls=14) if rank == 3 else ops(20) for rank in range(16)}
    assert RankBehind().judge(counted(operations)).status is Status.CLEAN


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


@examples("states", "more", "wanted")
def test_dumps_of_the_flight_recorder(
    states: dict[str, list[str]], more: dict[str, Any] | None, wanted: Wanted
) -> None:
    """The states of each rank that left a dump of a group of four; `operations` of ranks that called another one."""
    parts = more or {}
    others = parts.get("operations", {})
    flight = tuple(dump(int(rank), done, operation=others.get(rank, "all_reduce")) for rank, done in states.items())
    job = jobs.job(parts.get("hosts", 2), events=[WATCHDOG] if parts.get("hung") else [])
    assert shown(RankBehind().judge(replace(job, flight=flight)), wanted) == wanted
