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
)

_NEAR, _FAR = 6, 12
"""Words looked at in front of the anchor: enough for most heads, and for all but absurd ones."""
_SPACE, _OPEN, _CLOSE = ord(" "), ord("["), ord("]")
_U = np.uint64


class Heads:
    """`thread_of` reads a head that was not met before; it gives -1 for a text that is no plain head."""

    def __init__(self, thread_of: Callable[[bytes], int]) -> None:
        self._thread_of = thread_of
        self._texts = {count: Dictionary(count) for count in (_NEAR, _FAR)}
        self._threads: dict[int, list[int]] = {_NEAR: [], _FAR: []}

    def find(self, block: Block, begin: Positions, anchor: Positions) -> tuple[Positions, Positions]:
        """Index of the thread of each record, -1 where its line must be read, and the bytes of its head.

        `begin` are the starts of lines, `anchor` the places of ` NCCL INFO `.
        """
        thread, length, open_ = self._look(block, begin, anchor, _NEAR)
        if len(open_):
            thread[open_], length[open_], _ = self._look(block, begin[open_], anchor[open_], _FAR)
        return thread, length

    def _look(
        self, block: Block, begin: Positions, anchor: Positions, count: int
    ) -> tuple[Positions, Positions, Positions]:
        rows = block.rows(anchor - 8 * count, count)
        length, fine, unknown = _lengths(rows, anchor - begin)
        keep_last(rows, length)
        kept = np.flatnonzero(fine)
        texts = self._texts[count]
        words = rows[: -2 - int(length.max(initial=0)) // 8 : -1]  # the last one first
        codes = texts.encode(words if len(kept) == len(anchor) else np.ascontiguousarray(words[:, kept]))
        threads = self._threads[count]
        threads += [self._thread_of(_turned(text)) for text in texts.texts[len(threads) :]]
        thread = np.full(len(anchor), -1, dtype=np.int64)
        thread[kept] = np.array(threads or [-1], dtype=np.int64)[codes]
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
    unknown &= length < room
    return np.minimum(length, room), fine & ~unknown, fine & unknown
