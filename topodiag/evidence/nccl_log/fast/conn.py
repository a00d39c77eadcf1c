"""Lines of channels in a block: `Channel 03/0 : 15[7] -> 0[0] [send] via NET/IB/2(12)/GDRDMA`, `Ring 03 : 3 -> 0 -> 1`.

Lines that differ in the channel only are one row of facts: they are put together by their bytes first, and only one of
each is read. Forms of 2.7 and later (src/transport/p2p.cc, shm.cc, net.cc): with and without `/conn`, in brackets the
device index or the packed bus id. Whatever is written differently is left to the grammar, which knows more.
"""

from __future__ import annotations

import numpy as np

from topodiag.evidence.nccl_log.fast.bytes import (
    MASKS,
    Block,
    first_of,
    is_text,
    leading_digits,
    leading_hex,
    numbers,
    word,
)
from topodiag.evidence.nccl_log.tables.hashes import Flags, Positions, Words, group, sorted_order
from topodiag.lazy import dataclass

_MOST = 112
"""Bytes of the longest line that is read here."""
TAIL_WORDS = 11
"""Words of a tail, what follows the second bracket: up to 87 bytes."""

_U = np.uint64
_CHANNEL, _RING = word(b"Channel "), word(b"Ring \0\0\0")
_DIGITS = _U(0xFFFF)


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of channels below 100 (`lines`: index into the messages asked for), where they begin and end, their channel
    as a bit, and their bytes without the channel's digits."""

    lines: Positions
    message: Positions
    end: Positions
    channels: Positions
    rows: Words


def find(block: Block, message: Positions, end: Positions) -> Lines:
    begin = block.words[message]
    lines = np.flatnonzero(((begin == _CHANNEL) | ((begin & MASKS[5]) == _RING)) & (end - message <= _MOST))
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


@dataclass(frozen=True, slots=True)
class Groups:
    """Equal lines by their first one (`first`): whether it connects, all channels, how many. `group`: of each line."""

    first: Positions
    connects: Flags
    channels: Positions
    count: Positions
    group: Positions


def grouped(rows: Words, identity: Words, channels: Positions) -> Groups:
    """Lines with equal bytes and identity together; identities are below 2**63."""
    order, starts = group([(identity << _U(1)) | rows[0], *rows[1:]])
    if not len(order):
        return Groups(order, order > 0, order, order, order)
    count = np.diff(np.append(starts, len(order)))
    first = order[starts]
    turn = sorted_order(first.view(np.uint64), len(order).bit_length())
    number = np.empty_like(turn)
    number[turn] = np.arange(len(turn))
    of = np.empty_like(order)
    of[order] = np.repeat(number, count)
    united = np.bitwise_or.reduceat(channels[order], starts)
    first = first[turn]
    return Groups(first, rows[0][first] != 0, united[turn], count[turn], of)


@dataclass(frozen=True, slots=True)
class Connections:
    """Connection lines that could be read (`lines`: index into the messages asked for), and their fields. `tail` is
    what follows the second bracket."""

    lines: Positions
    conn: Positions
    rank: Positions
    peer: Positions
    dev: Words
    peer_dev: Words
    tail: Words


def read(block: Block, message: Positions, end: Positions) -> Connections:
    """The connections among these messages, which begin so and whose channel has two digits."""
    here = message + 10
    text = block.rows(here, 2)
    slash = (text[0] & _U(0xFF)) == ord("/")
    conn = ((text[0] >> _U(8)) & _U(0xFF)).view(np.int64) - ord("0")
    good = ~slash | ((conn >= 0) & (conn <= 9))
    conn[~slash] = -1
    here = here + 2 * slash
    good &= (np.where(slash, text[0] >> _U(16), text[0]) & MASKS[3]) == word(b" : ")
    here = here + 3

    rank, here, dev, fine = _end(block, here)
    good &= fine & is_text(block, here, b" -> ")
    peer, here, peer_dev, fine = _end(block, here + 4)
    length = end - here
    good &= fine & (length > 5) & (length < 8 * TAIL_WORDS)
    lines = np.flatnonzero(good)
    if len(lines) < len(good):
        conn, rank, peer, here, length = (array[lines] for array in (conn, rank, peer, here, length))
        dev, peer_dev = dev[lines], peer_dev[lines]
    tail = block.rows(here, int(length.max(initial=0)) // 8 + 1, length)
    return Connections(lines, conn, rank, peer, dev, peer_dev, tail)


def _end(block: Block, where: Positions) -> tuple[Positions, Positions, Words, Flags]:
    """An end of a connection, `15[1b000]`: rank, position behind, what is in the bracket, and whether it is there with
    at most 7 digits and 7 bytes."""
    text = block.rows(where, 2)
    digits = leading_digits(text[0])
    rank = numbers(text[0], digits)
    # What follows the digits, as one word of which at least the bracket's first bytes are there.
    shift = _U(8) * np.minimum(digits, 7).view(np.uint64)
    rest = (text[0] >> shift) | ((text[1] << (_U(56) - shift)) << _U(8))
    inside = rest >> _U(8)
    length = first_of(inside, ord("]"))
    fine = (digits > 0) & (digits < 8) & ((rest & _U(0xFF)) == ord("[")) & (length > 0) & (length < 8)
    fine &= leading_hex(inside) >= length  # else the grammar, which is slower, says what it is
    return rank, where + digits + length + 2, inside & MASKS[length], fine
