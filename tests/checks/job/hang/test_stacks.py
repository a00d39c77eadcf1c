"""JOB006 by stack dumps: who waits in a collective, and who is somewhere else."""

import pytest

from tests.checks import jobs
from tests.tables import examples
from topodiag.checks.job.hang.check import RankBehind
from topodiag.model.diagnostics import Frame, Stack
from topodiag.model.finding import Confidence, Outcome, Severity, Status
from topodiag.model.job import Event

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
    (finding,) = judged(WAITS, COMPUTES).findings
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.LOW)


@examples("stacks")
def test_stacks_that_part_nobody_are_unknown(stacks: tuple[tuple[tuple[str, str], ...], ...]) -> None:
    assert judged(*stacks).status is Status.UNKNOWN
