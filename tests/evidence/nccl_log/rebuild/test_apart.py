"""Jobs of one rank each, as processes leave them that no launcher joined."""

from __future__ import annotations

from dataclasses import replace

from topodiag.evidence.nccl_log.rebuild.apart import noted
from topodiag.model.connections import no_connections
from topodiag.model.job import Job


def job(world_size: int) -> Job:
    return Job("job", world_size, (), (), (), no_connections(), ("n0",))


def test_several_jobs_of_one_rank_are_asked_about_once() -> None:
    first, second = noted([job(1), job(1)])
    assert "have one rank" in first.notes[-1]
    assert "MPI=1" in first.notes[-1]
    assert second.notes == ()


def test_one_job_and_jobs_of_several_ranks_are_left_alone() -> None:
    for jobs in ([job(1)], [job(1), job(8)], [job(8), job(8)], [job(1), job(-1)], []):
        assert noted(jobs) == tuple(jobs)
    kept = replace(job(1), notes=("said before",))
    assert noted([kept, job(1)])[0].notes[0] == "said before"
