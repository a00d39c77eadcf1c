"""What the fast extractor has read line by line, and the threads of all files that it reads together."""

from __future__ import annotations

from topodiag.evidence.nccl_log.grammar.grammar import Rows
from topodiag.evidence.nccl_log.plain.collect import Collector, ThreadKey
from topodiag.lazy import dataclass


@dataclass(frozen=True, slots=True)
class Said:
    """What an add to the collector said: line of the block, place among the line's records, thread, rows."""

    line: int
    index: int
    thread: int
    rows: Rows


class Slow(Collector):
    """Takes the rows of lines that were read one by one, and keeps them until the block's contexts are known."""

    def __init__(self) -> None:
        super().__init__(0, 0)
        self.file = 0
        self.said: list[Said] = []
        self._owned: dict[tuple[int, ThreadKey], int] = {}

    def thread(self, key: ThreadKey) -> int:
        """Its index: each file has threads of its own."""
        return self._owned.setdefault((self.file, key), len(self._owned))

    def owned(self) -> list[tuple[int, ThreadKey]]:
        """File and name of each thread, in the order of their indices."""
        return list(self._owned)

    def add(self, key: ThreadKey, offset: int, line: int, rows: Rows) -> None:
        index = self.said[-1].index + 1 if self.said and self.said[-1].line == line else 0
        self.said.append(Said(line, index, self.thread(key), rows))
