"""What the front door hands on: the pieces of evidence at some paths, the text of each (unpacked, decoded, bounded),
and what was left aside with the reason."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from shlex import quote
from typing import BinaryIO

from topodiag.evidence.intake.one_file import MAX_BYTES, text_within, too_large
from topodiag.evidence.intake.watched import watch
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import ANY_EVIDENCE, DAMAGED, NODE_EVIDENCE, Kind, command_for, source_words
from topodiag.evidence.nccl_log.input.streams import READ_BYTES, Reading, text_of
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.words.units import first_of, grouped

STDIN = "-"
STDIN_NAME = "<stdin>"


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of evidence: a file, a bundle, a member of an archive, or standard input.

    `path` is what to open: a file, the folder of a bundle, an archive, or `-`. `member` is the file, or the folder of a
    bundle, inside an archive; `spooled` is the plain file that it was copied to (`spooled` below). `kinds` are all that
    the text looks like, the most telling first: the output of a job may hold nvidia-smi, NCCL's log and a table of
    nccl-tests. `sources` are the readers of evidence/sources.toml for it. `coding` are the layers to take off. `named`:
    the user gave this very path, rather than a folder with it. `root` is the argument it came from. `size` is in raw
    bytes, -1 of standard input. `what` are words that are more exact than those of its kind. `ids` are serials that
    only one machine has, each with the device that it is of, "" where that is not said; `digest` is the same for copies
    of one bundle. `held` is the text itself of a part of a file: what one of several hosts printed, its `member`.
    """

    path: str
    kinds: tuple[Kind, ...]
    size: int = -1
    coding: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    host: str = ""
    named: bool = True
    member: str = ""
    root: str = ""
    what: str = ""
    ids: frozenset[tuple[str, str]] = frozenset()
    digest: str = ""
    spooled: str = ""
    held: bytes | None = None

    @property
    def file(self) -> str:
        """The path to open for its bytes; of a member of an archive that is not spooled, the archive."""
        return self.spooled or self.path

    @property
    def kind(self) -> Kind:
        return self.kinds[0]

    @property
    def name(self) -> str:
        """As a reader knows it."""
        whole = STDIN_NAME if self.path == STDIN else self.path
        return f"{whole}/{self.member}" if self.member else whole

    @property
    def words(self) -> str:
        """What it is, with its article: `an NCCL log`."""
        if self.what:
            return self.what
        return source_words(self.sources[0]) if self.kind is Kind.NODE_TEXT and self.sources else self.kind.facts.words

    @property
    def command(self) -> str:
        """The command that reads it, ready to be typed; "" where none does."""
        return command_for(self.kind, self.path)

    def is_any(self, kinds: Iterable[Kind]) -> bool:
        return not set(self.kinds).isdisjoint(kinds)


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """What was not read, and why; `command` reads it, "" where none does. `refused`: the user named this very path.
    `unreadable`: it cannot be read as it lies there, whatever it is."""

    path: str
    why: str
    command: str = ""
    hint: str = ""
    refused: bool = False
    unreadable: bool = False

    @property
    def words(self) -> str:
        """Why, and the command that reads it."""
        return f"{self.why}; {self.command} reads it" if self.command else self.why

    def __str__(self) -> str:
        return f"{self.path}: {self.words}"


def skipped(error: InputError) -> SkippedFile:
    """A file that a reader refused."""
    return SkippedFile(error.path, error.message.removeprefix(f"{error.path}: "), hint=error.hint)


@dataclass(frozen=True, slots=True)
class Intake:
    """The pieces at some paths, sorted by name, so that the order in which paths are given does not matter.

    `aside` is what was met and cannot be evidence for any command, `notes` what was done on the way (a file given twice
    is read once). `stdin` is standard input with its first bytes put back, where `-` was given.
    """

    paths: tuple[str, ...] = ()
    pieces: tuple[Piece, ...] = ()
    aside: tuple[SkippedFile, ...] = ()
    notes: tuple[str, ...] = ()
    stdin: BinaryIO | None = None

    def of(self, *kinds: Kind) -> tuple[Piece, ...]:
        """The pieces that look like one of these kinds."""
        return tuple(piece for piece in self.pieces if piece.is_any(kinds))

    def beside(self, *kinds: Kind) -> tuple[SkippedFile, ...]:
        """What a command that reads these kinds leaves aside, with the command that reads it."""
        return (*(left_aside(piece) for piece in self.pieces if not piece.is_any(kinds)), *self.aside)


def left_aside(piece: Piece) -> SkippedFile:
    """The piece as one that the command at hand does not read."""
    broken = piece.what == DAMAGED
    return SkippedFile(
        piece.name, f"not read, it is {piece.words}", piece.command, refused=piece.named, unreadable=broken
    )


def folded(aside: Iterable[SkippedFile]) -> list[str]:
    """One line for each reason, with the command that reads what was left aside."""
    by_why = grouped(
        ((left_out.why, left_out.command.replace(quote(left_out.path), "", 1)), left_out) for left_out in aside
    )
    texts = []
    for (why, _), several in sorted(by_why.items()):
        if len(several) == 1:
            texts.append(str(several[0]))
            continue
        names = sorted(left_out.path for left_out in several)
        texts.append(f"{len(names)} files: {why}: {first_of(names, 3)}{_reads_them(several)}")
    return texts


def _reads_them(several: Sequence[SkippedFile]) -> str:
    """The command for the folder that holds all of them."""
    command = several[0].command
    if not command:
        return ""
    try:
        folder = os.path.commonpath([os.path.dirname(left_out.path) for left_out in several]) or "."
    except ValueError:  # absolute and relative paths
        return ""
    return f"; {command.replace(quote(several[0].path), quote(folder), 1)} reads them"


def refusal(intake: Intake, kinds: Iterable[Kind], what: str, aside: Sequence[SkippedFile] | None = None) -> InputError:
    """The error of a command that reads `kinds`, called `what`, where there is nothing of them."""
    kinds = frozenset(kinds)
    left = list(aside if aside is not None else intake.beside(*kinds))
    given = first_of(intake.paths, 3)
    if not left:
        what = "is a folder without files" if os.path.isdir(intake.paths[0]) else f"holds no {what}"
        return InputError(given, what, hint="give a bundle, or a folder of captured text")
    if len(left) > 1:
        return InputError(given, f"holds no {what}: {'; '.join(folded(left)[:4])}")
    only = left[0]
    why = only.why.removeprefix("not read, ")
    hint = f"{only.command} reads it" if only.command else only.hint
    if why == f"it is {Kind.TEXT.facts.words}":
        return InputError(
            only.path,
            f"not judged: {Kind.TEXT.facts.words}",
            hint=ANY_EVIDENCE if Kind.JOB_OUTPUT in kinds else NODE_EVIDENCE,
        )
    return InputError(only.path, f"is no {what}: {why}" if why.startswith("it is ") else why, hint=hint)


def read_piece(intake: Intake, piece: Piece, most: int = MAX_BYTES) -> Blob:
    """The text of a piece with its layers taken off. Raises InputError for more than `most` bytes, and for what can no
    longer be read. Standard input can be read once."""
    reading = Reading()
    if not piece.coding and piece.size > most:
        raise too_large(piece.name, most)  # as it would be once so much of it was read
    with blocks_of(intake, piece, reading, most, most) as blocks:
        text = text_within(piece.name, blocks, most)
    if not text and reading.notes:
        raise InputError(piece.name, reading.notes[0], hint="was the copy interrupted?")
    return Blob(piece.name, text)


@contextmanager
def blocks_of(
    intake: Intake, piece: Piece, reading: Reading, most: int = MAX_BYTES, block: int = READ_BYTES
) -> Iterator[Iterator[bytes]]:
    """The text of a piece, with its layers taken off, `block` bytes of it at a time, or as it is packed: of any size,
    but `most` bytes of a member of an archive that is not spooled. Raises InputError for what can no longer be opened.
    """
    watch().opened(piece.name)
    block = READ_BYTES if piece.coding or piece.size <= 0 else min(block, piece.size + 1)
    stream: BinaryIO
    if piece.held is not None:
        stream = io.BytesIO(piece.held)
    elif piece.path == STDIN:
        yield text_of(intake.stdin or io.BytesIO(), piece.coding, reading)  # which must stay open
        return
    elif piece.member and not piece.spooled:
        from topodiag.evidence.intake.archives import read_member  # noqa: PLC0415 - where there is one

        stream = io.BytesIO(read_member(piece.path, piece.member, most + 1))
    else:
        try:
            stream = open(piece.file, "rb", buffering=0)  # noqa: SIM115 - closed below
        except OSError as error:
            raise InputError(piece.name, f"cannot be read: {error.strerror or error}") from None
    with stream:
        yield text_of(stream, piece.coding, reading, block)


@contextmanager
def spooled(intake: Intake, wanted: Callable[[Piece], bool]) -> Iterator[Intake]:
    """The intake with its wanted members of archives, and what one of several hosts printed, as plain files
    (`Piece.file`), which keep the names by which a reader knows them. Bundles stay packed. Raises InputError for an
    archive that can no longer be read, TopodiagError where the disk is full.

    The files lie in a folder of the process's own below TMPDIR, under numbers: no name from an archive reaches the
    disk. The folder goes when the reader is done, on an error, and on Ctrl-C. archives.py bounds what an archive may
    unpack to."""
    packed = [piece for piece in intake.pieces if _is_packed(piece) and wanted(piece)]
    if not packed:
        yield intake
        return
    with ExitStack() as stack:
        from topodiag.evidence.intake.archives import copy_members, disk_full  # noqa: PLC0415 - where there is one
        from topodiag.writing import scratch_folder  # noqa: PLC0415 - as above

        try:
            folder = stack.enter_context(scratch_folder())
        except OSError as error:
            raise disk_full(packed[0].path, error) from None
        places = {piece.name: os.path.join(folder, str(number)) for number, piece in enumerate(packed)}
        for path, pieces in grouped((piece.path, piece) for piece in packed).items():
            for piece in pieces:
                if piece.held is not None:  # a text is no archive
                    with open(places[piece.name], "wb") as stream:
                        stream.write(piece.held)
            members = {piece.member: places[piece.name] for piece in pieces if piece.held is None}
            if members:
                copy_members(path, members)
        pieces = [replace(piece, spooled=places.get(piece.name, piece.spooled)) for piece in intake.pieces]
        yield replace(intake, pieces=tuple(pieces))


def _is_packed(piece: Piece) -> bool:
    return bool(piece.member) and not piece.spooled and piece.kind is not Kind.BUNDLE
