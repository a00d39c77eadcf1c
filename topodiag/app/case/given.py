"""What stands at the paths that a user gave, of which `-` is standard input."""

from __future__ import annotations

from collections.abc import Sequence

from topodiag.app.case.opening import stream_for
from topodiag.evidence.intake.gather import gather
from topodiag.evidence.intake.one_file import open_blob
from topodiag.evidence.intake.pieces import Intake
from topodiag.evidence.interface import Blob


def gathered(paths: Sequence[str], *, quick: bool = False) -> Intake:
    """All evidence at these paths; `quick`: what is asked for are logs. Raises InputError."""
    return gather(paths, stdin=stream_for(paths), quick=quick)


def blob_at(path: str) -> Blob:
    """The text of one file. Raises InputError."""
    return open_blob(path, stream_for((path,)))
