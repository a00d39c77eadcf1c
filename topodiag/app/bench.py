"""The use case of `topodiag bench`: the case of a diagnosis, looked at for its measured runs.

>>> from topodiag.app.bench import bench
>>> result = bench(["out.log"])  # doctest: +SKIP
>>> result.benchmarks[0].verdict  # doctest: +SKIP
'normal'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topodiag.app.case.build import open_case
from topodiag.app.case.opening import with_paths
from topodiag.app.judge.judged import judged_case
from topodiag.app.judge.runs import BenchOptions, machine_of
from topodiag.expect.machine import lacking
from topodiag.model.errors import InputError
from topodiag.model.provenance import NotObserved
from topodiag.model.result import Case, Result

HINT = "it takes a bundle (topodiag scan --save node.tar.gz), a topology file, or NCCL's log; or --system"

_OF_JOBS = frozenset({"nccl_log", "job script"})
"""Kinds of inputs beside a run that are read without a machine."""


def bench(paths: Sequence[str], *, options: BenchOptions | None = None) -> Result:
    """Judge output of nccl-tests with all evidence beside it: files, folders, archives, patterns, `-`; packed with gzip
    or zstd or not. Bundles, topology files and NCCL logs among them are the machine. Raises InputError, also where none
    of them holds a run."""
    machine = named_machine(options.machine) if options is not None and options.machine else None
    named = machine.nodes if machine is not None else ()

    def with_named(case: Case) -> Case:
        return replace(case, nodes=(*case.nodes, *(node for node in named if node not in case.nodes)))

    case = open_case(paths, with_named, measured=True)
    is_machine = not all(map(lacking, case.nodes))  # what describes none is no part of a run, as a gate must say
    read = {item.path for item in case.inputs if item.records and (is_machine or item.kind in _OF_JOBS)}
    gaps = [gap for gap in case.not_observed if gap.what not in read]
    bare = ((node.host, lacking(node)) for node in case.nodes)
    gaps += [NotObserved(host, f"does not describe a machine: {why}") for host, why in bare if why]
    return with_paths(judged_case(replace(case, not_observed=tuple(gaps)), options=options, machine=machine), paths)


def named_machine(paths: Sequence[str]) -> Case:
    """What `--machine` names: bundles, topology files, NCCL logs. Raises InputError where a path is none of them."""
    machines: list[Case] = []
    for path in paths:
        case = open_case([path])
        machines.append(machine_of(case))
        if not (machines[-1].nodes or machines[-1].jobs):
            bare = next((f"does not describe a machine: {lacking(node)}" for node in case.nodes), "holds no machine")
            raise InputError(path, bare, hint=HINT)
    nodes = tuple(node for machine in machines for node in machine.nodes)
    return Case(nodes=nodes, jobs=tuple(job for machine in machines for job in machine.jobs))
