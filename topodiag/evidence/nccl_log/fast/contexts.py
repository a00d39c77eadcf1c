"""Which communicator each thread of a shard was busy with, line by line: the rule of slow.py for many lines at once.

A place is a line of the block and a record's number among those that share it. A context is the code of a pointer and
its gen.
"""

from __future__ import annotations

import numpy as np

from topodiag.evidence.nccl_log.tables.hashes import Positions
from topodiag.lazy import dataclass

_SEQUENCE = 16
"""Bits for the records that share a line."""
_NONE = (0, -1)


def place(line: Positions, index: Positions | int = 0) -> Positions:
    return (line << _SEQUENCE) | index


@dataclass(frozen=True, slots=True)
class Naming:
    """Records that name a communicator: pointers as signed numbers, `starts` where it is an Init START."""

    thread: Positions
    process: Positions
    place: Positions
    pointer: Positions
    starts: Positions
    offset: Positions


class Contexts:
    def __init__(self) -> None:
        self._codes: dict[tuple[int, int], int] = {_NONE: 0}
        self._gens: dict[tuple[int, int], int] = {}
        self._now = np.zeros(0, dtype=np.int64)
        self._named = np.zeros(0, dtype=np.int64)
        self._keys = self._filled = self._offsets = np.zeros(0, dtype=np.int64)

    def name(self, naming: Naming, threads: int) -> Positions:
        """Take a block's naming records, in any order; returns the context that each names. `threads` are there."""
        self._know(threads)
        codes = self._named_by(naming)
        keys = (naming.thread << 40) | naming.place
        order = np.argsort(keys, kind="stable")
        self._keys, self._filled, self._offsets = keys[order], codes[order], naming.offset[order]
        return codes

    def _know(self, threads: int) -> None:
        if threads > len(self._now):
            more = max(threads, 2 * len(self._now)) - len(self._now)
            self._now = np.append(self._now, np.zeros(more, dtype=np.int64))
            self._named = np.append(self._named, np.full(more, -1, dtype=np.int64))

    def _named_by(self, naming: Naming) -> Positions:
        """A pointer means what the last Init START of its process made of it."""
        size = len(naming.place)
        codes = np.zeros(size, dtype=np.int64)
        if not size:
            return codes
        order = np.lexsort((naming.place, naming.pointer, naming.process))
        process, pointer = naming.process[order], naming.pointer[order]
        starts, offset = naming.starts[order] != 0, naming.offset[order]
        new = np.append(True, (process[1:] != process[:-1]) | (pointer[1:] != pointer[:-1]))
        runs = np.flatnonzero(new | starts)
        ends = np.append(runs[1:], size)
        numbers = []
        rows = (process[runs], pointer[runs].view(np.uint64), starts[runs], offset[runs])
        for owner, address, begins, at in zip(*(row.tolist() for row in rows), strict=True):
            if begins:
                self._gens[owner, address] = at
            numbers.append(self.code(address, self._gens.get((owner, address), -1)))
        codes[order] = np.repeat(np.array(numbers, dtype=np.int64), ends - runs)
        return codes

    def code(self, pointer: int, gen: int) -> int:
        return self._codes.setdefault((pointer, gen), len(self._codes))

    def at(self, thread: Positions, where: Positions) -> Positions:
        """The context of each thread at a place of the block: named by that record or before. A thread may be new: that
        of a record at the end of a line that was read one by one, after the block's contexts were named."""
        self._know(int(thread.max(initial=-1)) + 1)
        now = self._now[thread]
        if len(self._keys):
            named = np.zeros(len(self._now), dtype=np.bool_)
            named[self._keys >> 40] = True
            asked = np.flatnonzero(named[thread])
            wanted = (thread[asked] << 40) | where[asked]
            slots = np.searchsorted(self._keys, wanted, side="right") - 1
            known = (slots >= 0) & (self._keys[slots] >> 40 == thread[asked])
            now[asked[known]] = self._filled[slots[known]]
        return now

    def end_block(self) -> None:
        if len(self._keys):
            owners = self._keys >> 40
            last = np.append(owners[1:] != owners[:-1], True)
            self._now[owners[last]] = self._filled[last]
            self._named[owners[last]] = self._offsets[last]

    def pairs(self) -> tuple[Positions, Positions]:
        """Pointer and gen of each context, by code."""
        pointers = np.array([pointer for pointer, _ in self._codes], dtype=np.uint64).view(np.int64)
        return pointers, np.array([gen for _, gen in self._codes], dtype=np.int64)

    def last(self) -> tuple[Positions, Positions, Positions]:
        """Threads that named a communicator, the context of each at the end, and the offset of the line that named."""
        busy = np.flatnonzero(self._named >= 0)
        return busy, self._now[busy], self._named[busy]
