"""Lines whose wording is fixed and whose numbers differ on every line, read for all lines of a block together.

Operations and inits as 2.19 to 2.30 print them (src/enqueue.cc, src/init.cc). Whatever is written differently is left
to the grammar, which is slower and knows more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topodiag.evidence.nccl_log.scan_bytes import (
    Block,
    Flags,
    Positions,
    Words,
    first_of,
    hex_numbers,
    is_text,
    keep_first,
    leading_digits,
    leading_hex,
    leading_letters,
    numbers,
)

_U = np.uint64
NAME_WORDS = 4
"""Words that hold the name at the beginning of a line, with a zero byte behind it."""
_MOST_NAME = 31


@dataclass(frozen=True, slots=True)
class Part:
    """`text`, then a number: `decimal` (up to 15 digits), `hex` (up to 16), `token` (anything without a blank), or
    `end` of the line."""

    text: bytes
    kind: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """How such a line begins, as far as it is the same (`name`, up to 8 bytes), and its parts behind the name."""

    name: bytes
    parts: tuple[Part, ...]


_NAMED = (
    Part(b" comm 0x", "hex", "ctx"),
    Part(b" rank ", "decimal", "rank"),
    Part(b" nranks ", "decimal", "nranks"),
    Part(b" cudaDev ", "decimal", "cuda_dev"),
    Part(b" nvmlDev ", "decimal", "nvml_dev"),
    Part(b" busId ", "hex", "bus_id"),
    Part(b" commId 0x", "hex", "comm_id"),
)
OPERATION = Form(
    b"",
    (
        Part(b": opCount ", "hex", "op_count"),
        Part(b" sendbuff ", "token"),
        Part(b" recvbuff ", "token"),
        Part(b" count ", "decimal", "elements"),
        Part(b" datatype ", "decimal", "dtype"),
        Part(b" op ", "decimal", "redop"),
        Part(b" root ", "decimal", "root"),
        Part(b" comm 0x", "hex", "ctx"),
        Part(b" [nranks=", "decimal", "nranks"),
        Part(b"] stream ", "token"),
        Part(b"", "end"),
    ),
)
INITS = {
    "start": Form(b"ncclComm", (*_NAMED, Part(b" - Init START", "end"))),
    "complete": Form(b"ncclComm", (*_NAMED, Part(b" - Init COMPLETE", "end"))),
    "member": Form(
        b"comm 0x",
        (
            Part(b" 0x", "hex", "ctx"),
            Part(b" rank ", "decimal", "rank"),
            Part(b" nRanks ", "decimal", "nranks"),
            Part(b" nNodes ", "decimal", "nodes"),
            Part(b" localRanks ", "decimal", "local_ranks"),
            Part(b" localRank ", "decimal", "local_rank"),
            Part(b" MNNVL ", "decimal", "mnnvl"),
            Part(b"", "end"),
        ),
    ),
}
"""By the event that they tell."""
_ALL = 1 << 63
_I32 = (0, 1 << 31)
_RANGES = {
    "op_count": (0, 1 << 60), "elements": (0, 1 << 60), "dtype": _I32, "redop": _I32, "root": _I32, "ctx": (1, _ALL),
    "nranks": (1, 1 << 31), "rank": _I32, "cuda_dev": _I32, "nvml_dev": _I32, "bus_id": (0, 1 << 60), "nodes": _I32,
    "local_ranks": _I32, "local_rank": _I32, "mnnvl": (0, 2),
}  # fmt: skip
"""Numbers within these are what the grammar makes of their digits; _ALL: any word of 64 bits."""


@dataclass(frozen=True, slots=True)
class Read:
    """Lines of a form (`lines`: index into the positions asked for), the name they begin with, and their numbers."""

    lines: Positions
    name: Words
    columns: dict[str, Positions]


def names(block: Block, start: Positions) -> Positions:
    """Number of letters at each position, of up to 8 * NAME_WORDS."""
    length = np.zeros(len(start), dtype=np.int64)
    open_: Flags = np.ones(len(start), dtype=np.bool_)
    for row in block.rows(start, NAME_WORDS):
        step = leading_letters(row)
        length += step * open_
        open_ &= step == 8
    return length


def read(block: Block, start: Positions, end: Positions, length: Positions, form: Form) -> Read:
    """The lines from `start` to `end` that are of this form; `length` as `names` gives it."""
    chosen = (length > 0) & (length <= _MOST_NAME) & is_text(block, start, form.name)
    chosen &= _begins(block, start + length, form.parts[0].text)
    lines = np.flatnonzero(chosen)
    begin, stop = start[lines], end[lines]
    here = begin + length[lines]
    good = np.ones(len(lines), dtype=np.bool_)
    columns: dict[str, Positions] = {}
    for part in form.parts:
        good &= _begins(block, here, part.text)
        here = here + len(part.text)
        if part.kind == "token":
            step, fine = _token(block, here, stop)
        elif part.kind == "end":
            good &= here == stop
            continue
        else:
            value, step, fine = _number(block, here, hexadecimal=part.kind == "hex")
            low, high = _RANGES.get(part.name, (0, _ALL))
            fine &= (step <= 15) | (high == _ALL)
            if high != _ALL:
                fine &= (value >= low) & (value < high)
            else:
                fine &= (value != 0) | (low == 0)
            columns[part.name] = value
        good &= fine
        here = np.where(good, here + step, begin)  # a line that fell out must not lead out of the block
    kept = np.flatnonzero(good)
    name = block.rows(begin[kept], NAME_WORDS)
    keep_first(name, length[lines[kept]])
    return Read(lines[kept], name, {each: values[kept] for each, values in columns.items()})


def _begins(block: Block, where: Positions, text: bytes) -> Flags:
    same = np.ones(len(where), dtype=np.bool_)
    for at in range(0, len(text), 8):
        same &= is_text(block, where + at, text[at : at + 8])
    return same


def _token(block: Block, here: Positions, stop: Positions) -> tuple[Positions, Flags]:
    """Bytes up to a blank or the end of the line, of at most 24."""
    length = np.zeros(len(here), dtype=np.int64)
    open_: Flags = np.ones(len(here), dtype=np.bool_)
    for row in block.rows(here, 3):
        step = first_of(row, ord(" "))
        length += step * open_
        open_ &= step == 8
    length = np.minimum(length, stop - here)
    return length, (length > 0) & (length < 24)


def _number(block: Block, here: Positions, *, hexadecimal: bool) -> tuple[Positions, Positions, Flags]:
    """The number of up to 16 digits at each position, its digits, and whether it has any. More digits show in what
    follows the number."""
    rows = block.rows(here, 2)
    count, value_of = (leading_hex, hex_numbers) if hexadecimal else (leading_digits, numbers)
    high, low = count(rows[0]), count(rows[1])
    low *= high == 8
    digits = high + low
    first, second = value_of(rows[0], high), value_of(rows[1], low)
    if hexadecimal:
        value = (first.view(np.uint64) << (_U(4) * low.view(np.uint64))) | second.view(np.uint64)
        return value.view(np.int64), digits, digits > 0
    return first * _POWERS[low] + second, digits, digits > 0


_POWERS: Positions = np.array([10**power for power in range(9)], dtype=np.int64)
