"""Where a process of a job was when its stack was dumped: the frames of its main thread."""

from __future__ import annotations

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame as the dump prints it: function, and file without its line."""

    function: str
    file: str

    def __str__(self) -> str:
        return f"{self.function} ({self.file})"


@dataclass(frozen=True, slots=True)
class Stack:
    """The main thread of one process, innermost frame first. `rank` -1 and `label` "" where nothing names them."""

    pid: int
    rank: int
    label: str
    frames: tuple[Frame, ...]
    origin: Origin | None = None

    @property
    def who(self) -> str:
        """The process as a reader knows it."""
        return f"rank {self.rank}" if self.rank >= 0 else self.label or f"process {self.pid}"
