"""The measured runs of a case: which files hold tables of nccl-tests, and which scripts set their environment."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from topodiag.evidence.intake.pieces import STDIN, Intake, Piece, blocks_of, left_aside, skipped, spooled
from topodiag.evidence.kinds import Kind, command_for
from topodiag.evidence.nccl_log.input.streams import Reading
from topodiag.evidence.nccl_tests import Read, read_file
from topodiag.model.bench import BenchRun
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.provenance import NotObserved, Origin
from topodiag.model.result import Case, UnreadLine
from topodiag.words.units import grouped, spell_bytes

if TYPE_CHECKING:
    from topodiag.model.job import Job

Settings: TypeAlias = Mapping[str, tuple[str, Origin]]
"""Value by name, and the line that gives it."""

MAX_BYTES = 512 << 20
"""Text of one file that is read, unpacked: a table has kilobytes, and NCCL's log of a large job beside it far less."""
HINT = "it takes what *_perf of nccl-tests printed, or its -J FILE"

SCRIPTS = (Kind.TEXT, Kind.PROGRAM)
"""Kinds of which a job script is one, or the description of a pod: what they set holds for the runs beside them."""
LOGS = (Kind.NCCL_LOG, Kind.JOB_OUTPUT)
"""Kinds of text that are read as logs, unless they are tables by their heads."""
TABLES = (Kind.NCCL_TESTS, *LOGS, Kind.NODE_TEXT, Kind.TEXT, Kind.JSON)
"""Kinds of text in which a table may stand further down than the bytes by which a file is recognised."""


def read_runs(gathered: Intake, tables: Sequence[Piece], others: Sequence[Piece]) -> Case:
    """The runs in these pieces, with what scripts among the `others` set, and the jobs of NCCL's log in the same files
    as the `tables`: those of other texts are read as logs. Raises InputError where nothing holds a run."""
    runs: list[BenchRun] = []
    jobs: list[Job] = []
    inputs: list[Input] = []
    unread: list[UnreadLine] = []
    scripts: dict[str, Settings] = {}
    gaps: list[NotObserved] = []
    rest: list[tuple[str, NotObserved]] = []
    known = {piece.name for piece in tables}
    with spooled(replace(gathered, pieces=(*tables, *others)), lambda piece: piece.is_any(TABLES)) as intake:
        for piece in intake.pieces:
            try:
                text, notes = _text(piece, intake)
            except InputError as error:
                gaps.append(NotObserved(piece.name, skipped(error).why, unreadable=True))
                continue
            read = read_file(text, piece.name)
            if read.runs and (piece.name in known or _tells(read)):
                runs += read.runs
                unread += read.unread
                jobs += _jobs_of(intake, piece, text, read) if piece.name in known or not piece.is_any(LOGS) else ()
                rows = sum(len(run.rows) for run in read.runs)
                digest = hashlib.sha256(text).hexdigest()
                inputs.append(Input(piece.name, "nccl-tests", digest, read.lines, rows, read.left))
                gaps += [NotObserved(piece.name, note) for note in notes]
            elif read.settings and piece.is_any(SCRIPTS):
                scripts[piece.name] = read.settings
            elif piece.is_any(TABLES):
                rest.append((piece.command, NotObserved(piece.name, _no_run(piece, text, read))))
    if not runs:
        raise _refusal(gathered, [gap for _, gap in sorted(rest, key=lambda pair: not pair[0])], gaps)
    inputs += [Input(name, "job script", records=len(settings)) for name, settings in scripts.items()]
    measured, gaps = tuple(_with_scripts(runs, scripts.values())), [*gaps, *(gap for _, gap in rest)]
    return Case(runs=measured, jobs=tuple(jobs), inputs=tuple(inputs), not_observed=tuple(gaps), unread=tuple(unread))


def _tells(read: Read) -> bool:
    """Whether a text tells of nccl-tests by a table or a program's name: an error alone may be that of any program."""
    return any(run.rows or run.collective for run in read.runs)


def _refusal(gathered: Intake, without: Sequence[NotObserved], unread: Sequence[NotObserved]) -> InputError:
    """Why nothing holds a run: the first file that was given says it."""
    others = (left_aside(piece) for piece in gathered.pieces if not piece.is_any(TABLES))
    for first in (*without, *(NotObserved(aside.path, aside.words) for aside in (*gathered.aside, *others)), *unread):
        return InputError(first.what, first.why, hint=HINT)
    return InputError(gathered.paths[0], "holds no file to read", hint=HINT)


def _with_scripts(runs: Iterable[BenchRun], scripts: Iterable[Settings]) -> Iterator[BenchRun]:
    """The runs with what job scripts beside them set and their own output does not say. Scripts that disagree about a
    variable say nothing of it."""
    pairs = grouped(item for settings in scripts for item in settings.items())
    agreed = {name: own[-1] for name, own in pairs.items() if len({value for value, _ in own}) == 1}
    env = {name: value for name, (value, _) in agreed.items()}
    for run in runs:
        commands = {name: line for name, (_, line) in agreed.items() if name not in run.env}
        yield replace(run, env={**env, **run.env}, commands={**commands, **run.commands})


def _text(piece: Piece, intake: Intake) -> tuple[bytes, tuple[str, ...]]:
    """The text of a piece, unpacked, and what there is to say about that. Raises InputError."""
    reading, text = Reading(), bytearray()
    with blocks_of(intake, piece, reading) as blocks:
        for block in blocks:
            text += block
            if len(text) > MAX_BYTES:
                del text[MAX_BYTES:]
                reading.notes.append(f"only the first {spell_bytes(MAX_BYTES)} of text were read")
                break
    return bytes(text), tuple(reading.notes)


def _no_run(piece: Piece, text: bytes, read: Read) -> str:
    """Why a file holds no run, and what else it may be."""
    if read.records:
        command = command_for(Kind.NCCL_LOG, piece.path)
        return f"holds no table of nccl-tests, only NCCL's log ({command} reads it)"
    if piece.command and piece.kind is not Kind.NCCL_TESTS:
        return f"holds no table of nccl-tests: it looks like {piece.words} ({piece.command} reads it)"
    return "holds no table of nccl-tests" if text.strip() else "is empty"


def _jobs_of(intake: Intake, piece: Piece, data: bytes, read: Read) -> tuple[Job, ...]:
    """The jobs that NCCL's log in the same file tells of."""
    if not read.records and not piece.is_any((Kind.JOB_OUTPUT,)):  # one record of NCCL can be the verdict
        return ()
    from topodiag.evidence.nccl_log.rebuild.rebuild import rebuild  # noqa: PLC0415 - numpy from here on
    from topodiag.fleet.ingest import ingest  # noqa: PLC0415

    try:
        is_read = piece.path == STDIN  # and can be read only once
        own = Intake((piece.path,), (piece,), stdin=intake.stdin)
        ingested = ingest([STDIN], stdin=io.BytesIO(data)) if is_read else ingest(own)
    except InputError:
        return ()
    return rebuild(ingested.facts, ingested.files)
