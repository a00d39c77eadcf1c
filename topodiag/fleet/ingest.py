"""From what the user named to the facts of all logs: the same whatever reads them, in what order and pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, BinaryIO

import numpy as np

from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.log_plan import (
    CHUNK_BYTES,
    Plan,
    complaint,
    complaint_of_several,
    is_named,
    make_tasks,
    plan_of,
)
from topodiag.evidence.intake.pieces import STDIN, STDIN_NAME, Intake, Piece
from topodiag.evidence.kinds import Kind
from topodiag.evidence.nccl_log.tables.facts import BATCH_ROWS, Facts, SourceFile, empty
from topodiag.evidence.nccl_log.tables.resolve import merge_facts
from topodiag.evidence.nccl_log.tables.saved import MOST_BYTES, Store, give_back, load, on_disk, without_files
from topodiag.fleet.cores import cpus
from topodiag.fleet.read_ahead import ReadAhead
from topodiag.fleet.work import (
    GONE,
    Measure,
    Part,
    Read,
    Task,
    Tree,
    extracted,
    parts_of,
    read_stream,
    run_task,
    told_by_applications,
)
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.result import UnreadLine
from topodiag.words.units import first_of, plural

STDIN_FILE = 0
"""Standard input is the first of all files: its text is there before the others are looked at."""
LITTLE_BYTES = 16 << 20
"""Less text than this is read in process: starting workers takes longer."""
MOST_CHUNK = 1 << 30
"""Places in a piece of text are numbers of 32 bits."""
MAX_SHAPES = 1000
"""Shapes of lines that were not understood, most frequent first: more than anybody reads."""

Progress = Callable[[int, int], None]
"""Called with raw bytes read and the raw bytes in all; of standard input the end is not known, and counts 0."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """Facts of all logs in normal form. `files` is indexed by the tables' `file`; `flight` are dumps of torch's flight
    recorder that lay among the logs, with their names; `notes` say what was not read, and why; `damaged` of which
    files a part could not be read."""

    facts: Facts
    files: tuple[SourceFile, ...] = ()
    inputs: tuple[Input, ...] = ()
    unread: tuple[UnreadLine, ...] = ()
    notes: tuple[str, ...] = ()
    flight: tuple[Piece, ...] = ()
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Stdin:
    """Standard input as a source."""

    stream: BinaryIO
    piece: Piece

    def reads(self, chunk: int) -> Iterator[Part | Read]:
        return read_stream(STDIN_FILE, self.stream, self.piece.coding, chunk)


def ingest(
    inputs: Sequence[str] | Intake,
    *,
    workers: int | None = None,
    dask: str | None = None,
    chunk: int = CHUNK_BYTES,
    on_progress: Progress | None = None,
    stdin: BinaryIO | None = None,
    ahead: ReadAhead[Any] | None = None,
    sums: bool = True,
) -> Ingested:
    """Read files, folders, patterns, `-` and saved facts, or what was gathered of them. Raises InputError where there
    is no log to be had.

    `workers`: processes, by default all CPUs that may be used. `dask`: `local`, `slurm` or a scheduler's address, and
    the files are read there. `chunk`: raw bytes per task. Members of archives are read where the intake has them
    spooled (intake.pieces). What is done `ahead` is handed to the processes that read, once they have no more to read.
    Without `sums` a file has its sha256 only where it may be a copy of another one.
    """
    intake = inputs if isinstance(inputs, Intake) else gather(inputs, stdin=stdin, quick=True)
    source = _open_stdin(intake) if STDIN in intake.paths else None
    plan = plan_of(intake)
    chunk = min(max(chunk, 1), MOST_CHUNK)
    tasks = list(make_tasks(plan, chunk, sums=sums))
    read = _read(plan, tasks, source, workers=workers, dask=dask, chunk=chunk, on_progress=on_progress, ahead=ahead)
    names = [*([STDIN_NAME] if source else []), *(source.name for source in plan.sources)]
    if read is None and not plan.saved:
        read = Part(empty())
    facts = [read.facts] if read is not None else []
    measures = {measure.file: measure for measure in read.measures} if read is not None else {}
    del read  # what it holds is let go where it is joined with saved facts
    files = [
        SourceFile(path, own.size, own.sha256, "; ".join(_notes(own)))
        for number, path in enumerate(names)
        for own in [measures.get(number, Measure(number))]
    ]
    for one in plan.saved:
        saved, listed = load(one.file, one.name)
        facts.append(_renumbered(saved, len(files)))
        measures.update(_measured(facts[-1], len(files), len(listed)))
        files += listed
    whole = _merged(facts)
    copies = _copies(files)
    if copies:
        whole = without_files(whole, frozenset(copies), _store([whole]))
    notes = [*plan.notes, *_judge(plan, source, measures)]
    damaged = [f"{files[number].path}: {note}" for number, measure in measures.items() for note in _notes(measure)]
    return Ingested(
        whole,
        tuple(replace(file, note=_copy_note(file, files, copies.get(n))) for n, file in enumerate(files)),
        tuple(_inputs(files, measures, plan, source)),
        tuple(_unread(whole, files)),
        tuple(dict.fromkeys(notes)),
        plan.flight,
        tuple(dict.fromkeys((*plan.broken, *damaged))),
    )


# Cluster, pool and this process share the stream and the tree that they fill: three functions would hand both round.
def _read(
    plan: Plan,
    tasks: Sequence[Task],
    source: _Stdin | None,
    *,
    workers: int | None,
    dask: str | None,
    chunk: int,
    on_progress: Progress | None,
    ahead: ReadAhead[Any] | None,
) -> Part | None:
    total = plan.size if source is None else 0
    read = 0

    def on_bytes(read: int) -> None:
        if on_progress is not None:
            on_progress(min(read, total) if total else read, total)

    def took(raw: int) -> None:
        nonlocal read
        read += raw
        on_bytes(read)

    tree = Tree()
    if dask is not None:
        if source is not None:
            raise InputError("-", "standard input cannot be read by a cluster", hint="save it to a file first")
        from topodiag.fleet.dask_engine import map_dask  # noqa: PLC0415 - where a cluster is asked for

        for task, part in zip(tasks, map_dask(partial(run_task, chunk=chunk), tasks, dask, workers), strict=True):
            _refuse_unopened(part, plan)
            tree.add(part)
            took(sum(span.end - span.start for span in task))
        return _normal(tree, cpus())
    count = workers or cpus()
    streamed = source.reads(chunk) if source is not None else iter(())
    early = list(_first(streamed, LITTLE_BYTES if count > 1 else 0))  # a short stream is not worth a pool
    much = _can_be_shared(tasks) and (workers is not None or plan.size >= LITTLE_BYTES)
    if count > 1 and (much or sum(map(_bytes_of, early)) >= LITTLE_BYTES):
        from topodiag.fleet.pool import run_pool  # noqa: PLC0415 - processes, of which a short log needs none

        text = chain(early, streamed) if source is not None else None
        tree = run_pool(tasks, count, chunk, on_bytes, text, ahead=ahead)
    else:
        for task in tasks:
            for part in parts_of(task, chunk, took):
                tree.add(part)
        for part in extracted(chain(early, streamed)):
            tree.add(part)
            took(sum(measure.size for measure in part.measures))
    return _normal(tree, min(count, cpus()))


def _can_be_shared(tasks: Sequence[Task]) -> bool:
    return len(tasks) > 1 or any(span.coding for task in tasks for span in task)


def _refuse_unopened(part: Part, plan: Plan) -> None:
    """Raises InputError for a file that a worker elsewhere cannot open."""
    for measure in part.measures:
        if any(note.startswith(GONE) for note in measure.notes):
            lost = plan.sources[measure.file]
            hint = "the folder must be mounted on all nodes of the cluster at the same path"
            hint = f"unpack {lost.path}, give the folder; {hint}" if lost.spooled else hint
            raise InputError(lost.name, "a worker cannot open it", hint=hint)


def _normal(tree: Tree, threads: int) -> Part | None:
    part = tree.result(threads)
    return part.resolved() if part is not None else None


def _merged(several: list[Facts]) -> Facts:
    """All of them, which are let go on the way."""
    if len(several) == 1:
        return several[0]
    store = _store(several)
    if store is not None:
        several = [on_disk(several.pop(0)) for _ in range(len(several))]
        give_back()
    return merge_facts(several, store)


def _store(several: Sequence[Facts]) -> Store | None:
    """Where what becomes of them waits on disk, if it is much."""
    much = any(facts.maps for facts in several) or sum(facts.nbytes for facts in several) > MOST_BYTES
    return Store() if much else None


def _first(streamed: Iterator[Part | Read], size: int) -> Iterator[Part | Read]:
    while size > 0 and (read := next(streamed, None)) is not None:
        size -= _bytes_of(read)
        yield read


def _bytes_of(read: Part | Read) -> int:
    return len(read.piece.data) if isinstance(read, Read) else 0


def _open_stdin(intake: Intake) -> _Stdin:
    piece = next((piece for piece in intake.pieces if piece.path == STDIN), None)
    if piece is None:
        left = next((left_out for left_out in intake.aside if left_out.path == STDIN_NAME), None)
        if left is None:
            raise InputError(STDIN_NAME, "holds no log to read", hint="give the output of the job")
        raise InputError(STDIN_NAME, left.why if left.hint else f"is no NCCL log: it {left.why}", hint=left.hint)
    if piece.is_any((Kind.BUNDLE, Kind.ARCHIVE, Kind.SAVED_FACTS, Kind.PARQUET, Kind.FLIGHT)) or intake.stdin is None:
        raise InputError(STDIN_NAME, f"is no NCCL log: it is {piece.words}", hint="give it as a file")
    return _Stdin(intake.stdin, piece)


def _notes(measure: Measure) -> list[str]:
    return sorted(set(measure.notes))


def _judge(plan: Plan, source: _Stdin | None, measures: dict[int, Measure]) -> Iterator[str]:
    """Notes on files without any record. Raises InputError when no file holds one."""
    barren: list[Piece] = []
    wrong: list[InputError] = []
    for number, one in enumerate(plan.sources, int(plan.stdin)):
        if _worth(measures.get(number)):
            continue
        barren.append(one)
        measure = measures.get(number)
        lost = "; ".join(_notes(measure)) if measure is not None and not measure.size else ""
        if lost:
            wrong.append(InputError(one.name, lost))
        elif is_named(one):
            wrong.append(complaint(one))
    if source is not None and not _worth(measures.get(0)):
        wrong.append(complaint(source.piece))
    if not any(_worth(measure) for measure in measures.values()) and not plan.flight:
        raise _refusal(plan, barren, wrong)
    yield from (str(error) for error in wrong)
    others = [source.name for source in barren if not is_named(source)]
    if others:
        yield f"{plural(len(others), 'file')} without any NCCL record: {first_of(others, 3)}"


def _refusal(plan: Plan, barren: Sequence[Piece], wrong: Sequence[InputError]) -> InputError:
    """Why none of the files is of use: by the first of them."""
    first = wrong[0] if wrong else complaint(barren[0]) if barren else None
    if first is None:
        names = ", ".join(source.name for source in plan.saved[:3])
        return InputError(names, "holds no NCCL record", hint="save it again from the logs")
    more = max(len(barren), len(wrong)) - 1
    return complaint_of_several(first, more) if more else first


def _worth(measure: Measure | None) -> bool:
    return measure is not None and (measure.records > 0 or measure.app > 0)


def _copies(files: Sequence[SourceFile]) -> dict[int, int]:
    """Files of the same content as an earlier one, as a copy or as x.log and x.log.gz: they tell nothing twice."""
    first: dict[str, int] = {}
    return {
        number: first[file.sha256]
        for number, file in enumerate(files)
        if file.sha256 and file.size and first.setdefault(file.sha256, number) != number
    }


def _copy_note(file: SourceFile, files: Sequence[SourceFile], original: int | None) -> str:
    copy = "" if original is None else f"left out: same content as {files[original].path}"
    return "; ".join(filter(None, (file.note, copy)))


def _inputs(
    files: Sequence[SourceFile], measures: dict[int, Measure], plan: Plan, source: _Stdin | None
) -> Iterator[Input]:
    named = {source.name for source in plan.sources if is_named(source)}
    for number, file in enumerate(files):
        seen = measures.get(number) or Measure(number)
        if _worth(seen) or file.path in named or (number == 0 and source is not None):
            unparsed = seen.records - seen.understood
            yield Input(file.path, "nccl_log", file.sha256, seen.lines, seen.records, unparsed)


def _unread(facts: Facts, files: Sequence[SourceFile]) -> Iterator[UnreadLine]:
    """One line per shape over all files: the first place in order of files, and how often."""
    file_of = facts["threads"].values("file")
    seen: dict[str, tuple[int, tuple[int, int, int, str]]] = {}
    columns = ("thread", "offset", "line", "text", "shape", "count")
    for batch in facts["unread"].batches(BATCH_ROWS // 16):
        rows = zip(*map(batch.values, columns), strict=True)
        for thread, offset, line, text, shape, more in rows:
            place = (file_of[thread], offset, line, text)
            count, first = seen.get(shape, (0, place))
            seen[shape] = (count + more, min(first, place))
        facts.rest()
    by_count = sorted(seen.items(), key=lambda item: (-item[1][0], item[0]))
    for shape, (count, (file, _, line, text)) in by_count[:MAX_SHAPES]:
        times = "once" if count == 1 else f"{count:,} times"
        yield UnreadLine(files[file].path, line, text, f"not understood, {times}: {shape}")


def _renumbered(facts: Facts, first: int) -> Facts:
    """The facts with their files counted from `first`."""
    if not first:
        return facts
    moved = {name: facts[name].changed(file=facts[name]["file"] + np.int32(first)) for name in ("shards", "threads")}
    return replace(facts, tables={**facts.tables, **moved})


def _measured(facts: Facts, first: int, count: int) -> dict[int, Measure]:
    """Measures of saved files, from their shards. What applications said counts where there is any."""
    measures = {number: Measure(number) for number in range(first, first + count)}
    for row in facts["shards"].rows():
        if row["file"] in measures:
            more = Measure(row["file"], row["size"], row["lines"], row["records"], row["understood"])
            measures[row["file"]] += more
    for measure in told_by_applications(facts):
        if measure.file in measures:
            measures[measure.file] += measure
    return measures
