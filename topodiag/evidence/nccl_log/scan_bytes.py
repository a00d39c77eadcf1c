"""Vector operations on the bytes of a block: what the fast extractor does to thousands of lines at once.

A block is a byte array with PAD zero bytes on both sides, seen twice: byte by byte, and as the little-endian
64-bit word that begins at every byte. All functions take positions as integer arrays into that padded array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

PAD = 128
"""Bytes in front of and behind a block; no gather reaches further than this from a position inside it."""

_EDGE = bytes(PAD)

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_U = np.uint64
_ZEROS = _U(0x3030303030303030)
_NOT_DIGIT = _U(0x7676767676767676)
_HIGH = _U(0x8080808080808080)
_ONES = _U(0x0101010101010101)
_SPREAD = tuple(_U(x) for x in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93))
MASKS: Words = np.array([(1 << (8 * k)) - 1 for k in range(8)] + [(1 << 64) - 1], dtype=np.uint64)
"""MASKS[k] keeps the first k bytes of a word."""


class Block:
    """Some bytes with their padding, as bytes (`at`) and as overlapping words (`words`)."""

    __slots__ = ("at", "raw", "size", "words")

    def __init__(self, data: bytes | memoryview) -> None:
        self.size = len(data)
        self.raw = b"".join((_EDGE, data, _EDGE))
        self.at: Bytes = np.frombuffer(self.raw, dtype=np.uint8)
        self.words: Words = np.ndarray((len(self.raw) - 7,), "<u8", buffer=self.raw, strides=(1,))


def word(text: bytes) -> np.uint64:
    """The word of these eight bytes."""
    return np.uint64(int.from_bytes(text, "little"))


def is_text(block: Block, where: Positions, text: bytes) -> Flags:
    """Whether `text` (up to 8 bytes) stands at each position."""
    same: Flags = (block.words[where] & MASKS[len(text)]) == word(text)
    return same


def leading_digits(words: Words) -> npt.NDArray[np.int64]:
    """How many of each word's first bytes are decimal digits, 0 to 8."""
    flipped = words ^ _ZEROS
    # A byte that is no digit is above 9 now: adding 0x76 sets its high bit. A carry out of such a byte can only reach
    # bytes behind the first one, and only the first one is asked for.
    other = ((flipped + _NOT_DIGIT) | flipped) & _HIGH
    return _first_flag(other)


def numbers(words: Words, digits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The decimal number that the first `digits` bytes of each word write; 0 for no digits."""
    # The shift by 64 bits, for no digits, is undefined: shift by at most 56 and by 8 once more.
    shift = (_U(8) * (_U(8) - digits.astype(np.uint64))).astype(np.uint64)
    half = shift >> _U(1)
    value: npt.NDArray[Any] = ((words ^ _ZEROS) << half) << (shift - half)
    value = (value * _U(10) + (value >> _U(8))) & _U(0x00FF00FF00FF00FF)
    value = (value * _U(100) + (value >> _U(16))) & _U(0x0000FFFF0000FFFF)
    value = (value * _U(10000) + (value >> _U(32))) & _U(0xFFFFFFFF)
    return value.astype(np.int64)


def read_number(block: Block, where: Positions) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The decimal number at each position and its digits. Eight digits may be the beginning of more: do not trust."""
    words = block.words[where]
    digits = leading_digits(words)
    return numbers(words, digits), digits


def window(block: Block, start: Positions, length: npt.NDArray[np.int64]) -> Words:
    """The `length` bytes from `start` with at least one zero byte behind them, as rows of words."""
    count = int(length.max(initial=0)) // 8 + 1
    taken = np.empty((count, len(start)), dtype=np.uint64)
    for index in range(count):
        left = np.clip(length - 8 * index, 0, 8)
        np.bitwise_and(block.words[start + 8 * index], MASKS[left], out=taken[index])
    return taken


def first_of(words: Words, letter: int) -> npt.NDArray[np.int64]:
    """Index of the first byte of each word that is `letter`, 8 for none."""
    return _first_flag(_equal(words, letter))


def bytes_behind_last(words: Words, letter: int) -> npt.NDArray[np.int64]:
    """How many bytes of each word follow its last `letter`, 8 for none."""
    return _first_flag(_equal(words, letter).byteswap())


def _equal(words: Words, letter: int) -> Words:
    low = _U(0x7F7F7F7F7F7F7F7F)
    other = words ^ _U(letter * 0x0101010101010101)
    flags: Words = ~(((other & low) + low) | other | low)
    return flags


def _first_flag(flags: Words) -> npt.NDArray[np.int64]:
    """Index of the first byte whose high bit is set, 8 for none."""
    flags = flags >> _U(7)
    first = flags & (~flags + _U(1))
    return ((((first - _U(1)) & _ONES) * _ONES) >> _U(56)).astype(np.int64)


def mix(rows: Words) -> Words:
    """A 64-bit hash of each column of `rows`. Rows of zeros do not change it."""
    value = np.zeros(rows.shape[1], dtype=np.uint64)
    for index in range(len(rows)):
        value += (rows[index] ^ (rows[index] >> _U(29))) * _U(_SPREAD[index % 4] + _U(2 * index))
    value ^= value >> _U(32)
    value *= _SPREAD[1]
    value ^= value >> _U(29)
    value *= _SPREAD[0]
    return value


def group(rows: Words) -> tuple[Positions, Positions]:
    """Equal columns of `rows` together: an order of the columns that keeps equal ones as they came, and its starts."""
    if not rows.shape[1]:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    order = np.argsort(mix(rows), kind="stable")
    for attempt in range(2):
        differs = np.zeros(len(order) - 1, dtype=np.bool_)
        for row in rows:
            ordered = row[order]
            differs |= ordered[1:] != ordered[:-1]
        starts = np.concatenate([[0], np.flatnonzero(differs) + 1])
        hashes = mix(rows[:, order[starts]])
        if attempt or (hashes[1:] != hashes[:-1]).all():
            break
        order = np.lexsort(rows)  # two texts with one hash: practically never
    return order.astype(np.int64), starts.astype(np.int64)


class Dictionary:
    """Codes for short texts, 0, 1, ... in the order in which they were met.

    A hash leads to a slot; the slot's text is then compared with the text in question, so that two texts with one hash
    are still two. Texts that find their slot taken go through an ordinary dictionary.
    """

    _SLOT_BITS = 15

    def __init__(self, width: int) -> None:
        self.width = width
        self._slots = np.full(1 << self._SLOT_BITS, -1, dtype=np.int32)
        self._rows: Words = np.zeros((width, 256), dtype=np.uint64)
        self._codes: dict[bytes, int] = {}
        self.texts: list[bytes] = []

    def encode(self, rows: Words) -> npt.NDArray[np.int32]:
        """The code of each column of `rows` (see `window`), which may lack words that are zero in all columns.

        No text may fill all the words given: a zero byte must end it.
        """
        slots = (mix(rows) >> _U(64 - self._SLOT_BITS)).astype(np.int64)
        codes = self._slots[slots]
        unsure = codes < 0
        for index in range(len(rows)):
            unsure |= self._rows[index][codes] != rows[index]
        places = np.flatnonzero(unsure)
        if len(places):
            self._settle(rows, slots, codes, places)
        return codes

    def _settle(self, rows: Words, slots: Positions, codes: npt.NDArray[np.int32], places: Positions) -> None:
        texts = np.ascontiguousarray(rows[:, places].T).tobytes()
        size = 8 * len(rows)
        known = self._codes
        for index, place in enumerate(places.tolist()):
            text = texts[index * size : index * size + size].rstrip(b"\0")
            code = known.get(text)
            if code is None:
                code = known[text] = len(self.texts)
                self.texts.append(text)
                if code >= self._rows.shape[1]:
                    self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)], axis=1)
                self._rows[: len(rows), code] = rows[:, place]
                if self._slots[slots[place]] < 0:
                    self._slots[slots[place]] = code
            codes[place] = code
