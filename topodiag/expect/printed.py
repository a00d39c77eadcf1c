"""The machine of a measured run as NCCL printed it in its log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topodiag.hardware.catalog import gpu_by_name
from topodiag.model.bench import BenchRun
from topodiag.model.devices import Gpu
from topodiag.model.nccl_tree import NcclFile
from topodiag.model.nccl_versions import DEFAULT, UnknownVersionError, nearest_minor
from topodiag.model.node import Node
from topodiag.model.provenance import known
from topodiag.nccl.topo.printed import bus_of, tree_of_print

if TYPE_CHECKING:
    from topodiag.model.job import Job
    from topodiag.model.nccl_view import NcclSystem


def node_of_print(jobs: Sequence[Job], run: BenchRun) -> Node | None:
    """The node of the job's largest communicator whose system NCCL printed (NCCL_DEBUG_SUBSYS=GRAPH). None without a
    print, and where the run does not name its GPUs: the print does not say what they are."""
    names = {device.name for device in run.devices if device.name}
    spec = gpu_by_name(next(iter(names))) if len(names) == 1 else None
    pair = _largest_print(jobs)
    if spec is None or pair is None:
        return None
    host, system = pair
    try:
        minor = nearest_minor(run.nccl) if run.nccl else DEFAULT
    except UnknownVersionError:
        minor = DEFAULT
    tree = tree_of_print(system, spec.sm, minor)
    if tree is None:
        return None
    (name,) = names
    gpus = tuple(
        Gpu(number, bus_of(device.id), name=known(name, system.origin))
        for number, device in enumerate(sorted(system.of_kind("GPU"), key=lambda device: bus_of(device.id)))
    )
    place = str(system.origin) if system.origin is not None else "NCCL's log"
    return Node(f"{host} (from NCCL's log)", gpus=gpus, nccl_file=NcclFile(place, tree, origin=system.origin))


def _largest_print(jobs: Sequence[Job]) -> tuple[str, NcclSystem] | None:
    prints = [
        (comm.nranks, host, system)
        for job in jobs
        for comm in job.communicators
        for host, system in sorted(comm.systems.items())
    ]
    prints += [(0, process.host, process.system) for job in jobs for process in job.processes if process.system]
    if not prints:
        return None
    _, host, system = max(prints, key=lambda row: row[0])
    return host, system
