"""The machine of measured runs, as bundles, topology files and NCCL logs show it: nodes of one kind, or a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topodiag.app.case.given import gathered, only
from topodiag.evidence.intake.captures import captures, evidence_of
from topodiag.evidence.intake.pieces import STDIN, Intake, Piece, SkippedFile, skipped
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.kinds import NODE_KINDS, Kind
from topodiag.expect.machine import Machine, lacking
from topodiag.model.errors import InputError
from topodiag.model.node import Node

if TYPE_CHECKING:
    from topodiag.model.job import Job

HINT = "it takes a bundle (topodiag scan --save node.tar.gz), a topology file, or NCCL's log; or --system"


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
