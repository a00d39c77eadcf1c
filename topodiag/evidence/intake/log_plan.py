"""From what the user named to a plan: which files are read, in which order, in which pieces.

Only first and last bytes are read here. A task is a handful of spans; a span is a range of one file's raw bytes and
stands for the lines that begin in it, so that tasks need not know of each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from topodiag.evidence.intake.pieces import STDIN, Intake, Piece, SkippedFile, folded, left_aside
from topodiag.evidence.kinds import Kind
from topodiag.evidence.nccl_log.input.streams import Span
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError

CHUNK_BYTES = 30 << 20
"""Raw text per task: some tenths of a second of work, beside which the cost of a task does not show. Less than 32 MiB:
above, glibc maps memory anew for every piece, and page faults take a tenth of the time."""
MAX_SPANS = 64
"""Small files per task: a scheduler's overhead is per task, and one slow file should not hold up hundreds."""


def is_named(piece: Piece) -> bool:
    """Whether the user named this very file: a member of an archive is like a file in a folder."""
    return piece.named and not piece.member


@dataclass(frozen=True, slots=True)
class Plan:
    """Files to read in order of their path: `sources` are texts, `saved` facts in Parquet, `flight` dumps of torch's
    flight recorder."""

    sources: tuple[Piece, ...] = ()
    saved: tuple[Piece, ...] = ()
    flight: tuple[Piece, ...] = ()
    stdin: bool = False
    notes: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    """What cannot be read as it lies there, whatever it is, with the reason."""

    @property
    def size(self) -> int:
        return sum(source.size for source in self.sources)


def _no_log(intake: Intake, left: Sequence[str]) -> InputError:
    paths = sorted(set(intake.paths))
    return InputError(
        paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more",
        f"holds no log to read{': ' + '; '.join(left) if left else ''}",
        hint="give the files that NCCL_DEBUG_FILE named, or the output of the job",
    )


def plan_of(intake: Intake) -> Plan:
    """What logs are read from: every text, since a record may stand anywhere in it, saved facts, and dumps. Members of
    archives must be spooled. Raises InputError where nothing is left to read."""
    planned, left = _sorted(intake)
    left += [_refused(left_out) if left_out.refused else left_out for left_out in intake.aside]
    stdin = STDIN in intake.paths
    if not any(planned.values()) and not stdin:
        refused = _errors(left)
        raise refused[0] if refused else _no_log(intake, folded(left))
    broken = tuple(f"{left_out.path}: {left_out.why}" for left_out in left if left_out.unreadable)
    left = [left_out for left_out in left if not left_out.unreadable]
    others = [left_out for left_out in left if not left_out.refused]
    notes = (*map(str, _errors(left)), *intake.notes, *folded(others))
    return Plan(**{name: tuple(own) for name, own in planned.items()}, stdin=stdin, notes=notes, broken=broken)


def _errors(left: Iterable[SkippedFile]) -> list[InputError]:
    """What was named and is not read."""
    return [InputError(left_out.path, left_out.why, hint=left_out.hint) for left_out in left if left_out.refused]


def _sorted(intake: Intake) -> tuple[dict[str, list[Piece]], list[SkippedFile]]:
    """The files of a plan by its fields, and what is none of them."""
    planned: dict[str, list[Piece]] = {"sources": [], "saved": [], "flight": []}
    left: list[SkippedFile] = []
    for piece in intake.pieces:
        if piece.path == STDIN:
            continue
        if not is_read(piece):
            left.append(_left(piece))
        elif piece.member and not piece.spooled:
            left.append(SkippedFile(piece.name, "in an archive", hint=f"unpack {piece.path}, and give the folder"))
        else:
            planned[_field_of(piece)].append(piece)
    return planned, left


_NO_TEXT = frozenset(
    {
        Kind.BUNDLE, Kind.TOPOLOGY, Kind.HWLOC, Kind.GRAPH, Kind.ARCHIVE, Kind.PARQUET, Kind.FLIGHT, Kind.SWEEP,
        Kind.INSPECTOR,
    }
)  # fmt: skip
"""Kinds in which no record of NCCL stands, however long the file is."""


def is_read(piece: Piece) -> bool:
    """Whether facts of logs may come from it: text that may hold a record, saved facts, or a dump."""
    return bool(_field_of(piece))


def _field_of(piece: Piece) -> str:
    """The field of a plan that a piece belongs to, "" for none. A Parquet file that was named holds facts by its name,
    in which version 1 kept them: the reader says that."""
    if piece.kind is Kind.FLIGHT and not piece.coding:
        return "flight"
    if piece.kind is Kind.SAVED_FACTS or (piece.kind is Kind.PARQUET and is_named(piece)):
        return "saved"
    return "sources" if not piece.is_any(_NO_TEXT) or Kind.NCCL_LOG in piece.kinds else ""


def _left(piece: Piece) -> SkippedFile:
    if is_named(piece):
        return SkippedFile(piece.name, f"is no NCCL log: it is {piece.words}", hint=piece.command, refused=True)
    return replace(left_aside(piece), refused=False)


def _refused(left_out: SkippedFile) -> SkippedFile:
    what = left_out.why.removeprefix("it is ")
    return left_out if what == left_out.why else replace(left_out, why=f"is no NCCL log: it is {what}")


def make_tasks(plan: Plan, chunk: int = CHUNK_BYTES, *, sums: bool = True) -> Iterator[tuple[Span, ...]]:
    """Spans for one call of the extractor's worker each: about `chunk` raw bytes, of one large or many small files.
    Standard input is the first file where it is read. Without `sums` they are taken of plain files that may be copies
    of others."""
    sums |= plan.stdin or bool(plan.saved) or any(source.coding for source in plan.sources)
    sizes = Counter(source.size for source in plan.sources)
    packed: list[Span] = []
    filled = 0
    for number, source in enumerate(plan.sources, int(plan.stdin)):
        if source.size > chunk and not source.coding:
            for start in range(0, source.size, chunk):
                end = min(start + chunk, source.size)
                yield (Span(number, source.file, start, end, summed=sums or sizes[source.size] > 1),)
            continue
        if packed and (filled + source.size > chunk or len(packed) == MAX_SPANS):
            yield tuple(packed)
            packed, filled = [], 0
        packed.append(Span(number, source.file, 0, source.size, source.coding, sums or sizes[source.size] > 1))
        # A packed text is some ten times larger than its archive.
        filled += source.size * 10 if source.coding else source.size
    if packed:
        yield tuple(packed)


ASK = "run the job with NCCL_DEBUG=INFO and give its output"
"""The hint for a text of which no line is one of NCCL, torch, CUDA or a launcher."""


def complaint(piece: Piece) -> InputError:
    """Why a text without any NCCL record is not the right one, in one line."""
    if piece.kind is Kind.BLANK:
        return InputError(piece.name, "holds nothing but blanks", hint="did the job run with NCCL_DEBUG=INFO?")
    if piece.kind in (Kind.TEXT, Kind.NCCL_LOG, Kind.JOB_OUTPUT):
        return InputError(piece.name, "holds no NCCL record", hint=ASK)
    if piece.command:
        return InputError(piece.name, f"is no NCCL log: it looks like {piece.words}", hint=f"{piece.command} reads it")
    return InputError(piece.name, f"holds no NCCL record: it looks like {piece.words}", hint="give the log of the job")


def complaint_of_several(first: InputError, more: int) -> InputError:
    """The same of several files, by the first of them."""
    what = first.message.partition("it looks like ")[2]
    return InputError(
        f"{first.path} and {more} more",
        "hold no NCCL record" + (f": the first looks like {what}" if what else ""),
        hint=first.hint if what else ASK,
    )
