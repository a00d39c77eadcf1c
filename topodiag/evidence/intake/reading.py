"""The text of one piece of evidence: unpacked, decoded, bounded."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from topodiag.evidence.intake.one_file import MAX_BYTES, text_within, too_large
from topodiag.evidence.intake.pieces import STDIN, Intake, Piece
from topodiag.evidence.intake.watched import watch
from topodiag.evidence.interface import Blob
from topodiag.evidence.nccl_log.input.streams import READ_BYTES, Reading, text_of
from topodiag.model.errors import InputError


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
    block = READ_BYTES if piece.coding or not piece.size else min(block, piece.size + 1)
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
            stream = open(piece.file, "rb")  # noqa: SIM115 - closed below
        except OSError as error:
            raise InputError(piece.name, f"cannot be read: {error.strerror or error}") from None
    with stream:
        yield text_of(stream, piece.coding, reading, block)
