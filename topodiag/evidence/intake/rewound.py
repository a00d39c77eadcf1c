"""Standard input whose first bytes were looked at, and put back."""

from __future__ import annotations

import io
from typing import Any, BinaryIO


class Rewound(io.RawIOBase):
    """A stream with its first bytes put back."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        super().__init__()
        self._head, self._rest = head, rest

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
