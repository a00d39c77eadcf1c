"""The wiring of `topodiag bench`: from output of nccl-tests to runs, their fits, what was to be expected, and findings.

>>> from topodiag.app.bench import bench
>>> result = bench(["out.log"])  # doctest: +SKIP
>>> result.benchmarks[0].verdict  # doctest: +SKIP
'normal'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topodiag.app.case.build import open_case, open_runs
from topodiag.app.case.opening import with_paths
from topodiag.app.judge.runs import BenchOptions, judged_runs, machine_of
from topodiag.expect.machine import lacking
from topodiag.model.case import Case
from topodiag.model.errors import InputError
from topodiag.model.provenance import PART, NotObserved
from topodiag.model.result import Result

HINT = "it takes a bundle (topodiag scan --save node.tar.gz), a topology file, or NCCL's log; or --system"


def bench(paths: Sequence[str], *, options: BenchOptions | None = None) -> Result:
    """Judge output of nccl-tests: files, folders, archives, patterns, `-`; packed with gzip or zstd or not. Bundles,
    topology files and NCCL logs among them are the machine. Raises InputError, also where none of them holds a run."""
    runs, case = open_runs(paths)
    named = options.machine if options is not None else ()
    result = judged_runs(runs, named_machine(named) if named else machine_of(case), options)
    aside = (gap for gap in case.not_observed if gap.what == PART)
    bare = (
        NotObserved(node.host, f"does not describe a machine: {why}") for node in case.nodes if (why := lacking(node))
    )
    return with_paths(replace(result, not_observed=(*result.not_observed, *aside, *bare)), paths)


def named_machine(paths: Sequence[str]) -> Case:
    """What `--machine` names: bundles, topology files, NCCL logs. Raises InputError where a path is none of them."""
    machines = [_machine_at(path) for path in paths]
    return Case(
        nodes=tuple(node for machine in machines for node in machine.nodes),
        jobs=tuple(job for machine in machines for job in machine.jobs),
    )


def _machine_at(path: str) -> Case:
    case = open_case([path])
    machine = machine_of(case)
    if not (machine.nodes or machine.jobs):
        bare = next((f"does not describe a machine: {lacking(node)}" for node in case.nodes), "holds no machine")
        raise InputError(path, bare, hint=HINT)
    return machine
