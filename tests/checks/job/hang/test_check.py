"""JOB006: who did not enter the collective that the others wait in, by counts, dumps, splits, sizes and stacks."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.checks import jobs
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.job.hang.check import RankBehind
from topodiag.checks.job.hang.dumps import fronts_of, roots_of
from topodiag.evidence.nccl_log.rebuild.events import classify
from topodiag.model.diagnostics import Frame, Stack
from topodiag.model.finding import Confidence, Finding, Outcome, Severity, Status
from topodiag.model.job import Event, FlightRecord, Job, Operations, Process
from topodiag.model.ras import RasAnswer

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
    return Operations(collectives + sends, collectives + sends, calls, calls, tuple(tail[-16:]))


def test_collectives_among_sends_are_counted_by_themselves() -> None:
    operations = {rank: mixed(rank, 20, rank) for rank in range(16)}
    assert RankBehind().judge(counted(operations)).status is Status.CLEAN
    operations[11] = mixed(11, 17, 30)
    expect(RankBehind().judge(counted(operations)), ranks=(11,), message="*3 operations behind*")
    operations[11] = mixed(11, 20, 30, odd=True)
    expect(RankBehind().judge(counted(operations)), ranks=(11,), message="*call 20 of 20*")


def test_a_log_without_the_start_of_a_communicator_that_sends_leaves_nobody_behind() -> None:
    operations = {rank: mixed(rank, 17 if rank == 11 else 20, rank) for rank in range(16)}
    job = counted(operations)
    world = job.communicators[0]
    started = world.started.copy()
    started[11] = False
    job = replace(job, communicators=(replace(world, started=started), *job.communicators[1:]))
    assert RankBehind().judge(job).status is Status.CLEAN


def test_without_operations_and_dumps_it_is_unknown_and_names_what_to_set() -> None:
    expect(RankBehind().judge(jobs.job()), status="unknown", why="*COLL*")


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


# --- JOB006 by the lines of RAS in NCCL's own log: a process that the others gave up, and silence at the end of a job


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


# --- JOB006 by a split that some ranks did not enter ----------------------------------------------------------

OPENING = jobs.message("config", "Comm config Comm name set to TP")
NO_COLOUR = jobs.message("no color", "Rank 3 has color with NCCL_SPLIT_NOCOLOR, not creating a new communicator")
CLOSED = jobs.event("peer closed", "socketProgress: Connection closed by remote peer", rank=0, level="WARN")


def split(entered: Collection[int], *, no_colour: Collection[int] = (), events: Sequence[Event] = (CLOSED,)) -> Job:
    """Two nodes of eight ranks; all are in the world, these called ncclCommSplit and wait."""
    messages = dict.fromkeys(entered, OPENING) | dict.fromkeys(no_colour, NO_COLOUR)
    return jobs.job(
        process=lambda rank, host, process: replace(process, opening=messages.get(rank)), events=list(events)
    )


def test_the_rank_that_did_not_call_is_named_with_what_to_run_there() -> None:
    (finding,) = RankBehind().judge(split(set(range(16)) - {11})).findings
    assert finding.severity is Severity.ERROR
    assert finding.confidence is Confidence.MEDIUM
    assert finding.where.ranks == (11,)
    assert finding.where.nodes == ("n1",)
    assert "did not enter the split of" in finding.message
    assert "into TP" in finding.message
    assert "py-spy dump --pid " in finding.fix[1]


def test_ranks_that_take_no_part_entered() -> None:
    expect(RankBehind().judge(split(range(8), no_colour=range(8, 15))), ranks=(15,))


def test_without_a_sign_of_a_hang_it_is_a_warning_of_a_log_that_may_be_cut() -> None:
    expect(RankBehind().judge(split(set(range(16)) - {11}, events=())), severity="WARNING", confidence="LOW")


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (split(range(16)), "all entered: what keeps them is not told"),
        (split(range(8)), "half: the log may be of the moment in which they enter"),
        (split((), no_colour=range(15)), "nobody makes a communicator"),
        (split(()), "nobody entered"),
    ],
)
def test_nobody_is_blamed(job: Job, why: str) -> None:
    assert not RankBehind().judge(job).findings, why


def test_nobody_is_blamed_where_the_parent_was_destroyed_or_lacks_ranks() -> None:
    job = split(set(range(16)) - {11})
    (world, *others) = job.communicators
    assert RankBehind().judge(replace(job, communicators=(replace(world, destroyed=1), *others))).findings == ()
    unseen = replace(job, ranks=tuple(rank for rank in job.ranks if rank.rank != 11))
    assert RankBehind().judge(unseen).findings == ()


def test_a_process_of_several_ranks_does_not_tell_which_of_them_entered() -> None:
    job = split(set(range(16)) - {11})
    one = tuple(replace(rank, process=job.ranks[0].process) if rank.rank < 8 else rank for rank in job.ranks)
    assert RankBehind().judge(replace(job, ranks=one)).findings == ()


# --- JOB006 by the amounts of data that torch's watchdogs name ------------------------------------------------

LINE = (
    "{group}Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={into},"
    " NumelOut={out}, Timeout(ms)=600000) ran for 600086 milliseconds before timing out."
)


def waits(rank: int, op: str, into: int, out: int, *, seq: int = 610, guid: str = "") -> Event:
    group = f"[PG ID 1 PG GUID {guid} Rank {rank}] " if guid else f"[Rank {rank}] "
    text = LINE.format(group=group, seq=seq, op=op, into=into, out=out)
    kind, secondary, details = classify("APP", text)
    return jobs.event(kind, text, "", rank=rank, level="APP", secondary=secondary, details=dict(details))


def apart(events: list[Event]) -> list[Finding]:
    findings = RankBehind().judge(jobs.job(1, events=events)).findings
    return [finding for finding in findings if " called " in finding.message]


@pytest.mark.parametrize(("guid", "sure"), [("7", Confidence.MEDIUM), ("", Confidence.LOW)])
def test_ranks_that_wait_at_one_number_in_other_operations_are_told(guid: str, sure: Confidence) -> None:
    [finding] = apart(
        [waits(0, "ALLREDUCE", 1, 1, guid=guid), waits(2, "ALLREDUCE", 1, 1, guid=guid),
         waits(1, "BROADCAST", 64, 64, guid=guid)]
    )  # fmt: skip
    assert finding.message == "rank 1 called BROADCAST where ranks 0, 2 called ALLREDUCE, number 610"
    assert finding.confidence is sure


@pytest.mark.parametrize("guid", ["7", ""])
def test_a_rank_that_waits_in_another_size_of_the_same_work_is_named(guid: str) -> None:
    waiting = [waits(rank, "_ALLGATHER_BASE", 1024 if rank == 2 else 8192, 1, guid=guid) for rank in range(4)]
    [finding] = apart(waiting)
    assert finding.where.ranks == (2,)
    assert finding.message == (
        "rank 2 called _ALLGATHER_BASE (1024 elements) where ranks 0-1, 3 called _ALLGATHER_BASE (8192 elements),"
        " number 610"
    )


@pytest.mark.parametrize(
    "events",
    [
        [waits(rank, "ALLREDUCE", 1 + rank // 2, 1) for rank in range(4)],
        [waits(0, "ALLTOALL_BASE", 1, 9, guid="7"), waits(1, "ALLTOALL_BASE", 9, 1, guid="7")],
        [waits(0, "ALLREDUCE", 1, 1, guid="7"), waits(1, "BROADCAST", 64, 64, guid="8")],
        [waits(0, "ALLREDUCE", 1, 1), waits(1, "BROADCAST", 64, 64, seq=611)],
        [waits(0, "ALLREDUCE", 1, 1), waits(1, "SEND", 64, 64)],
        [waits(0, "ALLREDUCE", 1, 1), waits(1, "ALLREDUCE", 1, 1)],
    ],
)
def test_works_of_other_groups_or_numbers_and_sends_are_not_compared(events: list[Event]) -> None:
    assert not apart(events)


def test_a_rank_that_waits_at_a_lower_number_is_named_alone() -> None:
    outcome = RankBehind().judge(
        jobs.job(1, events=[waits(0, "ALLREDUCE", 1, 1), waits(1, "ALLREDUCE", 1, 1, seq=608)])
    )
    (finding,) = [finding for finding in outcome.findings if "until the watchdog" in finding.message]
    assert finding.where.ranks == (1,)
    assert "rank 1 of 8 waited in ALLREDUCE number 608, rank 0 in ALLREDUCE number 610 until" in finding.message
    assert "1 in others" in finding.observed


# --- JOB006 by stack dumps: who waits in a collective, and who is somewhere else ------------------------------

WAITS = (("all_reduce", "torch/distributed/distributed_c10d.py"), ("train_step", "train.py"))
LOADS = (("wait", "threading.py"), ("get", "queue.py"), ("__next__", "fairseq/data/iterators.py"))
SAVES = (("_save", "torch/serialization.py"), ("save_checkpoint", "train.py"))
COMPUTES = (("forward_cuda", "model/layernorm.py"), ("forward", "model/model.py"))
SYNCS = (("synchronize", "torch/cuda/__init__.py"), ("train_step", "train.py"))
OWN = (("broadcast", "myproject/events.py"), ("wait", "threading.py"))


def judged(*stacks: tuple[tuple[str, str], ...], events: tuple[Event, ...] = ()) -> Outcome:
    made = [Stack(100 + rank, rank, "", tuple(Frame(*frame) for frame in frames)) for rank, frames in enumerate(stacks)]
    return RankBehind().judge(jobs.job(1, events=list(events), stacks=tuple(made)))


@pytest.mark.parametrize(
    ("elsewhere", "place"), [(LOADS, "__next__ (fairseq/data/iterators.py)"), (SAVES, "_save (torch/serialization.py)")]
)
def test_a_rank_that_waits_for_data_or_a_disk_while_others_reduce_is_named(
    elsewhere: tuple[tuple[str, str], ...], place: str
) -> None:
    (finding,) = judged(elsewhere, WAITS, WAITS).findings
    assert finding.message == f"rank 0 is in {place}, while ranks 1-2 wait in all_reduce"
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)
    assert finding.where.ranks == (0,)


def test_beside_a_hang_it_is_an_error() -> None:
    watchdog = jobs.event("watchdog", "Watchdog caught", rank=1, level="APP", details={"op": "ALLREDUCE"})
    assert judged(LOADS, WAITS, events=(watchdog,)).findings[0].severity is Severity.ERROR


def test_a_rank_that_computes_is_named_with_little_confidence_since_a_dump_is_one_moment() -> None:
    expect(judged(WAITS, COMPUTES), severity="INFO", confidence="LOW")


@examples("stacks")
def test_stacks_that_part_nobody_are_unknown(stacks: tuple[tuple[tuple[str, str], ...], ...]) -> None:
    assert judged(*stacks).status is Status.UNKNOWN


# --- JOB006 over several process groups: one rank that is behind explains all groups that wait for its group


TENSOR = {rank: tuple(range(rank // 4 * 4, rank // 4 * 4 + 4)) for rank in range(8)}
DATA = {rank: (rank % 4, rank % 4 + 4) for rank in range(8)}


def record(rank: int, tensor: int, data: int, waits: str = "") -> FlightRecord:
    """A dump whose last operation of a group is started where the rank `waits` there, else completed."""
    entries = [
        ("1", tensor, "all_reduce", "started" if waits == "tp" else "completed"),
        ("2", data, "reduce_scatter", "started" if waits == "dp" else "completed"),
    ]
    groups = {"1": TENSOR[rank], "2": DATA[rank]}
    return FlightRecord(rank, tuple(entries), groups, {"1": "tp", "2": "dp"}, jobs.origin("{}"))


def test_groups_of_one_name_are_told_apart_by_their_ranks() -> None:
    job = jobs.job(flight=tuple(record(rank, 8, 4) for rank in range(8)))
    assert sorted(front.members for front in fronts_of(job)) == sorted({*TENSOR.values(), *DATA.values()})


def test_the_rank_behind_in_its_tensor_group_explains_the_data_groups() -> None:
    before = [record(rank, 9, 4, "dp") for rank in range(4)]
    stuck = [record(rank, 8 - (rank == 6), 3, "" if rank == 6 else "tp") for rank in range(4, 8)]
    findings = RankBehind().judge(jobs.job(flight=(*before, *stuck), events=(WATCHDOG,))).findings
    assert [(finding.where.ranks, finding.severity) for finding in findings] == [((6,), Severity.ERROR)]
    assert "process group tp" in findings[0].message
    assert "in other groups" in findings[0].cost.text


def test_where_all_wait_for_each_other_every_group_is_told() -> None:
    one = FlightRecord(0, (("a", 2, "all_reduce", "started"), ("b", 1, "all_reduce", "completed")),
                       {"a": (0, 1), "b": (0, 1)}, {}, None)  # fmt: skip
    other = FlightRecord(1, (("a", 1, "all_reduce", "completed"), ("b", 2, "all_reduce", "started")),
                         {"a": (0, 1), "b": (0, 1)}, {}, None)  # fmt: skip
    assert len(roots_of(list(fronts_of(jobs.job(flight=(one, other)))))) == 2


def test_two_ranks_that_are_behind_in_groups_of_their_own_are_both_named() -> None:
    flight = [record(rank, 8 - (rank in (1, 6)), 4, "" if rank in (1, 6) else "tp") for rank in range(8)]
    findings = RankBehind().judge(jobs.job(flight=tuple(flight))).findings
    assert sorted(finding.where.ranks for finding in findings) == [(1,), (6,)]
