"""Who prints: the thread of each record of a block, by the text `host:pid:tid [dev]` in front of ` NCCL INFO `."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.scan_bytes import (
    MASKS,
    Block,
    Dictionary,
    Flags,
    Positions,
    Words,
    bytes_behind_last,
    keep_last,
    mix,
)

_NEAR, _FAR = 4, 12
"""Words looked at in front of the anchor: at first, and at most."""
_AGAIN = 4
"""Lines that must share a front for it to be kept."""
_SPACE, _OPEN, _CLOSE = ord(" "), ord("["), ord("]")
_U = np.uint64


class Heads:
    """`thread_of` reads a head that was not met before; it gives -1 for a text that is no plain head."""

    def __init__(self, thread_of: Callable[[bytes], int]) -> None:
        self._thread_of = thread_of
        self._heads = Dictionary(_FAR)
        self._threads: list[int] = []
        self._fronts = Dictionary(_FAR)
        self._front_threads: Positions = np.full(1, -1, dtype=np.int64)
        self._front_heads: Positions = np.zeros(1, dtype=np.int64)
        self._count = _NEAR

    def find(self, block: Block, begin: Positions, anchor: Positions) -> tuple[Positions, Positions]:
        """Index of the thread of each record, -1 where its line must be read, and the bytes of its head.

        `begin` are the starts of lines, `anchor` the places of ` NCCL INFO `.
        """
        room = anchor - begin
        rows = block.rows(anchor - 8 * self._count, self._count)
        thread, length = self._by_front(rows, room)
        open_ = np.flatnonzero(thread < 0)
        if len(open_):
            rows = np.ascontiguousarray(rows[:, open_])
            thread[open_], length[open_], far = self._by_head(rows, room[open_])
            if len(far):
                far = open_[far]
                rows = block.rows(anchor[far] - 8 * _FAR, _FAR)
                thread[far], length[far], _ = self._by_head(rows, room[far])
            self._learn(block, begin[open_], anchor[open_], thread[open_], length[open_])
        return thread, length

    def _by_front(self, rows: Words, room: Positions) -> tuple[Positions, Positions]:
        """Thread and head of those lines whose front, a label and a head, is known as it is; thread -1 for others."""
        short = room < 8 * len(rows)
        words = rows.copy()
        keep_last(words, np.minimum(room, 8 * len(rows)))
        codes = self._fronts.known(words[::-1])
        found = short & (codes >= 0)
        return np.where(found, self._front_threads[codes], -1), self._front_heads[codes]

    def _learn(self, block: Block, begin: Positions, anchor: Positions, thread: Positions, length: Positions) -> None:
        """Keep fronts that come again: not those with a time in them, of which each is another one."""
        room = anchor - begin
        kept = np.flatnonzero((thread >= 0) & (room < 8 * _FAR))
        if not len(kept):
            return
        rows = block.rows(anchor[kept] - 8 * _FAR, _FAR)
        keep_last(rows, room[kept])
        rows = np.ascontiguousarray(rows[::-1])
        _, first = np.unique(mix(rows), return_index=True)
        if len(first) * _AGAIN > len(kept):
            return
        codes = self._fronts.encode(np.ascontiguousarray(rows[:, first]))
        more = (0, len(self._fronts.texts) + 1 - len(self._front_heads))
        self._front_threads = np.pad(self._front_threads, more, constant_values=-1)
        self._front_heads = np.pad(self._front_heads, more)
        self._front_threads[codes], self._front_heads[codes] = thread[kept[first]], length[kept[first]]
        self._count = min(max(self._count, int(room[kept].max()) // 8 + 1), _FAR)

    def _by_head(self, rows: Words, room: Positions) -> tuple[Positions, Positions, Positions]:
        """Thread of each head, its length, and which of them begin further in front."""
        length, fine, unknown = _lengths(rows, room)
        keep_last(rows, length)
        kept = np.flatnonzero(fine)
        words = rows[: -2 - int(length.max(initial=0)) // 8 : -1]  # the last one first
        codes = self._heads.encode(np.ascontiguousarray(words[:, kept]))
        self._threads += [self._thread_of(_turned(text)) for text in self._heads.texts[len(self._threads) :]]
        thread = np.full(len(room), -1, dtype=np.int64)
        thread[kept] = np.array(self._threads or [-1], dtype=np.int64)[codes]
        return thread, length, np.flatnonzero(unknown)


def _turned(text: bytes) -> bytes:
    """The text whose words stand in reverse order."""
    words = [text[at : at + 8].ljust(8, b"\0") for at in range(0, len(text), 8)]
    return b"".join(reversed(words)).lstrip(b"\0")


def _lengths(rows: Words, room: Positions) -> tuple[Positions, Flags, Flags]:
    """How many of the last bytes are a head, from a blank over to ` [dev]`; where one was found; and where its
    beginning lies further in front. `room` are the bytes of the line in front of the anchor."""
    last = rows[-1]
    inside = bytes_behind_last(last, _OPEN)  # `7]`
    fine: Flags = (inside <= 6) & ((last >> _U(56)) == _CLOSE)
    inside = np.minimum(inside, 6)
    shift = (_U(8) * (6 - inside).view(np.uint64)).astype(np.uint64)
    fine &= ((last >> shift) & _U(0xFF)) == _SPACE
    behind = inside + 2
    fine &= room > behind
    length = bytes_behind_last(last & MASKS[6 - inside], _SPACE)
    unknown: npt.NDArray[np.bool_] = length == 8
    for row in rows[-2::-1]:
        step = bytes_behind_last(row, _SPACE)
        length += step * unknown
        unknown &= step == 8
    length = np.minimum(length, room)
    unknown &= length < room
    unknown |= length == 8 * len(rows)  # no zero byte would end its text
    return length, fine & ~unknown, fine & unknown
