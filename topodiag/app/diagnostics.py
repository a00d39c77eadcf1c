"""Lines of NCCL's own diagnostics among the evidence, set beside the job that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topodiag.app.beside import Beside, read_beside
from topodiag.evidence.intake.pieces import Intake
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live.diagnostics import MAX_BYTES, read_diagnostics
from topodiag.model.connections import no_connections
from topodiag.model.diagnostics import Diagnosis
from topodiag.model.job import Job

ALONE = "NCCL diagnostics"
"""The name of a job of which there is nothing but these lines."""
PART = "part of NCCL's diagnostics"


def diagnostics(intake: Intake) -> Beside[Diagnosis]:
    """All lines among the evidence."""
    return read_beside(
        intake, Kind.DIAGNOSTICS, lambda blob: read_diagnostics(blob.text, blob.name), most=MAX_BYTES, part=PART
    )


def with_diagnostics(jobs: Sequence[Job], told: Sequence[Diagnosis]) -> tuple[Job, ...]:
    """The lines at the jobs whose communicators they name, else at the last job, or as a job of their own."""
    if not told:
        return tuple(jobs)
    if not jobs:
        size = max(each.size for each in told)
        return (Job(ALONE, size, (), (), (), no_connections(), (), diagnostics=tuple(told)),)
    hashes = [{comm.comm_id for comm in job.communicators if comm.comm_id} for job in jobs]
    made = list(jobs)
    for each in told:
        at = next((n for n in reversed(range(len(jobs))) if each.comm in hashes[n]), len(jobs) - 1)
        made[at] = replace(made[at], diagnostics=(*made[at].diagnostics, each))
    return tuple(made)
