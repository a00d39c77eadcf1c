"""What the front door hands on: the pieces of evidence at some paths, and what was left aside with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

from topodiag.evidence.intake.kinds import Kind, command_for, source_words

STDIN = "-"
STDIN_NAME = "<stdin>"


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of evidence: a file, a bundle, a member of an archive, or standard input.

    `path` is what to open: a file, the folder of a bundle, an archive, or `-`. `member` is the file, or the folder of a
    bundle, inside an archive. `kinds` are all that the text looks like, the most telling first: the output of a job may
    hold nvidia-smi, NCCL's log and a table of nccl-tests. `sources` are the readers of evidence/registry.py for it.
    `coding` are the layers to take off. `named`: the user gave this very path, rather than a folder with it. `root` is
    the argument it came from. `size` is in raw bytes, -1 of standard input. `what` are words that are more exact than
    those of its kind. `ids` are serials that only one machine has, each with the device that it is of, "" where that is
    not said; `digest` is the same for copies of one bundle.
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

    @property
    def kind(self) -> Kind:
        return self.kinds[0]

    @property
    def name(self) -> str:
        """As a reader knows it."""
        if self.path == STDIN:
            return STDIN_NAME
        return f"{self.path}/{self.member}" if self.member else self.path

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
class Aside:
    """What was not read, and why; `command` reads it, "" where none does. `refused`: the user named this very path."""

    path: str
    why: str
    command: str = ""
    hint: str = ""
    refused: bool = False

    def __str__(self) -> str:
        reads = f"; {self.command} reads it" if self.command else ""
        return f"{self.path}: {self.why}{reads}"


@dataclass(frozen=True, slots=True)
class Intake:
    """The pieces at some paths, sorted by name, so that the order in which paths are given does not matter.

    `aside` is what was met and cannot be evidence for any command, `notes` what was done on the way (a file given twice
    is read once). `stdin` is standard input with its first bytes put back, where `-` was given.
    """

    paths: tuple[str, ...] = ()
    pieces: tuple[Piece, ...] = ()
    aside: tuple[Aside, ...] = ()
    notes: tuple[str, ...] = ()
    stdin: BinaryIO | None = None

    def of(self, *kinds: Kind) -> tuple[Piece, ...]:
        """The pieces that look like one of these kinds."""
        return tuple(piece for piece in self.pieces if piece.is_any(kinds))

    def beside(self, *kinds: Kind) -> tuple[Aside, ...]:
        """What a command that reads these kinds leaves aside, with the command that reads it."""
        left = [left_aside(piece) for piece in self.pieces if not piece.is_any(kinds)]
        return (*left, *self.aside)


def left_aside(piece: Piece) -> Aside:
    """The piece as one that the command at hand does not read."""
    return Aside(piece.name, f"not read, it is {piece.words}", piece.command, refused=piece.named)
