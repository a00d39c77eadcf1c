"""Connection lines of a block, all at once: `Channel 03/0 : 15[7] -> 0[0] [receive] via NET/IB/2/GDRDMA`.

Forms of 2.7 to 2.30 (src/transport/p2p.cc, shm.cc, net.cc): with and without `/conn`, in brackets the device index or
the packed bus id. Whatever is written differently is left to the grammar, which is slower and knows more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topodiag.evidence.nccl_log.scan_bytes import (
    MASKS,
    Block,
    Flags,
    Positions,
    Words,
    first_of,
    is_text,
    read_number,
    window,
    word,
)

TAIL_WORDS = 8
"""Words that hold what follows the second bracket, as ` [send] via NET/AWS Libfabric/3(12)/GDRDMA/Shared`."""

_CHANNEL = word(b"Channel ")


@dataclass(frozen=True, slots=True)
class Connections:
    """The lines that could be read (`lines`: index into the positions asked for), and their fields."""

    lines: Positions
    channel: Positions
    conn: Positions
    rank: Positions
    peer: Positions
    dev: Words
    peer_dev: Words
    tail: Words


def read(block: Block, start: Positions, end: Positions) -> Connections:
    """The connection lines among the messages from `start` to `end`."""
    lines = np.flatnonzero(block.words[start] == _CHANNEL)
    here, stop = start[lines] + 8, end[lines]
    good = np.ones(len(lines), dtype=np.bool_)

    channel, digits = read_number(block, here)
    good &= (digits > 0) & (digits < 6)
    here = here + digits
    slash = block.at[here] == ord("/")
    conn = block.at[here + 1].astype(np.int64) - ord("0")
    good &= ~slash | ((conn >= 0) & (conn <= 9))
    conn[~slash] = -1
    here = here + 2 * slash
    good &= is_text(block, here, b" : ")
    here = here + 3

    rank, digits = read_number(block, here)
    good &= (digits > 0) & (digits < 8)
    here, dev, fine = _bracket(block, here + digits)
    good &= fine & is_text(block, here, b" -> ")
    here = here + 4

    peer, digits = read_number(block, here)
    good &= (digits > 0) & (digits < 8)
    here, peer_dev, fine = _bracket(block, here + digits)
    length = stop - here
    good &= fine & (length > 5) & (length < 8 * TAIL_WORDS)

    kept = np.flatnonzero(good)
    return Connections(
        lines=lines[kept],
        channel=channel[kept],
        conn=conn[kept],
        rank=rank[kept],
        peer=peer[kept],
        dev=dev[kept],
        peer_dev=peer_dev[kept],
        tail=window(block, here[kept], length[kept]),
    )


def _bracket(block: Block, where: Positions) -> tuple[Positions, Words, Flags]:
    """Position behind `[1b000]`, what is in it as a word, and whether it is there with at most 7 bytes."""
    inside = block.words[where + 1]
    length = first_of(inside, ord("]"))
    fine = (block.at[where] == ord("[")) & (length > 0) & (length < 8)
    return where + length + 2, inside & MASKS[length], fine


@dataclass(frozen=True, slots=True)
class Rings:
    """Lines `Ring 00 : 3 -> 0 -> 1` and their numbers, as Connections."""

    lines: Positions
    channel: Positions
    ranks: tuple[Positions, Positions, Positions]


def read_rings(block: Block, start: Positions, end: Positions) -> Rings:
    lines = np.flatnonzero(is_text(block, start, b"Ring "))
    here, stop = start[lines] + 5, end[lines]
    channel, digits = read_number(block, here)
    good = (digits > 0) & (digits < 5)
    here = here + digits
    ranks = []
    for before in (b" : ", b" -> ", b" -> "):
        good &= is_text(block, here, before)
        here = here + len(before)
        rank, digits = read_number(block, here)
        good &= (digits > 0) & (digits < 8)
        here = here + digits
        ranks.append(rank)
    kept = np.flatnonzero(good & (here == stop))
    return Rings(lines[kept], channel[kept], (ranks[0][kept], ranks[1][kept], ranks[2][kept]))
