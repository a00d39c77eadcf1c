"""JOB006 by a split that some ranks did not enter."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import pytest

from tests.checks import jobs
from topodiag.checks.job.hang.check import RankBehind
from topodiag.model.finding import Confidence, Severity
from topodiag.model.job import Event, Job

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
    (finding,) = RankBehind().judge(split(range(8), no_colour=range(8, 15))).findings
    assert finding.where.ranks == (15,)


def test_without_a_sign_of_a_hang_it_is_a_warning_of_a_log_that_may_be_cut() -> None:
    (finding,) = RankBehind().judge(split(set(range(16)) - {11}, events=())).findings
    assert finding.severity is Severity.WARNING
    assert finding.confidence is Confidence.LOW


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
