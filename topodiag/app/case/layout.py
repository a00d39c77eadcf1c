"""Where the ranks of a job sit: what a launcher's file declares, or what the job's NCCL logs show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topodiag.app.case.given import blob_at, gathered
from topodiag.app.case.place_options import READERS, PlaceError, PlaceOptions
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.pieces import STDIN
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.rank_hosts import RankHosts

if TYPE_CHECKING:
    from topodiag.model.job import Job


@dataclass(frozen=True, slots=True)
class LayoutRead:
    """Where ranks sit: by the logs of `job` where there are logs, else by a launcher's file; None where nothing says
    it. `declared` is the launcher's file where both are given, to be compared with the logs."""

    ranks: RankHosts | None = None
    job: Job | None = None
    declared: RankHosts | None = None


def read_layout(options: PlaceOptions) -> LayoutRead:
    """The ranks as the options say. Raises InputError, and PlaceError where two options say where ranks sit."""
    files = [name for name in READERS if getattr(options, name)]
    given = [*files, *(["logs"] if options.logs and not files else []), *(["rule"] if options.rule else [])]
    if len(given) > 1:
        raise PlaceError(f"--{_flag(given[0])} and --{_flag(given[1])} both say where ranks sit: give one")
    declared = None
    if files:
        path = getattr(options, files[0])
        try:
            declared = READERS[files[0]](blob_at(path))
        except InputError as error:
            raise _foreign(path, error) from None
    if not options.logs:
        return LayoutRead(declared)
    from topodiag.app.case.jobs import job_case  # noqa: PLC0415 - numpy, which only logs need
    from topodiag.placement.job_ranks import ranks_of  # noqa: PLC0415 - only with logs

    jobs = job_case(gathered(options.logs, quick=True)).jobs
    if len(jobs) != 1:
        hint = "give the logs of one job" if jobs else "are they NCCL's, with NCCL_DEBUG=INFO?"
        raise InputError(options.logs[0], f"holds {len(jobs)} jobs", hint=hint)
    return LayoutRead(ranks_of(jobs[0], options.logs[0]), jobs[0], declared)


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _foreign(path: str, error: InputError) -> InputError:
    """The error of a reader of layouts, or, where the file is what another command reads, that command."""
    if path == STDIN:
        return error
    try:
        pieces = gather([path]).pieces
    except InputError:
        return error
    for piece in pieces:
        if piece.path == path and piece.command and " place " not in piece.command:
            return InputError(path, f"is {piece.words}; {piece.command} reads it")
    return error
