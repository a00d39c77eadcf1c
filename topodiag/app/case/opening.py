"""What stands at the paths that a user gave, of which `-` is standard input, and who looks on while it is read."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import BinaryIO

from topodiag.evidence.intake.collected import resolve
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.one_file import open_blob
from topodiag.evidence.intake.pieces import STDIN, Intake
from topodiag.evidence.intake.watched import Watch, watched
from topodiag.evidence.interface import Blob
from topodiag.model.errors import InputError
from topodiag.model.result import Result

_CONTENT: ContextVar[BinaryIO | None] = ContextVar("content of standard input", default=None)


@contextmanager
def standard_input(content: BinaryIO) -> Iterator[None]:
    """Within it `-` is this content: how Python users give bytes."""
    token = _CONTENT.set(content)
    try:
        yield
    finally:
        _CONTENT.reset(token)


def stdin() -> BinaryIO:
    """What `-` reads. Raises InputError where standard input is closed."""
    given = _CONTENT.get()
    if given is not None:
        return given
    if sys.stdin is None:
        raise InputError("<stdin>", "is closed", hint="give it a file: topodiag scan - < FILE")
    return sys.stdin.buffer


def stream_for(paths: Sequence[str]) -> BinaryIO | None:
    """Standard input where one of the paths is `-`."""
    return stdin() if STDIN in paths else None


def with_paths(result: Result, paths: Sequence[str]) -> Result:
    """The result with what the user named: reports name files of the evidence from there on."""
    return replace(result, given=tuple(resolve(path) for path in paths))


__all__ = ["Watch", "standard_input", "stdin", "stream_for", "watched", "with_paths"]


def gathered(paths: Sequence[str], *, quick: bool = False) -> Intake:
    """All evidence at these paths; `quick`: what is asked for are logs. Raises InputError."""
    return gather(paths, stdin=stream_for(paths), quick=quick)


def blob_at(path: str) -> Blob:
    """The text of one file. Raises InputError."""
    return open_blob(path, stream_for((path,)))
