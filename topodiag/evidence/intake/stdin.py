"""Standard input as a piece of evidence: it can be read once, so what was looked at is put back."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, BinaryIO

from topodiag.evidence.intake.pieces import STDIN_NAME
from topodiag.evidence.intake.rewound import Rewound
from topodiag.evidence.nccl_log.input.streams import Reading, text_of

if TYPE_CHECKING:
    from topodiag.evidence.intake.looks import Looks

MOST_IN_MEMORY = 64 << 20
"""Bytes of standard input that are kept in memory; what is larger goes to a file without a name below TMPDIR."""


def surveyed_stream(stream: Rewound, seen: Looks) -> tuple[Rewound, Looks]:
    """All of standard input, kept for its reader, and what was seen of it: it can be read once."""
    from topodiag.evidence.intake.survey import survey  # noqa: PLC0415 - as above

    kept: BinaryIO = tempfile.SpooledTemporaryFile(MOST_IN_MEMORY)  # type: ignore[assignment]  # noqa: SIM115
    while block := stream.read(1 << 20):
        kept.write(block)
    kept.seek(0)
    seen = survey(text_of(kept, seen.coding, Reading()), STDIN_NAME, seen)
    kept.seek(0)
    return Rewound(b"", kept, owned=True), seen


__all__ = ["surveyed_stream"]
