"""What NCCL's own diagnostics reported (2.31 and later): one line of it."""

from __future__ import annotations

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`ok`: NCCL tagged it so; every other line is INFO, a difference or data that were not there. `comm` is the hash
    of the communicator, 0 where none is named, `size` its ranks (-1); `ranks` are those that the line lists, of this
    communicator."""

    ok: bool
    subject: str
    text: str
    comm: int = 0
    size: int = -1
    ranks: tuple[int, ...] = ()
    host: str = ""
    pid: int = -1
    origin: Origin | None = None
