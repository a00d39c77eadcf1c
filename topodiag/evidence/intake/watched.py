"""Tells whoever looks on what is being read: n of N files, and their bytes. Without a watcher it does nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import TYPE_CHECKING

from topodiag.lazy import dataclass

if TYPE_CHECKING:
    from topodiag.evidence.intake.pieces import Piece

FINDING, READING, JUDGING = "finding evidence", "reading", "judging"


@dataclass(slots=True)
class Watch:
    """How far the reading is: `files` of `total` (0: not known yet), and bytes. `tell` is called at each change."""

    tell: Callable[[Watch], None]
    stage: str = FINDING
    files: int = 0
    total: int = 0
    size: int = 0
    total_size: int = 0
    _sizes: dict[str, int] = field(default_factory=dict)
    _opened: set[str] = field(default_factory=set)

    def found(self) -> None:
        """One more file was met, and looked at."""
        self.files += 1
        self.tell(self)

    def planned(self, pieces: Iterable[Piece]) -> None:
        """All that will be read is known."""
        self._sizes = {piece.name: max(piece.size, 0) for piece in pieces}
        self.stage, self.files, self.size = READING, 0, 0
        self.total, self.total_size = len(self._sizes), sum(self._sizes.values())
        self.tell(self)

    def opened(self, *names: str) -> None:
        """Pieces whose reading begins; those that are read again count once."""
        new = [name for name in names if name in self._sizes and name not in self._opened]
        if self.stage == READING and new:
            self._opened.update(new)
            self.files += len(new)
            self.size += sum(self._sizes[name] for name in new)
            self.tell(self)

    def judged(self) -> None:
        """All is read."""
        self.stage, self.files, self.size = JUDGING, self.total, self.total_size
        self.tell(self)


_WATCH: ContextVar[Watch | None] = ContextVar("who looks on", default=None)


@contextmanager
def watched(tell: Callable[[Watch], None] | None) -> Iterator[None]:
    """Within it `tell` hears of all that is read; None for nobody."""
    token = _WATCH.set(None if tell is None else Watch(tell))
    try:
        yield
    finally:
        _WATCH.reset(token)


def watch() -> Watch:
    """Who looks on, or nobody."""
    return _WATCH.get() or Watch(lambda _: None)
