"""Who prints: the thread of each record of a block, by the text `host:pid:tid [dev]` in front of ` NCCL INFO `."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.fast.bytes import MASKS, Block, Dictionary, Vocabulary, bytes_behind_last, keep_last
from topodiag.evidence.nccl_log.fast.rows import ThreadKey
from topodiag.evidence.nccl_log.grammar.prefix import IDENTITY, number
from topodiag.evidence.nccl_log.tables.facts import Flags, Positions, Words, firsts, mix
from topodiag.evidence.signatures.literals import Finder
from topodiag.evidence.signatures.wrappers import LABELS

_NEAR, _FAR = 4, 12
"""Words looked at in front of the anchor, at least and at most."""
_SAMPLE, _SOME = 64, 2048
"""Every so manieth line is measured; fronts are learned from about so many lines, spread over the block."""
_AGAIN = 2
"""Lines that must share a front for it to be kept."""
_OLD = Finder((b"] INFO ", b" WARN "))
"""What a record of 2.2 or before has, which lacks the word NCCL."""
_OLD_RECORD = 15
"""Bytes of the shortest one, `h:1:1 [0] INFO `."""
_SPACE, _OPEN, _CLOSE = ord(" "), ord("["), ord("]")
_UNKNOWN = -2
_U = np.uint64


class Heads:
    """Finds threads by whole fronts of lines, a label and a head, where those come again, else by heads.

    `thread_of` reads a head that was not met before; it gives -1 for a text that is no plain head. So are records that
    one of 2.2 or before may stand in front of.
    """

    def __init__(self, thread_of: Callable[[bytes], int]) -> None:
        self._thread_of = thread_of
        self._fronts = Dictionary(_FAR)
        self._heads = Vocabulary(_FAR, lambda text: thread_of(_turned(text)))
        self._known: Positions = np.array([[_UNKNOWN], [0]], dtype=np.int64)
        """By front, its thread and the length of its head. Behind the last, where the code -1 leads to, stands what is
        not known."""

    def find(self, block: Block, begin: Positions, anchor: Positions) -> tuple[Positions, Positions]:
        """Index of the thread of each record, -1 where its line must be read, and the bytes of its head.

        `begin` are the starts of lines, `anchor` the places of ` NCCL INFO `.
        """
        room = anchor - begin
        count = min(max(int(room[::_SAMPLE].max(initial=0)) // 8 + 1, _NEAR), _FAR)
        rows = block.rows(anchor - 8 * count, count)
        keep_last(rows, np.minimum(room, 8 * count))
        fronts = rows[::-1]
        heads = self._by_front(fronts, room)
        open_ = np.flatnonzero(heads[0] == _UNKNOWN)
        while len(some := open_[:: len(open_) // _SOME + 1]) and self._learn(fronts[:, some], room[some]):
            heads[:, open_] = self._by_front(np.ascontiguousarray(fronts[:, open_]), room[open_])
            open_ = open_[heads[0, open_] == _UNKNOWN]
        if len(open_):
            heads[:, open_] = self._by_heads(block, np.ascontiguousarray(rows[:, open_]), anchor[open_], room[open_])
        return heads[0], heads[1]

    def _by_front(self, fronts: Words, room: Positions) -> Positions:
        """Thread and length of the head by the words in front of the anchor, the last one first."""
        codes = self._fronts.known(fronts)
        codes[room >= 8 * len(fronts)] = -1
        return np.stack([known[codes] for known in self._known])

    def _learn(self, fronts: Words, room: Positions) -> bool:
        """Keep fronts that come again: not those with a time in them, of which each is another one."""
        kept = np.flatnonzero(room < 8 * len(fronts))
        first = kept[firsts(mix(np.ascontiguousarray(fronts[:, kept])))]
        if not len(first) or len(first) * _AGAIN > len(room):
            return False
        self._fronts.encode(np.ascontiguousarray(fronts[:, first]))
        new = [_turned(text) for text in self._fronts.texts[self._known.shape[1] - 1 :]]
        heads = [front[front.rfind(b" ", 0, max(front.rfind(b" ["), 0)) + 1 :] for front in new]
        threads = [-1 if _OLD.any(front) else self._thread_of(head) for front, head in zip(new, heads, strict=True)]
        known = np.array([threads, [len(head) for head in heads]], dtype=np.int64)
        self._known = np.concatenate([self._known[:, :-1], known, self._known[:, -1:]], axis=1)
        return bool(new)

    def _by_heads(self, block: Block, rows: Words, anchor: Positions, room: Positions) -> tuple[Positions, Positions]:
        thread, length, far = self._by_head(rows, room)
        if len(far):
            thread[far], length[far], _ = self._by_head(block.rows(anchor[far] - 8 * _FAR, _FAR), room[far])
        if (room - length >= _OLD_RECORD).any():
            thread[_behind_old(block, anchor, room)] = -1
        return thread, length

    def _by_head(self, rows: Words, room: Positions) -> tuple[Positions, Positions, Positions]:
        """Thread of each head, its length, and which of them begin further in front."""
        length, fine, unknown = _lengths(rows, room)
        keep_last(rows, length)
        kept = np.flatnonzero(fine)
        words = rows[: -2 - int(length.max(initial=0)) // 8 : -1]  # the last one first
        thread = np.full(len(room), -1, dtype=np.int64)
        thread[kept] = self._heads(np.ascontiguousarray(words[:, kept]))
        return thread, length, np.flatnonzero(unknown)


@lru_cache(maxsize=1 << 14)
def who(head: bytes) -> ThreadKey | None:
    """The thread that a head names, None for a text that is no plain one: whether a masked one, or one without a host,
    is a head depends on what stands in front of it. Shards of one log ask for the same ones. Open MPI puts no blank
    behind its tag, which is then the beginning of the head."""
    text = head.decode("utf-8", "replace")
    tag = LABELS["mpirun"].match(text)
    plain = IDENTITY.fullmatch(text[tag.end() if tag else 0 :] + " ") if head.endswith(b"]") else None
    return (plain[1], number(plain[2]), number(plain[3]), number(plain[4])) if plain else None


def _behind_old(block: Block, anchor: Positions, room: Positions) -> Positions:
    """Which records have one of 2.2 or before in front of them on their line."""
    where = np.array([place for place, _ in _OLD.hits(block.raw)], dtype=np.int64)
    where = where[where < anchor[-1]]
    record = np.searchsorted(anchor, where)
    old: Positions = record[where >= (anchor - room)[record]]
    return old


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
    ends = inside + 2
    fine &= room > ends
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
