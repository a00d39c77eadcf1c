"""Texts that say more of a job than its log, set at their job (stacks, traces, RAS), and a running job whose RAS is
asked."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from typing import Any, Generic, TypeVar

from topodiag.checks.job.hang.lost_rank import BLIND
from topodiag.evidence.intake.pieces import Intake, Piece, read_piece
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import Kind
from topodiag.evidence.live.ras_client import ANSWER_S, MAX_BYTES, ask, in_order, place_of, read_ras
from topodiag.lazy import dataclass, regex
from topodiag.model.connections import no_connections
from topodiag.model.diagnostics import Diagnosis, Stack, StepWaits
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.job import Event, Job
from topodiag.model.provenance import NotObserved
from topodiag.model.ras import RasAnswer
from topodiag.model.result import Case
from topodiag.words.units import grouped, plural
from topodiag.writing import replacing

ALONE = "RAS"
"""The name of a job of which there is nothing but answers of RAS."""
PART = "part of what NCCL's RAS answered"


def ras_answers(intake: Intake) -> Readings[RasAnswer]:
    """All answers in order, the files they came from, and what could not be read."""
    gaps: list[NotObserved] = []

    def read(blob: Blob) -> tuple[RasAnswer, ...]:
        name, answers = blob.name, read_ras(blob.text, blob.name)
        if cut := sum(not answer.whole for answer in answers):
            gaps.append(NotObserved(PART, f"{name}: {plural(cut, 'answer')} cut before its end"))
        if not answers:
            gaps.append(NotObserved(PART, f"{name}: holds no answer: the server closed the connection, ask again"))
        return answers

    texts = read_texts(intake, Kind.RAS, read, most=MAX_BYTES, part=PART)
    return Readings(in_order(texts.values), texts.inputs, (*texts.gaps, *gaps))


def with_ras(jobs: Sequence[Job], answers: Sequence[RasAnswer]) -> tuple[Job, ...]:
    """The answers at the jobs whose communicators or processes they name, at the only job there is, or as a job of
    their own. Two jobs of one user on a node share a port, so that each answer is placed by itself."""
    placed = grouped((_job_of(jobs, answer), answer) for answer in answers)
    updated = [
        replace(job, ras=(*job.ras, *placed[at]), events=(*job.events, *_errors(placed[at]))) if at in placed else job
        for at, job in enumerate(jobs)
    ]
    for number, own in enumerate(_by_job(placed.get(-1, ()))):
        size = max(max(answer.processes, *(comm.size for comm in answer.communicators), 0) for answer in own)
        name = ALONE if not number else f"{ALONE} {number + 1}"
        versions = tuple(dict.fromkeys(ras_answer.version for ras_answer in own if ras_answer.version))
        updated.append(job_of(name, size, nccl_versions=versions, events=_errors(own), ras=own))
    return tuple(updated)


def _errors(answers: Sequence[RasAnswer]) -> tuple[Event, ...]:
    """What ranks would return to their callers, the first answer that says so of each process."""
    events: dict[tuple[str, int], Event] = {}
    for answer in answers:
        for member in (member for comm in answer.communicators for member in comm.members):
            if not member.error or member.process is None:
                continue
            host, pid = member.process.key
            text = f"RAS: rank {member.rank} of its communicator reports {member.error}"
            lost_peer = member.error.lower().startswith("remote process")
            kind, details = ("peer closed", {"peer gone": "1"}) if lost_peer else ("other", {})
            error = Event(
                kind, text, host, pid, ts=answer.time, level="APP", secondary=lost_peer, details=details,
                origin=member.origin,
            )  # fmt: skip
            events.setdefault((host, pid), error)
    return tuple(events.values())


def _job_of(jobs: Sequence[Job], answer: RasAnswer) -> int:
    hashes = {communicator.hash for communicator in answer.communicators if communicator.hash}
    pids = {name[1] for name in _names(answer) if isinstance(name, tuple)}
    at = owner_of(jobs, hashes, pids or None)
    if at >= 0:
        return at
    with_logs = [at for at, job in enumerate(jobs) if job.processes]
    if len(with_logs) == 1 and (not pids or not {p.pid for p in jobs[with_logs[0]].processes}.isdisjoint(pids)):
        return with_logs[0]
    return -1


def _by_job(answers: Sequence[RasAnswer]) -> list[tuple[RasAnswer, ...]]:
    """The answers by job: those that share a communicator or a process. One that names none is of the first job of its
    size."""
    groups: list[tuple[set[object], list[int]]] = []
    for at in sorted(range(len(answers)), key=lambda at: not _names(answers[at])):
        names = _names(answers[at])
        for known, group in groups:
            sizes = {answers[group[0]].processes, answers[at].processes}
            if known & names or (not names and (0 in sizes or len(sizes) == 1)):
                known.update(names)
                group.append(at)
                break
        else:
            groups.append((names, [at]))
    return [in_order(answers[at] for at in sorted(group)) for _, group in groups]


def _names(answer: RasAnswer) -> set[object]:
    """Communicators and processes that an answer names."""
    hashes: set[object] = {communicator.hash for communicator in answer.communicators if communicator.hash}
    return hashes | {process.key for process in answer.named}


@dataclass(frozen=True, slots=True)
class Asking:
    """How to ask: `times` answers of each place, `pause_s` seconds apart; `save` is a folder that keeps them."""

    times: int = 2
    pause_s: float = 10.0
    save: str | None = None


_REFUSAL = regex(rb"^(?:BUSY: |ERROR: (?!Unknown command SET FORMAT))[ -~]{1,200}", re.M)
"""src/ras/client_support.cc. A server before 2.28.7 refuses the format alone, and goes on with text."""
TALK_S = 2 * ANSWER_S
"""Seconds for all answers together, beyond the pauses between them: a server that sends a byte a second ends."""
MORE = 4
"""Answers asked for beyond those wanted, where one was empty or of another job on the same port."""


# Complexity 22: each place may refuse, end or answer in its own way.
def live_answers(
    places: Sequence[str], asking: Asking, tell: Callable[[str], None] = lambda _: None
) -> tuple[tuple[RasAnswer, ...], tuple[Input, ...], tuple[NotObserved, ...]]:
    """The answers of a running job, asked at each place in turn: two of them tell a hang from a job that runs. Raises
    InputError where no place answers."""
    known = [(given, *place_of(given)) for given in places]
    answers: list[RasAnswer] = []
    inputs: list[Input] = []
    gaps: dict[str, NotObserved] = {}
    failures: dict[str, InputError] = {}
    wanted, asked = asking.times, 0
    own = {given: f"{given}:{port}" for given, _, port in known if str(port) not in given}
    if asking.save is not None:
        _check_kept(asking.save, [_kept_name(given, n) for given in places for n in range(1, wanted + MORE + 1)])
    end = time.monotonic() + TALK_S + asking.times * asking.pause_s
    while asked < wanted:
        if asked:
            time.sleep(asking.pause_s)
        for given, host, port in known:
            left = end - time.monotonic()
            if left <= 0 and (inputs or failures):
                gaps.setdefault(given, NotObserved(PART, f"{given}: not asked again, the time of the whole was over"))
                continue
            tell(f"asking {given}, {asked + 1} of {wanted}")
            try:
                data = ask(host, port, answer_s=max(1.0, min(ANSWER_S, left)))
            except InputError as error:
                failures[given] = error
                continue
            name = f"{own.get(given, given)}, answer {asked + 1}"
            read = read_ras(data.decode("utf-8", "replace"), name)
            answers += read
            inputs.append(Input(name, Kind.RAS.value, hashlib.sha256(data).hexdigest(), data.count(b"\n"), len(read)))
            if asking.save is not None:
                _keep(asking.save, _kept_name(given, asked + 1), data)
            if not read:
                gaps[given] = NotObserved(PART, f"{given}: {_why_nothing(data)}")
        if failures and not inputs:
            raise next(iter(failures.values()))
        asked += 1
        if time.monotonic() >= end:
            break
        # Each job that answered shall do so as often as wanted: jobs of one user on a node share the port.
        if asked == wanted < asking.times + MORE and min(map(len, _by_job(answers)), default=0) < asking.times:
            wanted += 1
    silent = [NotObserved(PART, str(error)) for error in failures.values()]
    return in_order(answers), tuple(inputs), (*silent, *gaps.values())


def _why_nothing(data: bytes) -> str:
    """Why an answer tells of no communicator: the server's own words, where it refuses."""
    refusal = _REFUSAL.search(data)
    if refusal is None:
        return "answers nothing: no communicator is complete yet"
    words = refusal[0].decode("ascii", "replace")
    return f"answers `{words}`" + (": ask again once that is done" if words.startswith("BUSY") else "")


def _kept_name(given: str, number: int) -> str:
    safe = "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in given)
    return f"{safe}-{number}.txt"


def _check_kept(folder: str, names: Sequence[str]) -> None:
    """Raise InputError where a file with the name of an answer is none."""
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.path.getsize(path):
            with open(path, encoding="utf-8", errors="replace") as stream:
                if not read_ras(stream.read(MAX_BYTES), name):
                    raise InputError(path, "is no answer of RAS, and would be written over", hint="name another folder")


def _keep(folder: str, name: str, data: bytes) -> None:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise InputError(folder, f"cannot be made: {error.strerror or error}") from None
    with replacing(os.path.join(folder, name), private=True) as stream:
        stream.write(data)


def asked(
    case: Case, places: Sequence[str], asking: Asking | None = None, tell: Callable[[str], None] = lambda _: None
) -> Case:
    """The case with what NCCL's RAS of a running job answers there. Raises InputError where nobody answers."""
    answers, inputs, silent = live_answers(places, asking or Asking(), tell)
    if not answers and not case.inputs:
        words = "".join(f" ({silence.why.partition(': ')[2]})" for silence in silent if "`" in silence.why)
        hint = "before the first communicator is complete RAS has nothing to tell: give the logs, topodiag logs LOGS"
        raise InputError(places[0], f"answers, and says nothing of a communicator{words}", hint=hint)
    gaps = (*case.not_observed, *silent, NotObserved("what RAS cannot see", BLIND))
    return replace(case, jobs=with_ras(case.jobs, answers), inputs=(*case.inputs, *inputs), not_observed=gaps)


_T = TypeVar("_T")


def is_only(piece: Piece, kind: Kind) -> bool:
    """Whether a piece is of this kind and holds no log."""
    return kind in piece.kinds and not piece.is_any((Kind.NCCL_LOG, Kind.JOB_OUTPUT))


@dataclass(frozen=True, slots=True)
class Readings(Generic[_T]):
    """What was found in all pieces, the files it came from, and what could not be read."""

    values: tuple[_T, ...] = ()
    inputs: tuple[Input, ...] = ()
    gaps: tuple[NotObserved, ...] = ()


def read_texts(
    intake: Intake, kind: Kind, read: Callable[[Blob], Sequence[_T]], *, most: int, part: str
) -> Readings[_T]:
    """What `read` finds in each piece of a kind. One bad file, and one of more than `most` bytes, costs itself; `part`
    says in words what is not observed then."""
    values: list[_T] = []
    inputs: list[Input] = []
    gaps: list[NotObserved] = []
    for piece in intake.of(kind):
        whole_file = is_only(piece, kind)
        if not whole_file and piece.size < 0 and piece.held is None:
            continue  # standard input that goes on is read once, by the reader of logs
        try:
            blob = read_piece(intake, piece, most)
        except InputError as error:
            gaps.append(NotObserved(part, str(error)))
            continue
        own = read(blob)
        values += own
        if whole_file:
            digest = hashlib.sha256(blob.data).hexdigest()
            inputs.append(Input(piece.name, kind.value, digest, blob.data.count(b"\n"), len(own)))
    return Readings(tuple(values), tuple(inputs), tuple(gaps))


def job_of(name: str, size: int = -1, hosts: Sequence[str] = (), **held: Any) -> Job:
    """A job of which there is nothing but this."""
    return Job(name, size, (), (), (), no_connections(), tuple(hosts), **held)


def attached(
    jobs: Sequence[Job], at: int, name: str, size: int = -1, hosts: Sequence[str] = (), **held: Any
) -> tuple[Job, ...]:
    """The jobs, with these fields of the job of this number; where that is -1, as a job of their own with this name."""
    if at < 0:
        return (*jobs, job_of(name, size, hosts, **held))
    return (*jobs[:at], replace(jobs[at], **held), *jobs[at + 1 :])


def last_with(jobs: Sequence[Job], is_one: Callable[[Job], bool]) -> int:
    """The number of the last job that is one; -1 for none: what is said later is of the run that is looked into."""
    return next((at for at in reversed(range(len(jobs))) if is_one(jobs[at])), -1)


def owner_of(jobs: Sequence[Job], hashes: Set[int], pids: Set[int] | None = None) -> int:
    """The number of the last job with a communicator of these hashes, else of the last with all of these processes, by
    its log or by RAS; -1 for none."""
    at = last_with(jobs, lambda job: any(comm.comm_id in hashes for comm in job.communicators if comm.comm_id))
    if at >= 0 or pids is None:
        return at

    def has_them(job: Job) -> bool:
        members = (member for answer in job.ras for comm in answer.communicators for member in comm.members)
        of_ras = {member.process.pid for member in members if member.process is not None}
        return pids <= {process.pid for process in job.processes} or pids <= of_ras

    return last_with(jobs, has_them)


def _owner_or_last(jobs: Sequence[Job], hashes: Set[int]) -> int:
    at = owner_of(jobs, hashes)
    return at if at >= 0 else len(jobs) - 1


def with_stacks(jobs: Sequence[Job], dumped: Sequence[Stack]) -> tuple[Job, ...]:
    """The stacks at the last job, since dumps are of the run that hangs, or as a job of their own."""
    return attached(jobs, len(jobs) - 1, "stack dumps", stacks=tuple(dumped)) if dumped else tuple(jobs)


def with_step_waits(jobs: Sequence[Job], waits: Sequence[StepWaits]) -> tuple[Job, ...]:
    """The waits at the last job, which a trace of its communicators moves to theirs, or as a job of their own."""
    if not waits:
        return tuple(jobs)
    at, size = _owner_or_last(jobs, {wait.comm for wait in waits}), max(wait.rank for wait in waits) + 1
    return attached(jobs, at, "profiler traces", size, step_waits=tuple(waits))


def with_diagnostics(jobs: Sequence[Job], lines: Sequence[Diagnosis]) -> tuple[Job, ...]:
    """The lines at the jobs whose communicators they name, else at the last job, or as a job of their own."""
    owners = {comm: _owner_or_last(jobs, {comm}) for comm in {line.comm for line in lines}}
    updated = tuple(jobs)
    for at, own in grouped((owners[line.comm], line) for line in lines).items():
        size = max(line.size for line in own)
        updated = attached(updated, at, "NCCL diagnostics", size, diagnostics=tuple(own))
    return updated
