"""A stream of which the first bytes were looked at."""

from __future__ import annotations

import io
from typing import Any


class Rewound(io.RawIOBase):
    """A stream with its first bytes put back. It closes the rest where that is its own."""

    def __init__(self, head: bytes, rest: Any, *, owned: bool = False) -> None:
        super().__init__()
        self._head, self._rest, self._owned = head, rest, owned

    def close(self) -> None:
        if self._owned:
            self._rest.close()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        if self._head:
            block = self._head[: len(view)]
            self._head = self._head[len(block) :]
        else:  # a pipe gives what is there; waiting for a full block would hold back what it already said
            read = getattr(self._rest, "read1", self._rest.read)
            block = read(len(view))
        view[: len(block)] = block
        return len(block)
