"""The wiring of `topodiag bench`: from output of nccl-tests to runs, their fits, what was to be expected, and findings.

>>> from topodiag.app.bench import bench
>>> result = bench(["out.log"])  # doctest: +SKIP
>>> result.benchmarks[0].verdict  # doctest: +SKIP
'normal'
"""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.app.case.given import gathered
from topodiag.app.case.opening import with_paths
from topodiag.app.case.runs import READ, read_runs
from topodiag.app.judge.runs import BenchOptions, judged_runs
from topodiag.evidence.intake.watched import watch
from topodiag.model.result import Result


def bench(paths: Sequence[str], *, options: BenchOptions | None = None) -> Result:
    """Judge output of nccl-tests: files, folders, archives, patterns, `-`; packed with gzip or zstd or not. Bundles,
    topology files and NCCL logs among them are the machine. Raises InputError, also where none of them holds a run."""
    intake = gathered(paths)
    watch().planned(intake.of(*READ))
    given = read_runs(intake)
    watch().judged()
    return with_paths(judged_runs(given, options), paths)
