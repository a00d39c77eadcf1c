"""The use case of `topodiag logs`: from NCCL logs and flight recorder dumps to jobs, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from topodiag.app.case.jobs import LogOptions, Read, job_case
from topodiag.app.case.opening import gathered, with_paths
from topodiag.app.case.ras import Asking, asked
from topodiag.app.judge.judged import judged_jobs
from topodiag.model.result import Case, Result
from topodiag.writing import check_apart, check_writable


def logs(paths: Sequence[str], *, options: LogOptions | None = None, on_progress: Read | None = None) -> Result:
    """Rebuild jobs from NCCL logs and dumps of torch's flight recorder (files, folders, patterns, `-`, saved facts) and
    judge them. Raises InputError."""
    if options is not None and options.save is not None:
        check_writable(options.save)
        check_apart(options.save, (*paths, *options.flight))
    return with_paths(judged_jobs(job_case(gathered(paths, quick=True), options, on_progress)), paths)


def ras(
    places: Sequence[str],
    paths: Sequence[str] = (),
    *,
    asking: Asking | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Result:
    """Ask NCCL's RAS of a running job at these places (HOST, HOST:PORT), set the answers beside the logs at `paths`,
    and judge what they say. Raises InputError where nobody answers."""
    case = job_case(gathered(paths, quick=True)) if paths else Case()
    return with_paths(judged_jobs(asked(case, places, asking, tell)), paths)
