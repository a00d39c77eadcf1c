"""What stands at the paths that a user gave, of which `-` is standard input; and the nodes among it, one for each
capture.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import BinaryIO

from topodiag.evidence.intake.captures import captures, evidence_of
from topodiag.evidence.intake.collected import resolve
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.one_file import open_blob
from topodiag.evidence.intake.pieces import STDIN, Intake, SkippedFile, folded, refusal
from topodiag.evidence.intake.reader import ReadNode, read_node
from topodiag.evidence.intake.watched import Watch, watched
from topodiag.evidence.interface import Blob
from topodiag.evidence.kinds import NODE_KINDS
from topodiag.lazy import regex
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.provenance import PART, NotObserved
from topodiag.model.result import Case, Result
from topodiag.words.units import first_of

__all__ = ["Watch", "standard_input", "stdin", "stream_for", "watched", "with_paths"]

_BUNDLED = regex(r"(?:json|trees|commands|files|text)/[^/]{1,200}\Z")
"""A file of a bundle by its name inside."""
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


def kept_stdin() -> BinaryIO:
    """The same, to be read again from its start: what comes through a pipe is kept in a file, for all that reads `-`
    from there on. Raises InputError."""
    stream = stdin()
    if stream.seekable():
        return stream
    from tempfile import TemporaryFile  # noqa: PLC0415 - for a pipe only

    kept = TemporaryFile()  # noqa: SIM115 - for the rest of the command
    kept.writelines(stream)
    kept.seek(0)
    _CONTENT.set(kept)
    return kept


def stream_for(paths: Sequence[str]) -> BinaryIO | None:
    """Standard input where one of the paths is `-`."""
    return stdin() if STDIN in paths else None


def with_paths(result: Result, paths: Sequence[str]) -> Result:
    """The result with what the user named: reports name files of the evidence from there on."""
    return replace(result, given=tuple(resolve(path) for path in paths))


def gathered(paths: Sequence[str], *, quick: bool = False) -> Intake:
    """All evidence at these paths; `quick`: what is asked for are logs. Raises InputError."""
    return gather(paths, stdin=stream_for(paths), quick=quick)


def blob_at(path: str) -> Blob:
    """The text of one file. Raises InputError."""
    return open_blob(path, stream_for((path,)))


def node_case(intake: Intake) -> Case:
    """The nodes in what was gathered, one for each capture. A capture that cannot be read is left aside where there are
    others. Raises InputError where there is none."""
    captured = captures(intake)
    aside = list(captured.aside)
    read: list[ReadNode] = []
    broken: list[InputError] = []
    for capture in captured.captures:
        try:
            read.append(read_node(evidence_of(capture, intake)))
        except InputError as error:
            broken.append(error)
            why = error.message.removeprefix(f"{capture.name}: ")
            aside.append(SkippedFile(capture.name, why, hint=error.hint, unreadable=True))
    if not read:
        raise broken[0] if broken else refusal(intake, NODE_KINDS, "evidence of a node", captured.aside)
    case = case_of(read)
    gaps = [*(NotObserved(PART, note) for note in captured.notes), *left_out(aside)]
    return replace(case, not_observed=tuple(dict.fromkeys((*gaps, *case.not_observed))))


def left_out(aside: Iterable[SkippedFile]) -> list[NotObserved]:
    """What of the input was not read, in a line for each reason."""
    by_kind = {broken: [skipped for skipped in aside if skipped.unreadable is broken] for broken in (False, True)}
    return [NotObserved(PART, note, unreadable=broken) for broken, own in by_kind.items() for note in folded(own)]


def one_node(path: str) -> ReadNode:
    """The only node at a path. Raises InputError where there is none, or more than one."""
    intake = gathered([path])
    captured = captures(intake)
    if not captured.captures:
        raise refusal(intake, NODE_KINDS, "evidence of a node", captured.aside)
    if len(captured.captures) > 1:
        names = first_of([one.label or one.host or one.name for one in captured.captures], 4)
        first = captured.captures[0].name
        raise InputError(path, f"holds {len(captured.captures)} nodes: {names}", hint=f"give one of them, as {first}")
    return read_node(evidence_of(captured.captures[0], intake))


def case_of(read: Sequence[ReadNode]) -> Case:
    """Nodes that were read, as a case."""
    nodes = tuple(node.node for node in read)
    several = len(nodes) > 1
    return Case(
        nodes=nodes,
        inputs=tuple(_of_node(item, node.node.host) if several else item for node in read for item in node.inputs),
        not_observed=tuple(dict.fromkeys(item for node in nodes for item in node.not_observed)),
        unread=tuple(line for node in read for line in node.unread),
    )


def _of_node(item: Input, host: str) -> Input:
    """An input of one of several nodes: a file of a bundle has the node before it, as every bundle has such a file."""
    return replace(item, path=f"{host}/{item.path}") if host and _BUNDLED.match(item.path) else item
