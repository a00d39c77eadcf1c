"""The machine of a measured run as far as it is known: captured nodes and logs, and what is to be expected of them.

Of nodes that differ the one counts of which the least is to be expected: a collective is as fast as its slowest node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Unpack

from topodiag.expect.expect import LOW, UNKNOWN, Expected, IdentityKey, expected, verdict_of
from topodiag.expect.setup import GivenSetup
from topodiag.hardware.catalog import gpu_by_name, systems
from topodiag.model.bench import BenchRun
from topodiag.model.devices import Gpu
from topodiag.model.finding import Confidence
from topodiag.model.job_wires import seen_kind, wires_of
from topodiag.model.maker import makers_of, run_maker
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.model.nccl_versions import minor_or_default
from topodiag.model.node import Node
from topodiag.model.provenance import known
from topodiag.model.result import Case
from topodiag.nccl.topo.changes import nets_of
from topodiag.nccl.topo.compare import compare
from topodiag.nccl.topo.detect import LackingError, tree_of
from topodiag.nccl.topo.printed import bus_of, tree_of_print
from topodiag.words.hosts import short_name
from topodiag.words.units import few, in_gbs

if TYPE_CHECKING:
    from topodiag.model.job import Job
    from topodiag.model.nccl_view import NcclSystem

LEAST_RDMA = (1, 25.0)
"""NICs of a node (count, Gb/s of each) that RDMA has at least: the slowest ports of ConnectX-4 Lx and of the clouds.
A run over RDMA that stays below it is slow on any machine."""
ALIKE = 0.005
"""Share by which expectations of nodes differ that are the same."""
MOST_SORTS = 8
"""Nodes that differ from each other of which a run's expectation is reckoned, each a replay of NCCL's search."""
_KEPT = 16
"""Sets of nodes whose sorts are remembered."""


def hosts_of(machine: Case, names: Iterable[str]) -> set[str]:
    """The machines of these names."""
    return {short_name(machine.identity.name(name)) for name in names}


def machine_of_run(machine: Case, run: BenchRun) -> Case:
    """Of nodes and jobs those that name a host of the run, where both name their hosts; all where none does. A node of
    another maker's GPUs is none of its machine."""
    hosts = hosts_of(machine, run.hosts)
    known = tuple(node for node in machine.nodes if not _of_another_maker(node, run))
    nodes = tuple(node for node in known if hosts_of(machine, (node.host,)) <= hosts) or known
    jobs = tuple(job for job in machine.jobs if not hosts or not job.hosts or hosts & hosts_of(machine, job.hosts))
    return replace(machine, nodes=nodes, jobs=jobs)


def _of_another_maker(node: Node, run: BenchRun) -> bool:
    makers, of_run = makers_of(node), run_maker(run)
    return of_run is not None and bool(makers) and of_run not in makers


def lacking(node: Node) -> str:
    """What keeps NCCL's topology of a node from being told; "" where nothing does."""
    try:
        tree_of(node)
    except LackingError as error:
        return str(error)
    return ""


def contradicts(node: Node, run: BenchRun) -> bool:
    """Whether the GPUs of a node are another product than those that the run names; False where either is silent."""
    names = {device.name for device in run.devices if device.name}
    wanted = {spec.name for name in names if (spec := gpu_by_name(name)) is not None}
    values = {str(gpu.name.value) for gpu in node.gpus if gpu.name.value}
    texts = {spec.name for name in values if (spec := gpu_by_name(name)) is not None}
    return bool(wanted and texts) and wanted.isdisjoint(texts)


def another_system(run: BenchRun, system: str) -> str:
    """Why a system of the catalogue is not that of a run whose output names other GPUs; "" where it may be."""
    spec = next((spec for spec in systems() if spec.name == system), None)
    names = {device.name for device in run.devices if device.name}
    texts = {_family(gpu.name) for name in names if (gpu := gpu_by_name(name)) is not None}
    if spec is None or not texts or not texts.isdisjoint(map(_family, (spec.gpu, *spec.other_gpus))):
        return ""
    return f"the table names {', '.join(sorted(texts))}, {spec.name} has {_family(spec.gpu)}: wrong --system?"


def _family(gpu: str) -> str:
    """`A100` of `A100-SXM4-40GB`: outputs and systems may differ in the memory of one product."""
    return gpu.replace("-", " ").split()[0]


# --- nodes of one kind ----------------------------------------------------------------------------------------


@lru_cache(maxsize=_KEPT)
def _sorts(nodes: tuple[IdentityKey[Node], ...]) -> tuple[tuple[Node, ...], ...]:
    """Kept, as a hundred runs of one placement ask for the same."""
    pairs: list[tuple[Element, list[Node]]] = []
    for node in (node.it for node in nodes):
        tree = tree_of(node).tree
        alike = next((nodes for first, nodes in pairs if not compare(first, tree)), None)
        if alike is None:
            pairs.append((tree, [node]))
        else:
            alike.append(node)
    return tuple(tuple(nodes) for _, nodes in sorted(pairs, key=lambda pair: len(pair[1]), reverse=True))


# --- what is to be expected of it -----------------------------------------------------------------------------------


def expected_of(run: BenchRun, machine: Case, **given: Unpack[GivenSetup]) -> Expected:
    """The expectation of the machine as it should be, with what is to be said of nodes that are not like the others.
    `given` counts for more than what the run says."""
    system = given.get("system")
    if system is not None and (why := another_system(run, system)):
        return Expected(why=why)
    if not machine.nodes:
        printed = _node_of_print(machine.jobs, run) if given.get("nics") is None else None
        return _of_node(run, printed, machine.jobs, given)
    foreign = [node for node in machine.nodes if contradicts(node, run)]
    nodes_of_run = [node for node in machine.nodes if node not in foreign]
    if not nodes_of_run:
        return Expected(why=f"{_hosts(foreign)} has other GPUs than the table names: wrong --machine?")
    unlike = [f"{_hosts(foreign)} left out: its GPUs are another product than those of the run"] if foreign else []
    sorts = [list(alike) for alike in _sorts(tuple(map(IdentityKey, nodes_of_run)))]
    pairs = [(_of_node(run, nodes[0], machine.jobs, given), nodes) for nodes in sorts[:MOST_SORTS]]
    rows = [(one.expectation.busbw_gbs, one, nodes) for one, nodes in pairs if one.expectation is not None]
    least = pairs[0][0]
    if len(sorts) > 1 and rows:
        least = min(rows, key=lambda row: row[0])[1]
        rest = f"; {len(sorts) - MOST_SORTS} further kinds were not modelled" if sorts[MOST_SORTS:] else ""
        unlike.append(f"{_kinds(rows)}{rest} (topodiag topo diff compares two)")
    return replace(least, unlike=tuple(unlike))


def _kinds(rows: Sequence[tuple[float, Expected, list[Node]]]) -> str:
    """The kinds of nodes, and of which the least is expected (GB/s)."""
    least, _, nodes = min(rows, key=lambda row: row[0])
    most = max(gbs for gbs, _, _ in rows)
    kinds = f"the nodes are of {len(rows)} kinds: {'; '.join(_hosts(nodes) for _, _, nodes in rows)}"
    if most - least < ALIKE * most:
        return f"{kinds}; all should reach the same bandwidth"
    others = "; ".join(f"{in_gbs(gbs)} of {_hosts(others)}" for gbs, _, others in rows if others is not nodes)
    return f"{kinds}; the least is expected of {_hosts(nodes)}, {in_gbs(least)}, and so of all ({others})"


def _hosts(nodes: Sequence[Node]) -> str:
    """The first hosts of nodes that are alike."""
    return few([node.host or "a node without a name" for node in nodes], 3)


def _of_node(run: BenchRun, node: Node | None, jobs: Sequence[Job], given: GivenSetup) -> Expected:
    """The expectation of one node. The NICs of a log stand in where the machine is only guessed, but fewer of them than
    it is built with are no reason to expect less."""
    wires = wires_of(jobs)
    version = given.get("version") or run.nccl or None
    env = {**run.env, **(given.get("env") or {})}

    def with_nics(nics: tuple[int, float] | None) -> Expected:
        setup: GivenSetup = {**given, "nics": nics, "version": version, "env": env, "network": wires.kind}
        return expected(run, node, **setup)

    modelled = with_nics(given.get("nics"))
    if given.get("nics") is not None:
        return modelled
    has_network = modelled.expectation is not None and modelled.expectation.low_gbs > 0
    if not has_network and wires.nics is None and "rdma" in (wires.kind, seen_kind(jobs)):
        least = with_nics(LEAST_RDMA)
        # A run that does not lie below the least that such a network brings goes over another one.
        return least if verdict_of(run, least.expectation, least.why).word in (LOW, UNKNOWN) else modelled
    guessed = modelled.expectation is None or modelled.expectation.confidence is Confidence.LOW
    if wires.nics is None or not guessed:
        return modelled
    built = len(nets_of(modelled.setup.tree)) if modelled.setup is not None else 0
    if wires.nics[0] < built and has_network:
        return modelled
    other = with_nics(wires.nics)
    return modelled if other.expectation is None else other


# --- without a capture: the machine as NCCL printed it in its log ------------------------------------------------


def _node_of_print(jobs: Sequence[Job], run: BenchRun) -> Node | None:
    """The node of the job's largest communicator whose system NCCL printed (NCCL_DEBUG_SUBSYS=GRAPH). None without a
    print, and where the run does not name its GPUs: the print does not say what they are."""
    names = {device.name for device in run.devices if device.name}
    spec = gpu_by_name(next(iter(names))) if len(names) == 1 else None
    pair = _largest_print(jobs)
    if spec is None or pair is None:
        return None
    host, system = pair
    tree = tree_of_print(system, spec.sm, minor_or_default(run.nccl))
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
