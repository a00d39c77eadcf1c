"""Vector operations on the bytes of a block: what the fast extractor does to thousands of lines at once.

A block is a byte array with PAD zero bytes on both sides, seen twice: byte by byte, and as the little-endian
64-bit word that begins at every byte. All functions take positions as integer arrays into that padded array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.tables.facts import Flags, Positions, Words, firsts, mix

PAD = 256
"""Bytes in front of and behind a block; no gather reaches further than this from a position inside it."""

_EDGE = bytes(PAD)
_TURNED = 2048
"""Positions whose words are turned to rows together: they stay in a core's first caches until then."""

Bytes = npt.NDArray[np.uint8]

_U = np.uint64
_ZEROS = _U(0x3030303030303030)
_NOT_DIGIT = _U(0x7676767676767676)
_HIGH = _U(0x8080808080808080)
_LOW = _U(0x7F7F7F7F7F7F7F7F)
_ONES = _U(0x0101010101010101)
MASKS: Words = np.array([(1 << (8 * k)) - 1 for k in range(8)] + [(1 << 64) - 1], dtype=np.uint64)
"""MASKS[k] keeps the first k bytes of a word."""
_KEPT: Words = MASKS[np.clip(np.arange(PAD + 1)[:, np.newaxis] - 8 * np.arange(PAD // 8), 0, 8)]
"""By length, the masks that keep so many bytes of words in a row."""


class Block:
    """Some bytes with their padding, as bytes (`at`) and as overlapping words (`words`). `ends` are the places of line
    ends, `rare` those of all other bytes below the blank, `letters` those of L, of which each record has one in NCCL,
    and `lines` the lines of these, counted from 0."""

    __slots__ = ("at", "ends", "letters", "lines", "rare", "raw", "size", "words")

    def __init__(self, data: bytes | memoryview) -> None:
        self.size = len(data)
        self.raw = b"".join((_EDGE, data, _EDGE))
        self.at: Bytes = np.frombuffer(self.raw, dtype=np.uint8)
        text = self.at[PAD : PAD + self.size]
        marks = np.flatnonzero((text < ord(" ")) | (text == ord("L"))) + PAD
        marked = self.at[marks]
        is_end, is_letter = marked == ord("\n"), marked == ord("L")
        # An index of flags takes three times as long.
        self.ends: Positions = marks.compress(is_end)
        self.rare: Positions = marks.compress(~(is_end | is_letter))
        self.letters: Positions = marks.compress(is_letter)
        self.lines: Positions = np.cumsum(is_end).compress(is_letter)
        self.words: Words = np.ndarray((len(self.raw) - 7,), "<u8", buffer=self.raw, strides=(1,))

    def rows(self, start: Positions, count: int, length: Positions | None = None) -> Words:
        """The `count` words from each position on, as rows: word by word, one column per position. Of each position
        only the first `length` bytes, with zeros behind them."""
        rows = np.empty((count, len(start)), dtype=np.uint64)
        for first in range(0, len(start), _TURNED):
            some = slice(first, first + _TURNED)
            words = self.bytes(start[some], 8 * count).view("<u8")
            if length is not None:
                words &= _KEPT[:, :count].take(length[some], axis=0)
            rows[:, some] = words.T
        return rows

    def texts(self, start: Positions, end: Positions) -> list[bytes]:
        return [self.raw[a:b] for a, b in zip(start.tolist(), end.tolist(), strict=True)]

    def bytes(self, start: Positions, count: int) -> Bytes:
        """The `count` bytes from each position on, one row per position."""
        # One gather of wide cells costs what a gather of one word does, as nothing here is aligned.
        wide = np.ndarray((len(self.raw) - count + 1,), f"V{count}", buffer=self.raw, strides=(1,))
        return wide[start].view(np.uint8).reshape(len(start), count)


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
    shift = _U(64) - _U(8) * digits.view(np.uint64)
    half = shift >> _U(1)
    value: npt.NDArray[Any] = ((words ^ _ZEROS) << half) << (shift - half)
    value = (value * _U(10) + (value >> _U(8))) & _U(0x00FF00FF00FF00FF)
    value = (value * _U(100) + (value >> _U(16))) & _U(0x0000FFFF0000FFFF)
    value = (value * _U(10000) + (value >> _U(32))) & _U(0xFFFFFFFF)
    return value.view(np.int64)


def leading_hex(words: Words) -> npt.NDArray[np.int64]:
    """How many of each word's first bytes are hexadecimal digits in lower case, 0 to 8."""
    low = words & _LOW  # without the high bit no sum carries into the next byte
    digit = (low + _U(0x5050505050505050)) & ~(low + _U(0x4646464646464646))  # 0x30 to 0x39
    letter = (low + _U(0x1F1F1F1F1F1F1F1F)) & ~(low + _U(0x1919191919191919))  # 0x61 to 0x66
    return _first_flag((~(digit | letter) | words) & _HIGH)


def hex_numbers(words: Words, digits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The hexadecimal number that the first `digits` bytes of each word write; 0 for no digits."""
    nibbles = (words & _U(0x0F0F0F0F0F0F0F0F)) + _U(9) * ((words >> _U(6)) & _ONES)
    shift = _U(64) - _U(8) * digits.view(np.uint64)
    half = shift >> _U(1)
    value: npt.NDArray[Any] = (nibbles << half) << (shift - half)
    value = ((value << _U(4)) | (value >> _U(8))) & _U(0x00FF00FF00FF00FF)
    value = ((value << _U(8)) | (value >> _U(16))) & _U(0x0000FFFF0000FFFF)
    value = ((value << _U(16)) | (value >> _U(32))) & _U(0xFFFFFFFF)
    return value.view(np.int64)


def keep_last(rows: Words, length: npt.NDArray[np.int64]) -> None:
    """Zero what stands in front of the last `length` bytes of each column."""
    least = int(length.min(initial=8 * len(rows)))
    for index in range(least // 8, len(rows)):
        rows[-1 - index] &= ~MASKS[8 - np.clip(length - 8 * index, 0, 8)]


def first_of(words: Words, letter: int) -> npt.NDArray[np.int64]:
    """Index of the first byte of each word that is `letter`, 8 for none."""
    return _first_flag(_equal(words, letter))


def bytes_behind_last(words: Words, letter: int) -> npt.NDArray[np.int64]:
    """How many bytes of each word follow its last `letter`, 8 for none."""
    return _first_flag(_equal(words, letter).byteswap())


def _equal(words: Words, letter: int) -> Words:
    other = words ^ _U(letter * 0x0101010101010101)
    flags: Words = ~(((other & _LOW) + _LOW) | other | _LOW)
    return flags


def _first_flag(flags: Words) -> npt.NDArray[np.int64]:
    """Index of the first byte whose high bit is set, 8 for none."""
    first = (flags >> _U(7)) & (~(flags >> _U(7)) + _U(1))
    return ((((first - _U(1)) & _ONES) * _ONES) >> _U(56)).view(np.int64)


class Dictionary:
    """Codes for short texts, 0, 1, ... in the order in which they were met.

    A hash leads to two slots; their texts are then compared with the text in question, so that two texts with one hash
    are still two. Texts that find both slots taken go through an ordinary dictionary.
    """

    _SLOT_BITS = 16

    def __init__(self, width: int) -> None:
        self.width = width
        self._slots = np.full(1 << self._SLOT_BITS, -1, dtype=np.int64)
        self._rows: Words = np.zeros((width, 256), dtype=np.uint64)
        self._codes: dict[bytes, int] = {}
        self.texts: list[bytes] = []

    def encode(self, rows: Words) -> npt.NDArray[np.int64]:
        """The code of each column of `rows` (see `Block.rows`), which may lack words that are zero in all columns.

        Unless there are always as many words, no text may fill all of them: a zero byte must end it.
        """
        hashes = mix(rows)
        codes = self._known(rows, hashes)
        places = np.flatnonzero(codes < 0)
        if len(places):
            self._settle(rows, hashes, codes, places[firsts(hashes[places])])
            some = np.ascontiguousarray(rows[:, places])
            codes[places] = self._known(some, hashes[places])
            self._settle(rows, hashes, codes, places[codes[places] < 0])
        return codes

    def known(self, rows: Words) -> npt.NDArray[np.int64]:
        """The code of each column of `rows`, -1 for texts that were not met before."""
        return self._known(rows, mix(rows))

    def _known(self, rows: Words, hashes: Words) -> npt.NDArray[np.int64]:
        """Codes of the texts that stand in one of their slots, -1 of others."""
        codes = self._in_slot(rows, hashes >> _U(64 - self._SLOT_BITS))
        places = np.flatnonzero(codes < 0)
        if len(places):
            second = hashes[places] & _U((1 << self._SLOT_BITS) - 1)
            codes[places] = self._in_slot([row[places] for row in rows], second)
        return codes

    def _in_slot(self, rows: Words | Sequence[Words], slots: Words) -> npt.NDArray[np.int64]:
        codes = self._slots.take(slots.view(np.int64))
        wrong = codes < 0
        codes[wrong] = 0
        for known, row in zip(self._rows, rows, strict=False):
            wrong |= known.take(codes) != row
        codes[wrong] = -1
        return codes

    def _settle(self, rows: Words, hashes: Words, codes: npt.NDArray[np.int64], places: Positions) -> None:
        """Codes of the columns at these places, one by one."""
        texts = np.ascontiguousarray(rows[:, places].T).tobytes()
        slots = (hashes[places] >> _U(64 - self._SLOT_BITS)).tolist()
        others = (hashes[places] & _U((1 << self._SLOT_BITS) - 1)).tolist()
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
                for slot in (slots[index], others[index]):
                    if self._slots[slot] < 0:
                        self._slots[slot] = code
                        break
            codes[place] = code


class Vocabulary:
    """What short texts mean, as numbers: each text is asked for once."""

    def __init__(self, width: int, meaning: Callable[[bytes], int | tuple[int, ...]], *shape: int) -> None:
        """`meaning` gives a number, or as many of them as `shape` says."""
        self._texts, self._meaning = Dictionary(width), meaning
        self._meanings = np.zeros((0, *shape), dtype=np.int64)

    def __call__(self, rows: Words) -> npt.NDArray[np.int64]:
        """The meaning of each column of `rows`, as `Dictionary.encode` takes them."""
        codes = self._texts.encode(rows)
        new = [self._meaning(text) for text in self._texts.texts[len(self._meanings) :]]
        if new:
            self._meanings = np.concatenate([self._meanings, np.array(new, dtype=np.int64)])
        return self._meanings[codes]
