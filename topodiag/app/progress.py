"""What still ran while the texts of a job were written: counted by the catalogue of sentences, over whole files."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.evidence.intake.kinds import Kind
from topodiag.evidence.intake.pieces import STDIN, Intake, Piece
from topodiag.evidence.intake.reading import blocks_of
from topodiag.evidence.nccl_log.input.streams import Reading
from topodiag.evidence.signatures import engine
from topodiag.model.errors import InputError
from topodiag.model.progress import Progress

OF_LINES = frozenset({Kind.NCCL_LOG, Kind.JOB_OUTPUT, Kind.STEPS})
"""Kinds of texts in which lines of programs stand."""


def progress_of(intake: Intake, pieces: Sequence[Piece]) -> tuple[Progress, ...]:
    """The progress of each of these texts. Standard input can be read once, and its reader has it; what cannot be
    opened is said by the reader of logs."""
    found: list[Progress] = []
    for piece in pieces:
        if piece.path == STDIN or piece.held is not None or (piece.member and not piece.spooled):
            continue
        if not piece.is_any(OF_LINES):
            continue
        try:
            with blocks_of(intake, piece, Reading()) as blocks:
                found += engine.progress(blocks, piece.name)
        except InputError:
            continue
    return tuple(found)


__all__ = ["OF_LINES", "progress_of"]
