"""Lines whose words are fixed and whose numbers differ on every line, read for all lines of a block together.

Operations, inits and rings as 2.19 and later print them (src/enqueue.cc, src/init.cc). Whatever is written differently
is left to the grammar, which is slower and knows more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from topodiag.evidence.nccl_log.fast.bytes import (
    MASKS,
    Block,
    first_of,
    hex_numbers,
    is_text,
    leading_digits,
    leading_hex,
    numbers,
    word,
)
from topodiag.evidence.nccl_log.tables.hashes import Flags, Positions, Words
from topodiag.lazy import dataclass

NAME_WORDS = 4
"""Words that hold the name at the beginning of a line, with a zero byte behind it."""
_MOST_NAME = 31
_MOST = 240
"""Bytes of the longest line that is read here: it must not reach over what surrounds a block."""


@dataclass(frozen=True, slots=True)
class Token:
    """What stands between two blanks: `before`, then letters or digits by `kind`, then `after` (at most one byte).

    Kinds: "" nothing, `name`, `any` (at least one byte), `decimal`, `hex`. Numbers are from low to high, so that the
    grammar makes the same of their digits; where `high` is _ALL they are any of 64 bits.
    """

    before: bytes = b""
    kind: str = ""
    name: str = ""
    after: bytes = b""
    low: int = 0
    high: int = (1 << 31) - 1


_ALL = 1 << 63
_LONG = 1 << 58


class Form:
    """The tokens of a line, with what is needed to look at all of them together."""

    def __init__(self, text: str, *others: Token) -> None:
        """Tokens are the words of `text`, and `others` in the places of `?`."""
        rest = iter(others)
        self.tokens = tuple(next(rest) if part == "?" else Token(part.encode()) for part in text.split())
        before = [token.before for token in self.tokens]
        self.named = self.tokens[0].kind == "name"
        self.masks: Words = np.array(
            [[[MASKS[min(max(len(data) - half, 0), 8)]] for data in before] for half in (0, 8)], dtype=np.uint64
        )
        self.words: Words = np.array([[[word(data[half : half + 8])] for data in before] for half in (0, 8)])
        self.around = _one_each([len(token.before) + len(token.after) for token in self.tokens])
        self.literal, self.any = self._of_kind(""), self._of_kind("any")
        self.after = [(number, token.after[0]) for number, token in enumerate(self.tokens) if token.after]
        self.numbers = [_Numbers(self, self._of_kind(kind), kind == "hex") for kind in ("decimal", "hex")]

    def _of_kind(self, kind: str) -> list[int]:
        return [number for number, token in enumerate(self.tokens) if token.kind == kind]


class _Numbers:
    """The numbers of a form that are of one base."""

    def __init__(self, form: Form, numbers: list[int], hexadecimal: bool) -> None:
        tokens = [form.tokens[number] for number in numbers]
        self.tokens, self.hexadecimal = numbers, hexadecimal
        self.names = [token.name for token in tokens]
        self.skip = _one_each([len(token.before) for token in tokens])
        self.low = _one_each([token.low if token.high != _ALL else -_ALL for token in tokens])
        self.high = _one_each([min(token.high, _ALL - 1) for token in tokens])
        self.digits = _one_each([16 if token.high == _ALL else 15 for token in tokens])


def _one_each(numbers: list[int]) -> Positions:
    """A number for each token, beside those of all lines."""
    return np.array(numbers, dtype=np.int64)[:, np.newaxis]


_POINTER = Token(b"0x", "hex", "ctx", high=_ALL)
_NRANKS = Token(b"", "decimal", "nranks", low=1)


def _decimals(*names: str) -> list[Token]:
    return [Token(b"", "decimal", name) for name in names]


OPERATION = Form(
    "? opCount ? sendbuff ? recvbuff ? count ? datatype ? op ? root ? comm ? ? stream ?",
    Token(b"", "name", "", b":"), Token(b"", "hex", "op_count", high=_LONG), Token(b"", "any"), Token(b"", "any"),
    Token(b"", "decimal", "elements", high=_LONG), *_decimals("dtype", "redop", "root"), _POINTER,
    Token(b"[nranks=", "decimal", "nranks", b"]", low=1), Token(b"", "any"),
)  # fmt: skip
INIT = Form(
    "? comm ? rank ? nranks ? cudaDev ? nvmlDev ? busId ? commId ? - Init ?",
    Token(b"", "name"), _POINTER, *_decimals("rank"), _NRANKS, *_decimals("cuda_dev", "nvml_dev"),
    Token(b"", "hex", "bus_id", high=_LONG), Token(b"0x", "hex", "comm_id", high=_ALL), Token(b"", "any"),
)  # fmt: skip
MEMBER = Form(
    "comm ? rank ? nRanks ? nNodes ? localRanks ? localRank ? MNNVL ?",
    _POINTER, *_decimals("rank"), _NRANKS, *_decimals("nodes", "local_ranks", "local_rank"),
    Token(b"", "decimal", "mnnvl", high=1),
)  # fmt: skip
RING = Form(
    "Ring ? : ? -> ? -> ?",
    *(Token(b"", "decimal", name, high=999_999_999) for name in ("channel", "prev", "rank", "next")),
)


@dataclass(frozen=True, slots=True)
class Read:
    """Lines of a form (`lines`: index into the positions asked for), the code of their name, and their numbers."""

    lines: Positions
    name: Positions
    columns: dict[str, Positions]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Lines that may be of a form, by how they begin and end: index into the messages asked for. `starts` tells Init
    START from Init COMPLETE among the inits."""

    operations: Positions
    inits: Positions
    starts: Flags
    members: Positions


def candidates(block: Block, message: Positions, end: Positions) -> Candidates:
    begin = block.rows(message, 2)
    colon = first_of(begin[0], ord(":"))
    colon += first_of(begin[1], ord(":")) * (colon == 8)
    short = end - message <= _MOST
    operations = short & (colon < 16) & is_text(block, message + colon, b": opCoun")
    inits = np.flatnonzero(short & (begin[0] == word(b"ncclComm")) & (end - message > 24))
    last = end[inits]
    starts = (block.words[last - 8] == word(b"it START")) & (block.words[last - 13] == word(b" - Init "))
    completes = (block.words[last - 8] == word(b"COMPLETE")) & (block.words[last - 16] == word(b" - Init "))
    kept = np.flatnonzero(starts | completes)
    return Candidates(
        operations=np.flatnonzero(operations),
        inits=inits[kept],
        starts=starts[kept],
        members=np.flatnonzero(short & ((begin[0] & MASKS[7]) == word(b"comm 0x"))),
    )


def read(block: Block, start: Positions, end: Positions, form: Form, names: Callable[[Words], Positions]) -> Read:
    """The lines from `start` to `end` that are of this form. `names` gives the code of a name, -1 for what is none."""
    lines, begin, length = _split(block, start, end, len(form.tokens))
    at = start[lines] + begin
    inner = length - form.around
    good = (inner >= 0).all(axis=0) & (inner[form.literal] == 0).all(axis=0) & (inner[form.any] > 0).all(axis=0)
    text = block.rows(at.reshape(-1), 2).reshape(2, *at.shape)
    good &= ((text & form.masks) == form.words).all(axis=(0, 1))
    for token, letter in form.after:
        good &= block.at[at[token] + length[token] - 1] == letter
    columns: dict[str, Positions] = {}
    for one in form.numbers:
        where = at[one.tokens] + one.skip
        value, digits = _numbers(block, where.reshape(-1), hexadecimal=one.hexadecimal)
        value, digits = value.reshape(where.shape), digits.reshape(where.shape)
        fine = (digits == inner[one.tokens]) & (digits > 0) & (digits <= one.digits)
        good &= (fine & (value >= one.low) & (value <= one.high)).all(axis=0)
        columns |= dict(zip(one.names, value, strict=True))
    if "ctx" in columns:
        good &= columns["ctx"] != 0  # nothing is named
    code = np.full(len(lines), -1, dtype=np.int64)
    if form.named:
        good &= inner[0] <= _MOST_NAME
        code = names(block.rows(start[lines], NAME_WORDS, np.where(good, inner[0], 0)))
        good &= code >= 0
    kept = np.flatnonzero(good)
    return Read(lines[kept], code[kept], {name: values[kept] for name, values in columns.items()})


def _split(block: Block, start: Positions, end: Positions, tokens: int) -> tuple[Positions, Positions, Positions]:
    """Lines of this many tokens; by token and line, where the token begins behind the line's start, and its length."""
    size = end - start
    wide = 8 * (int(size.max(initial=0)) // 8 + 1)
    inside = np.arange(wide, dtype=np.uint8) < size.astype(np.uint8)[:, np.newaxis]
    blank = (block.bytes(start, wide) == ord(" ")) & inside
    lines = np.flatnonzero(np.add.reduce(blank.view(np.uint8), axis=1, dtype=np.uint8) == tokens - 1)
    if len(lines) < len(start):
        blank = blank[lines]
    at = np.flatnonzero(blank.reshape(-1)).reshape(len(lines), tokens - 1)
    begin = np.zeros((tokens, len(lines)), dtype=np.int64)
    begin[1:] = at.T - (wide * np.arange(len(lines)) - 1)
    stop = np.append(begin[1:] - 1, size[np.newaxis, lines], axis=0)
    return lines, begin, stop - begin


def _numbers(block: Block, where: Positions, *, hexadecimal: bool) -> tuple[Positions, Positions]:
    """The number at each position and its digits, of up to 16: more show in what follows."""
    count, value_of = (leading_hex, hex_numbers) if hexadecimal else (leading_digits, numbers)
    words = block.words[where]
    digits = count(words)
    value = value_of(words, digits)
    more = np.flatnonzero(digits == 8)
    if len(more):
        words = block.words[where[more] + 8]
        low = count(words)
        if hexadecimal:
            value[more] <<= 4 * low
        else:
            value[more] *= _POWERS[low]
        value[more] += value_of(words, low)
        digits[more] += low
    return value, digits


_POWERS: Positions = np.array([10**power for power in range(9)], dtype=np.int64)
