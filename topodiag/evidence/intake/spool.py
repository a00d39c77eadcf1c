"""Members of archives as plain files, for readers that open files: several processes read the pieces of an NCCL log.

The files lie in a folder of the process's own below TMPDIR, under numbers: no name from an archive reaches the disk.
The folder goes when the reader is done, on an error, and on Ctrl-C. archives.py bounds what an archive may unpack to.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count

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
        from topodiag.evidence.intake.archives import copy_members, disk_full  # noqa: PLC0415 - where there is one

        try:
            folder = stack.enter_context(scratch_folder())
        except OSError as error:
            raise disk_full(next(iter(archives)), error) from None
        held = {(piece.path, piece.member): piece.held for piece in intake.pieces if piece.held is not None}
        numbers = count()
        for path, places in archives.items():
            places |= {member: os.path.join(folder, str(next(numbers))) for member in places}
            texts = [(place, held[path, member]) for member, place in places.items() if (path, member) in held]
            for place, text in texts:  # a text is no archive: all its members are held
                with open(place, "wb") as stream:
                    stream.write(text)
            if not texts:
                copy_members(path, places)
        yield replace(intake, pieces=tuple(_placed(piece, archives.get(piece.path, {})) for piece in intake.pieces))


def _is_packed(piece: Piece) -> bool:
    return bool(piece.member) and not piece.spooled and piece.kind is not Kind.BUNDLE


def _placed(piece: Piece, places: dict[str, str]) -> Piece:
    return replace(piece, spooled=places[piece.member]) if _is_packed(piece) and piece.member in places else piece
