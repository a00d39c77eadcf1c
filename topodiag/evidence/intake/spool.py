"""Members of archives as plain files, for readers that open files: several processes read the pieces of an NCCL log.

The files lie in a folder of the process's own below TMPDIR, under numbers: no name from an archive reaches the disk.
The folder goes when the reader is done, on an error, and on Ctrl-C. archives.py bounds what an archive may unpack to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from topodiag.evidence.intake.pieces import Intake, Piece
from topodiag.evidence.kinds import Kind
from topodiag.words.units import grouped
from topodiag.writing import scratch_folder


@contextmanager
def spooled(intake: Intake, wanted: Callable[[Piece], bool]) -> Iterator[Intake]:
    """The intake with its wanted members of archives, and what one of several hosts printed, as plain files
    (`Piece.file`), which keep the names by which a reader knows them. Bundles stay packed. Raises InputError for an
    archive that can no longer be read, TopodiagError where the disk is full."""
    packed = [piece for piece in intake.pieces if _is_packed(piece) and wanted(piece)]
    if not packed:
        yield intake
        return
    with ExitStack() as stack:
        from topodiag.evidence.intake.archives import copy_members, disk_full  # noqa: PLC0415 - where there is one

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
