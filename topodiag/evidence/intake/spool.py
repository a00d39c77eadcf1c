"""Members of archives as plain files, for readers that open files: several processes read the pieces of an NCCL log.

The files lie in a folder of the process's own below TMPDIR, under numbers: no name from an archive reaches the disk.
The folder goes when the reader is done, on an error, and on Ctrl-C. archives.py bounds what an archive may unpack to.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from topodiag.evidence.intake.pieces import Intake, Piece
from topodiag.evidence.kinds import Kind
from topodiag.writing import scratch_folder


@contextmanager
def spooled(intake: Intake, wanted: Callable[[Piece], bool]) -> Iterator[Intake]:
    """The intake with its wanted members of archives, and what one of several hosts printed, as plain files
    (`Piece.file`), which keep the names by which a reader knows them. Bundles stay packed. Raises InputError for an
    archive that can no longer be read, TopodiagError where the disk is full."""
    archives: dict[str, dict[str, str]] = defaultdict(dict)
    for piece in intake.pieces:
        if _is_packed(piece) and wanted(piece):
            archives[piece.path][piece.member] = ""
    if not archives:
        yield intake
        return
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(scratch_folder())
        except OSError as error:
            from topodiag.evidence.intake.archives import disk_full  # noqa: PLC0415 - where there is an archive

            raise disk_full(next(iter(archives)), error) from None
        held = {(piece.path, piece.member): piece.held for piece in intake.pieces if piece.held is not None}
        for path, places in archives.items():
            texts = {member: held[path, member] for member in places if (path, member) in held}
            if texts:  # a text is no archive: all its members are held
                _write(places, texts, folder)
            else:
                _unpack(path, places, folder)
        yield replace(intake, pieces=tuple(_placed(piece, archives.get(piece.path, {})) for piece in intake.pieces))


def _is_packed(piece: Piece) -> bool:
    return bool(piece.member) and not piece.spooled and piece.kind is not Kind.BUNDLE


def _placed(piece: Piece, places: dict[str, str]) -> Piece:
    return replace(piece, spooled=places[piece.member]) if _is_packed(piece) and piece.member in places else piece


def _write(places: dict[str, str], texts: Mapping[str, bytes], folder: str) -> None:
    """Write the texts to files, whose paths become the values of `places`."""
    first = len(os.listdir(folder))
    for number, (member, text) in enumerate(texts.items(), first):
        places[member] = os.path.join(folder, str(number))
        with open(places[member], "wb") as stream:
            stream.write(text)


def _unpack(path: str, places: dict[str, str], folder: str) -> None:
    """Copy the members to files, whose paths become the values of `places`."""
    from topodiag.evidence.intake.archives import copy_members  # noqa: PLC0415 - where there is an archive

    first = len(os.listdir(folder))
    for number, member in enumerate(places, first):
        places[member] = os.path.join(folder, str(number))
    copy_members(path, places)
