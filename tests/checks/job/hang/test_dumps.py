"""JOB006 over several process groups: one rank that is behind explains all groups that wait for its group."""

from tests.checks import jobs
from tests.checks.job.hang.test_check import WATCHDOG
from topodiag.checks.job.hang.check import RankBehind
from topodiag.checks.job.hang.dumps import fronts_of, roots_of
from topodiag.model.finding import Severity
from topodiag.model.job import FlightRecord

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
