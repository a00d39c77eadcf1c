"""Lines whose words are fixed and whose numbers differ on every line, read for all lines of a block together.

Operations, inits and rings as 2.19 and later print them (src/enqueue.cc, src/init.cc). Whatever is written differently
is left to the grammar, which is slower and knows more.

Lines of channels, `Channel 03/0 : 15[7] -> 0[0] [send] via NET/IB/2(12)/GDRDMA`, `Ring 03 : 3 -> 0 -> 1`, that differ
in the channel only are one row of facts: they are put together by their bytes first, and only one of each is read.
Forms of 2.7 and later (src/transport/p2p.cc, shm.cc, net.cc): with and without `/conn`, in brackets the device index or
the packed bus id.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from topodiag.evidence.nccl_log.fast import bytes as block_bytes
from topodiag.evidence.nccl_log.fast.bytes import MASKS, Block, first_of, is_text, leading_digits, leading_hex, word
from topodiag.evidence.nccl_log.tables.facts import Flags, Positions, Words, mix
from topodiag.lazy import dataclass

NAME_WORDS = 4
"""Words that hold the name at the beginning of a line, with a zero byte behind it."""
_MOST_NAME = 31
_MOST = 240
"""Bytes of the longest line that is read here: it must not reach over what surrounds a block."""
_MOST_OF_CHANNEL = 112
"""Bytes of the longest line that is read here."""
TAIL_WORDS = 11
"""Words of a tail, what follows the second bracket: up to 87 bytes."""

_U = np.uint64
_CHANNEL, _RING = word(b"Channel "), word(b"Ring \0\0\0")
_DIGITS = _U(0xFFFF)
_SLOT_BITS = 16
"""Bits of a hash that make a slot: a block has a few thousand different lines of channels."""


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


def candidates(block: Block, message: Positions, end: Positions) -> list[tuple[Form, Positions, str]]:
    """Forms, the lines that may be of each by how they begin and end (index into the messages asked for), and the event
    of a communicator that they tell of; "" for operations."""
    begin = block.rows(message, 2)
    colon = first_of(begin[0], ord(":"))
    colon += first_of(begin[1], ord(":")) * (colon == 8)
    short = end - message <= _MOST
    operations = short & (colon < 16) & is_text(block, message + colon, b": opCoun")
    inits = np.flatnonzero(short & (begin[0] == word(b"ncclComm")) & (end - message > 24))
    last = end[inits]
    starts = (block.words[last - 8] == word(b"it START")) & (block.words[last - 13] == word(b" - Init "))
    completes = (block.words[last - 8] == word(b"COMPLETE")) & (block.words[last - 16] == word(b" - Init "))
    members = np.flatnonzero(short & ((begin[0] & MASKS[7]) == word(b"comm 0x")))
    return [
        (OPERATION, np.flatnonzero(operations), ""), (INIT, inits[starts], "start"),
        (INIT, inits[completes], "complete"), (MEMBER, members, "member"),
    ]  # fmt: skip


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
    count, value_of = (leading_hex, block_bytes.hex_numbers) if hexadecimal else (leading_digits, block_bytes.numbers)
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


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of channels below 100 (`lines`: index into the messages asked for), where they begin and end, their channel
    as a bit, and their bytes without the channel's digits."""

    lines: Positions
    message: Positions
    end: Positions
    channels: Positions
    rows: Words


def channels_among(block: Block, message: Positions, end: Positions) -> Lines:
    begin = block.words[message]
    lines = np.flatnonzero(((begin == _CHANNEL) | ((begin & MASKS[5]) == _RING)) & (end - message <= _MOST_OF_CHANNEL))
    message, end = message[lines], end[lines]
    length = end - message
    rows = block.rows(message, int(length.max(initial=16) + 7) // 8, length)
    connects = rows[0] == _CHANNEL
    # Two digits and no third one, which for a ring would stand in the same word.
    number = np.where(connects, rows[1], rows[0] >> _U(40))
    tens, ones, third = (((number >> _U(shift)) & _U(0xFF)) - _U(ord("0")) for shift in (0, 8, 16))
    channel = 10 * tens + ones
    fine = (tens < 10) & (ones < 10) & (third > 9)  # below zero is far above nine
    if not fine.all():
        lines, message, end, channel, connects = (array[fine] for array in (lines, message, end, channel, connects))
        rows = np.ascontiguousarray(rows[:, fine])
    rows[1] &= ~np.where(connects, _DIGITS, _U(0))
    rows[0] = connects  # the rest of this word is the same in all that are not
    return Lines(lines, message, end, (_U(1) << np.minimum(channel, _U(63))).view(np.int64), rows)


def grouped_channels(
    rows: Words, identity: Words, channels: Positions
) -> tuple[Positions, Flags, dict[str, Positions], Positions]:
    """Lines with equal bytes and identity together; identities are below 2**63. A line whose slot has another's bytes
    stays alone: `resolve` makes equal rows one.

    The first line of each group, whether it connects, all its channels and the count of its lines, and the group of
    each line."""
    words = [(identity << _U(1)) | rows[0], *rows[1:]]
    slots = (mix(words) >> _U(64 - _SLOT_BITS)).view(np.int64)
    number = np.arange(len(slots))
    first_in = np.empty(1 << _SLOT_BITS, dtype=np.int64)
    first_in[slots[::-1]] = number[::-1]  # of several lines the last one that is written stays
    first_of_slot = first_in.take(slots)
    same = np.logical_and.reduce([word.take(first_of_slot) == word for word in words])
    of = np.where(same, first_of_slot, number)
    first = np.flatnonzero(of == number)
    number[first] = np.arange(len(first))
    group = number.take(of)
    united = np.zeros(len(first), dtype=np.int64)
    np.bitwise_or.at(united, group, channels)
    return first, rows[0][first] != 0, {"count": np.bincount(group), "channels": united}, group


def connections(
    block: Block, message: Positions, end: Positions
) -> tuple[Positions, dict[str, Positions], dict[str, Words], Words]:
    """The connections among these messages, which begin so and whose channel has two digits: those that could be read
    (index into the messages asked for), their numbers, what stands in the brackets, and what follows the second one."""
    here = message + 10
    text = block.rows(here, 2)
    slash = (text[0] & _U(0xFF)) == ord("/")
    conn = ((text[0] >> _U(8)) & _U(0xFF)).view(np.int64) - ord("0")
    good = ~slash | ((conn >= 0) & (conn <= 9))
    conn[~slash] = -1
    here = here + 2 * slash
    good &= (np.where(slash, text[0] >> _U(16), text[0]) & MASKS[3]) == word(b" : ")
    here = here + 3

    rank, here, dev, fine = _one_end(block, here)
    good &= fine & is_text(block, here, b" -> ")
    peer, here, peer_dev, fine = _one_end(block, here + 4)
    length = end - here
    good &= fine & (length > 5) & (length < 8 * TAIL_WORDS)
    lines = np.flatnonzero(good)
    if len(lines) < len(good):
        conn, rank, peer, here, length = (array[lines] for array in (conn, rank, peer, here, length))
        dev, peer_dev = dev[lines], peer_dev[lines]
    tail = block.rows(here, int(length.max(initial=0)) // 8 + 1, length)
    return lines, {"rank": rank, "peer": peer, "conn": conn}, {"dev": dev, "peer_dev": peer_dev}, tail


def _one_end(block: Block, where: Positions) -> tuple[Positions, Positions, Words, Flags]:
    """An end of a connection, `15[1b000]`: rank, position behind, what is in the bracket, and whether it is there with
    at most 7 digits and 7 bytes."""
    text = block.rows(where, 2)
    digits = leading_digits(text[0])
    rank = block_bytes.numbers(text[0], digits)
    # What follows the digits, as one word of which at least the bracket's first bytes are there.
    shift = _U(8) * np.minimum(digits, 7).view(np.uint64)
    rest = (text[0] >> shift) | ((text[1] << (_U(56) - shift)) << _U(8))
    inside = rest >> _U(8)
    length = first_of(inside, ord("]"))
    fine = (digits > 0) & (digits < 8) & ((rest & _U(0xFF)) == ord("[")) & (length > 0) & (length < 8)
    fine &= leading_hex(inside) >= length  # else the grammar, which is slower, says what it is
    return rank, where + digits + length + 2, inside & MASKS[length], fine
