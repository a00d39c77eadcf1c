"""Answers of NCCL's RAS among the evidence: read, and set beside the jobs that they are of."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from topodiag.evidence.intake.kinds import Kind
from topodiag.evidence.intake.pieces import Intake, Piece
from topodiag.evidence.intake.reading import read_piece
from topodiag.evidence.live.ras import MAX_BYTES, in_order, read_ras
from topodiag.model.connections import no_connections
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.job import Job
from topodiag.model.provenance import NotObserved
from topodiag.model.ras import RasAnswer
from topodiag.words.fold import plural

ALONE = "RAS"
"""The name of a job of which there is nothing but answers of RAS."""
PART = "part of what NCCL's RAS answered"


def is_ras_alone(piece: Piece) -> bool:
    """Whether a piece holds answers of RAS and no log."""
    return Kind.RAS in piece.kinds and not piece.is_any((Kind.NCCL_LOG, Kind.JOB_OUTPUT))


def ras_answers(intake: Intake) -> tuple[tuple[RasAnswer, ...], tuple[Input, ...], tuple[NotObserved, ...]]:
    """All answers in order, the files they came from, and what could not be read. One bad file costs that file."""
    answers: list[RasAnswer] = []
    inputs: list[Input] = []
    gaps: list[NotObserved] = []
    for piece in intake.of(Kind.RAS):
        if piece.kinds[0] is not Kind.RAS and not is_ras_alone(piece) and piece.size < 0:
            continue  # standard input is read once, by the reader of logs
        try:
            blob = read_piece(intake, piece, MAX_BYTES)
        except InputError as error:
            gaps.append(NotObserved(PART, str(error)))
            continue
        found = read_ras(blob.text, piece.name)
        answers += found
        if is_ras_alone(piece):
            digest = hashlib.sha256(blob.data).hexdigest()
            inputs.append(Input(piece.name, Kind.RAS.value, digest, blob.text.count("\n"), len(found)))
        cut = [answer for answer in found if not answer.whole]
        if cut:
            gaps.append(NotObserved(PART, f"{piece.name}: {plural(len(cut), 'answer')} cut before its end"))
        if not found:
            gaps.append(
                NotObserved(PART, f"{piece.name}: holds no answer: the server closed the connection, ask again")
            )
    return in_order(answers), tuple(inputs), tuple(gaps)


def with_ras(jobs: Sequence[Job], answers: Sequence[RasAnswer]) -> tuple[Job, ...]:
    """The answers at the jobs whose communicators or processes they name, at the only job there is, or as a job of
    their own. Two jobs of one user on a node share a port, so that each answer is placed by itself."""
    placed: dict[int, list[RasAnswer]] = {}
    for answer in answers:
        placed.setdefault(_job_of(jobs, answer), []).append(answer)
    made = [replace(job, ras=tuple(placed[at])) if at in placed else job for at, job in enumerate(jobs)]
    if -1 in placed:
        own = tuple(placed[-1])
        made.append(Job(ALONE, max(_world_size(each) for each in own), (), (), (), no_connections(), (), ras=own))
    return tuple(made)


def _job_of(jobs: Sequence[Job], answer: RasAnswer) -> int:
    hashes = {each.hash for each in answer.communicators if each.hash}
    named = [member.process for each in answer.communicators for member in each.members]
    named += [*answer.silent, *answer.dead, *(event.process for event in answer.events)]
    pids = {each.pid for each in named if each is not None}
    for at in reversed(range(len(jobs))):
        if hashes & {each.comm_id for each in jobs[at].communicators if each.comm_id}:
            return at
    for at in reversed(range(len(jobs))):
        if pids and pids <= {process.pid for process in jobs[at].processes}:
            return at
    with_logs = [at for at, job in enumerate(jobs) if job.processes]
    if len(with_logs) == 1 and (not pids or not {p.pid for p in jobs[with_logs[0]].processes}.isdisjoint(pids)):
        return with_logs[0]
    return -1


def _world_size(answer: RasAnswer) -> int:
    return max([answer.processes, *(each.size for each in answer.communicators)])
