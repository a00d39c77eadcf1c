"""The machine of measured runs, as bundles, topology files and NCCL logs show it: nodes of one kind, or a job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from topodiag.app.case.given import gathered
from topodiag.evidence.intake.captures import captures, evidence_of
from topodiag.evidence.intake.pieces import STDIN, Intake, Piece, SkippedFile, skipped
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.kinds import NODE_KINDS, Kind
from topodiag.hardware.catalog import gpu_by_name, systems
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.identity import Identity
from topodiag.model.maker import makers_of, run_maker
from topodiag.model.nccl_tree import Element
from topodiag.model.node import Node
from topodiag.words.hosts import short_name

if TYPE_CHECKING:
    from topodiag.expect.shared import IdentityKey
    from topodiag.model.bench import BenchRun
    from topodiag.model.job import Job

HINT = "it takes a bundle (topodiag scan --save node.tar.gz), a topology file, or NCCL's log; or --system"
MOST_SORTS = 8
"""Nodes that differ from each other of which a run's expectation is reckoned, each a replay of NCCL's search."""
_KEPT = 16
"""Sets of nodes whose sorts are remembered."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What is given of the nodes besides the runs: captured `nodes`, and `jobs` of NCCL's logs. `paths` are where it
    comes from; `identity` says which names are of one host."""

    nodes: tuple[Node, ...] = ()
    jobs: tuple[Job, ...] = ()
    paths: tuple[str, ...] = ()
    identity: Identity = field(default_factory=Identity)

    def hosts(self, names: Iterable[str]) -> set[str]:
        """The machines of these names."""
        return {short_name(self.identity.name(name)) for name in names}

    def for_run(self, run: BenchRun) -> Machine:
        """Of nodes and jobs those that name a host of the run, where both name their hosts; all where none does. A node
        of another maker's GPUs is none of its machine."""
        hosts = self.hosts(run.hosts)
        known = tuple(node for node in self.nodes if not _of_another_maker(node, run))
        nodes = tuple(node for node in known if self.hosts((node.host,)) <= hosts) or known
        jobs = tuple(job for job in self.jobs if not hosts or not job.hosts or hosts & self.hosts(job.hosts))
        return replace(self, nodes=nodes, jobs=jobs)


def _of_another_maker(node: Node, run: BenchRun) -> bool:
    makers, of_run = makers_of(node), run_maker(run)
    return of_run is not None and bool(makers) and of_run not in makers


def named_machine(paths: Sequence[str]) -> Machine:
    """What `--machine` names: bundles, topology files, NCCL logs. Raises InputError where a path is none of them."""
    machines = [_from_path(path) for path in paths]
    return Machine(
        tuple(node for machine in machines for node in machine.nodes),
        tuple(job for machine in machines for job in machine.jobs),
        tuple(paths),
    )


def _from_path(path: str) -> Machine:
    intake = gathered([path])
    logs = [piece for piece in intake.of(Kind.NCCL_LOG) if piece.path != STDIN]
    machine, aside = machine_of(intake, intake.of(*NODE_KINDS), logs)
    if machine.nodes or machine.jobs:
        return machine
    for left_out in (*aside, *intake.beside(*NODE_KINDS)):
        raise InputError(left_out.path, left_out.words, hint=HINT)
    raise InputError(path, "holds no machine", hint=HINT)


def machine_of(intake: Intake, pieces: Sequence[Piece], logs: Sequence[Piece]) -> tuple[Machine, list[SkippedFile]]:
    """The nodes of these pieces and the jobs of these logs, and what is not enough of a machine."""
    nodes, aside = nodes_of(intake, pieces)
    jobs: tuple[Job, ...] = ()
    if logs:
        from topodiag.app.case.jobs import job_case  # noqa: PLC0415 - numpy, which only a log needs

        try:
            jobs = job_case(only(intake, logs)).jobs
        except InputError as error:
            aside.append(skipped(error))
            logs = ()
    paths = tuple(piece.name for piece in (*(pieces if nodes else ()), *logs))
    return Machine(tuple(nodes), jobs, paths), aside


def only(intake: Intake, pieces: Sequence[Piece]) -> Intake:
    """These files of what was gathered, and nothing else."""
    return replace(intake, paths=tuple(piece.path for piece in pieces), pieces=tuple(pieces), aside=(), notes=())


def nodes_of(intake: Intake, pieces: Sequence[Piece]) -> tuple[list[Node], list[SkippedFile]]:
    """The nodes of these pieces of what was gathered from which NCCL's topology can be told, and what is not enough for
    that."""
    part = only(intake, pieces)
    captured = captures(part)
    nodes: list[Node] = []
    aside = [*captured.aside, *(SkippedFile("part of the input", note) for note in captured.notes)]
    for capture in captured.captures:
        try:
            node = read_node(evidence_of(capture, part)).node
        except InputError as error:
            aside.append(skipped(error))
            continue
        why = lacking(node)
        if why:
            aside.append(SkippedFile(capture.name, f"does not describe a machine: {why}"))
        else:
            nodes.append(node)
    return nodes, aside


def is_machine(piece: Piece) -> bool:
    """Whether a node is read from it, and nothing else can be."""
    return piece.kind in NODE_KINDS and not piece.is_any((Kind.NCCL_TESTS, Kind.NCCL_LOG))


def lacking(node: Node) -> str:
    """What keeps NCCL's topology of a node from being told; "" where nothing does."""
    from topodiag.nccl.topo.detect import LackingError, tree_of  # noqa: PLC0415 - where a machine is asked for

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


def sorts_of(nodes: Sequence[Node]) -> list[list[Node]]:
    """The nodes by what matters to communication: each list holds those that NCCL sees alike, the largest list first.
    Bus ids, host names and numbers of PCI domains do not count."""
    from topodiag.expect.shared import IdentityKey  # noqa: PLC0415 - as above

    return [list(alike) for alike in _sorts(tuple(IdentityKey(node) for node in nodes))]


@lru_cache(maxsize=_KEPT)
def _sorts(nodes: tuple[IdentityKey[Node], ...]) -> tuple[tuple[Node, ...], ...]:
    """Kept, as a hundred runs of one placement ask for the same."""
    from topodiag.nccl.topo.compare import compare  # noqa: PLC0415 - as above
    from topodiag.nccl.topo.detect import tree_of  # noqa: PLC0415

    pairs: list[tuple[Element, list[Node]]] = []
    for node in (node.it for node in nodes):
        tree = tree_of(node).tree
        alike = next((nodes for first, nodes in pairs if not compare(first, tree)), None)
        if alike is None:
            pairs.append((tree, [node]))
        else:
            alike.append(node)
    return tuple(tuple(nodes) for _, nodes in sorted(pairs, key=lambda pair: len(pair[1]), reverse=True))
