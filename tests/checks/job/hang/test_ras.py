"""JOB006 and JOB001 by NCCL's RAS: who the others wait for, and silence over a job that runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.checks import jobs
from topodiag.checks.job.hang.check import RankBehind
from topodiag.checks.job.start.init import InitNotFinished
from topodiag.model.connections import no_connections
from topodiag.model.finding import Finding, Severity, Status
from topodiag.model.job import Job
from topodiag.model.ras import RasAnswer, RasCommunicator, RasEvent, RasMember, RasProcess

HASH = 0x27A079B828FF1A75


def member(rank: int, count: int, state: str = "RUNNING", *, missing: bool = False, **counts: int) -> RasMember:
    known = RasProcess(f"10.0.0.{1 + rank // 4}", 100 + rank, str(rank % 4))
    table = {} if missing else {"AllReduce": count, **counts}
    return RasMember(rank, known, state, table, missing, origin=jobs.origin(f"Rank {rank}"))


def answer(members: list[RasMember], at: float, **parts: object) -> RasAnswer:
    counts: dict[str, dict[int, int]] = {}
    states: dict[str, int] = {}
    for ras_member in members:
        if ras_member.state:
            states[ras_member.state] = states.get(ras_member.state, 0) + 1
        for name, count in ras_member.counts.items():
            counts.setdefault(name, {})[count] = counts.get(name, {}).get(count, 0) + 1
    comm = RasCommunicator(HASH, len(members), tuple(members), counts, states, jobs.origin("#0-0"))
    ras_answer = RasAnswer("ras", "2.29.7", at, "json", 2, len(members), 1, (comm,), origin=jobs.origin("NCCL version"))
    return replace(ras_answer, **parts)  # type: ignore[arg-type]


def counts(by_rank: Mapping[int, int], at: float) -> RasAnswer:
    return answer([member(rank, by_rank.get(rank, 50)) for rank in range(8)], at)


def job(*answers: RasAnswer) -> Job:
    return Job("RAS", 8, (), (), (), no_connections(), (), ras=answers)


def told(run: Job) -> tuple[Finding, ...]:
    return RankBehind().judge(run).findings


def test_a_rank_that_stays_behind_is_the_one_the_others_wait_for() -> None:
    (finding,) = told(job(counts({5: 49}, 0), counts({5: 49}, 20)))
    assert (finding.severity, finding.where.ranks, finding.where.nodes) == (Severity.ERROR, (5,), ("10.0.0.2",))
    assert "did not launch AllReduce number 50" in finding.message
    assert "py-spy dump --pid 105" in finding.fix[0]


def test_one_answer_alone_is_no_hang() -> None:
    (finding,) = told(job(counts({5: 49}, 0)))
    assert finding.severity is Severity.WARNING
    assert "ask RAS again" in finding.fix[0]


def test_counts_that_move_are_of_a_job_that_runs() -> None:
    assert told(job(counts({5: 49}, 0), answer([member(r, 90 if r == 2 else 91) for r in range(8)], 20))) == ()


def test_a_mismatch_that_is_gone_in_the_last_answer_was_none() -> None:
    assert told(job(counts({5: 49}, 0), counts({}, 20))) == ()


def test_equal_counts_prove_nothing() -> None:
    outcome = RankBehind().judge(job(counts({}, 0), counts({}, 20)))
    assert outcome.status is Status.UNKNOWN
    assert "ncclCommSplit" in outcome.why


def test_a_rank_that_called_another_collective_is_told_with_both() -> None:
    members = [member(r, 49 if r == 3 else 50, AllGather=8 if r == 3 else 7) for r in range(8)]
    (finding,) = told(job(answer(members, 0), answer(members, 20)))
    assert finding.where.ranks == (3,)
    assert "rank 3 launched AllGather where 7 other ranks" in finding.message


def test_a_mismatch_of_halves_of_which_ras_lists_nobody_is_told() -> None:
    """NCCL's text lists less than half of the members."""
    whole = counts(dict.fromkeys(range(4), 49), 0)
    bare = replace(whole, communicators=(replace(whole.communicators[0], members=()),))
    (finding,) = told(job(bare, replace(bare, time=20.0)))
    assert (finding.severity, finding.where.ranks) == (Severity.ERROR, ())
    assert "4 ranks did not launch AllReduce number 50" in finding.message
    assert "ncclras -f json" in finding.fix[0]


def test_one_rank_ahead_of_all_others_is_the_odd_one() -> None:
    table = {rank: 49 for rank in range(8) if rank != 6}
    (finding,) = told(job(counts(table, 0), counts(table, 20)))
    assert finding.where.ranks == (6,)
    assert "and 7 other ranks did not" in finding.message


def test_a_rank_that_finalized_while_others_run_is_told_once() -> None:
    members = [member(r, 49 if r == 2 else 50, "FINALIZE" if r == 2 else "RUNNING") for r in range(8)]
    (finding,) = told(job(answer(members, 0), answer(members, 20)))
    assert finding.where.ranks == (2,)
    assert "left" in finding.message
    assert "dead" not in finding.message


def test_a_communicator_that_is_taken_down_is_no_fault() -> None:
    members = [member(r, 50, "RUNNING" if r == 0 else "FINALIZE") for r in range(8)]
    assert told(job(answer(members, 0), answer(members, 20))) == ()


def lost(at: float, **parts: object) -> RasAnswer:
    members = [member(r, 50, "" if r == 6 else "RUNNING", missing=r == 6) for r in range(8)]
    return answer(members, at, **parts)


def test_a_process_that_does_not_answer_is_named_and_its_node_is_cleared() -> None:
    process = RasProcess("10.0.0.2", 106, "2")
    (finding,) = told(job(lost(0, silent=(process,)), lost(20, silent=(process,))))
    assert (finding.severity, finding.where.ranks) == (Severity.ERROR, (6,))
    assert "3 other processes there answer" in finding.observed


def test_a_process_that_answers_again_was_only_slow() -> None:
    process = RasProcess("10.0.0.2", 106, "2")
    assert told(job(lost(0, silent=(process,)), counts({}, 20))) == ()


def test_a_process_that_ras_gave_up_is_an_error_in_one_answer() -> None:
    (finding,) = told(job(lost(0, dead=(RasProcess("10.0.0.2", 106, "2"),))))
    assert finding.severity is Severity.ERROR
    assert "given up" in finding.observed


def test_an_event_of_a_monitor_names_the_process() -> None:
    event = RasEvent("PEER_DEAD", 3.0, RasProcess("10.0.0.2", 106, "2"), jobs.origin("PEER_DEAD"))
    monitor = RasAnswer("m", form="monitor", events=(event,), time=3.0)
    (finding,) = told(job(counts({}, 0), monitor))
    assert finding.where.nodes == ("10.0.0.2",)
    recovered = RasEvent("PEER_RECOVERED", 4.0, event.process)
    assert told(job(counts({}, 0), replace(monitor, events=(event, recovered)))) == ()


def test_two_sides_that_call_each_other_dead_are_a_broken_path() -> None:
    one, other = RasProcess("10.0.0.2", 106, "2"), RasProcess("10.0.0.1", 101, "1")
    (finding,) = told(job(lost(0, dead=(one,)), lost(20, dead=(other,))))
    assert "two sides of the job do not reach each other" in finding.message


def test_init_that_no_communicator_ends_is_told_by_two_answers() -> None:
    empty = RasAnswer("ras", "2.29.7", 0.0, "json", origin=jobs.origin("No communicator data collected!"))
    (finding,) = InitNotFinished().judge(job(empty, replace(empty, time=20.0))).findings
    assert (finding.id, finding.severity) == ("JOB001", Severity.ERROR)
    assert InitNotFinished().judge(job(counts({}, 0))).status is Status.UNKNOWN
    assert InitNotFinished().judge(job(replace(empty, whole=False))).status is Status.UNKNOWN  # it lists nothing yet


def test_a_rank_that_its_tensor_group_waits_for_explains_the_data_groups() -> None:
    """Text lists who is not in order alone: of the tensor group the one that is late, of each data group both."""

    def late(comm: int, rank: int, host: str, pid: int, count: int) -> RasMember:
        return RasMember(rank, RasProcess(host, pid), "RUNNING", {"AllReduce": count})

    tensor = RasCommunicator(1, 4, (late(1, 2, "b", 22, 7),), {"AllReduce": {8: 3, 7: 1}})
    data = [
        RasCommunicator(
            10 + at, 2, (late(0, 0, "a", 10 + at, 5), late(0, 1, "b", 20 + at, 4)), {"AllReduce": {5: 1, 4: 1}}
        )
        for at in range(4)
    ]
    answers = [RasAnswer("ras.txt", communicators=(tensor, *data), processes=8, total=5, time=at) for at in (1.0, 9.0)]
    [finding] = told(job(*answers))
    assert "process" in finding.message or "rank 2" in finding.message
    assert "late in 4 other communicators" in finding.observed
    # A late process beside those of the group: it is not known who waits for whom.
    stranger = RasCommunicator(30, 2, (late(0, 0, "a", 30, 5), late(0, 1, "b", 40, 4)), {"AllReduce": {5: 1, 4: 1}})
    ras_answers = [
        RasAnswer("ras.txt", communicators=(tensor, *data, stranger), processes=10, total=6, time=at)
        for at in (1.0, 9.0)
    ]
    assert len(told(job(*ras_answers))) == 6
