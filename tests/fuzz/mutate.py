"""Texts and bytes made worse, always the same way for the same seed of the generator."""

import random
import re
from collections.abc import Callable, Sequence

MOST_BYTES = 64 << 10
"""Of a mutated text: what grows faster than its input shows below that, and a case stays quick."""
_NUMBER = re.compile(rb"[0-9]+(?:\.[0-9]+)?")
_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
NUMBERS = (
    b"0", b"-1", b"1", b"2147483648", b"18446744073709551616", b"9" * 30, b"9" * 5000, b"1e999", b"-1e999", b"nan",
    b"inf", b"1e-400", b"0x" + b"f" * 40, b"0.1.2", b"1_0", "٣".encode(), "²".encode(), b"00", b"+5", b"1, 000, ",
)  # fmt: skip
"""Written in the place of a number: the ends of the types, beyond them, and what only looks like one."""
TOKENS = (
    b"\0", b"\0" * 4096, b"\r", b"\r\n", b"\n\n", b"\t", b" " * 300, b"\x1b[31m", b"\x1b[", b"\xff\xfe",
    b"\xef\xbb\xbf", b"\xc3", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\xc2\x85", b"\xc2\xa0", b"\x0b", b"\x0c", b"\x1c",
    b'"', b"'", b"\\", b"\\u0000", b"\\ud800", b"<", b">", b"&amp;", b"&#0;", b"&#xD800;", b"<!--", b"<![CDATA[",
    b"<!ENTITY a 'b'>", b"[", b"]", b"[" * 200, b"{" * 200, b"{", b"}", b"(", b")", b":", b"=", b",", b"-", b"/",
    b"*", b"&a ", b"*a ", b"<<: *a", b"? ", b"!!python/object:os.system ", b"%", b"#", b"@", b"null", b"true", b"NaN",
    b"N/A", b"../../etc/passwd", b"a" * 5000, b"NCCL INFO ", b" [0] ", b"-> ",
)  # fmt: skip
"""Written anywhere: ends of lines, ends of types of brackets, escapes, marks of other formats."""

Mutation = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def mutated(chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds, changed in one to five ways; at most MOST_BYTES."""
    data = chance.choice(seeds)
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5))):
        data = chance.choice(MUTATIONS)(chance, data, seeds)[:MOST_BYTES]
    return data


def _place(chance: random.Random, data: bytes) -> int:
    return chance.randrange(len(data) + 1)


def _range(chance: random.Random, data: bytes) -> tuple[int, int]:
    first = _place(chance, data)
    return first, min(len(data), first + chance.choice((1, 2, 8, 64, 1024)))


def flip_bits(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """Single bits, as a bad disk has them."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 4, 16)) if made else 0):
        made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
    return bytes(made)


def random_bytes(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """Some bytes in the place of others."""
    first, last = _range(chance, data)
    return data[:first] + chance.randbytes(chance.choice((1, 4, 32))) + data[last:]


def cut(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """The beginning or the end alone, as an interrupted copy leaves it."""
    at = _place(chance, data)
    return data[:at] if chance.random() < 0.7 else data[at:]


def remove(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    first, last = _range(chance, data)
    return data[:first] + data[last:]


def repeat(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """A part many times: what costs the square of its length shows."""
    first, last = _range(chance, data)
    return data[:last] + data[first:last] * chance.choice((1, 2, 16, 256, 4096)) + data[last:]


def number(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """Another number in the place of one."""
    return _replaced(chance, data, _NUMBER, chance.choice(NUMBERS))


def word(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """A word of one of the seeds in the place of another word."""
    others = _WORD.findall(chance.choice(seeds))
    return _replaced(chance, data, _WORD, chance.choice(others) if others else b"")


def token(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    at = _place(chance, data)
    return data[:at] + chance.choice(TOKENS) + data[at:]


def lines(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """Lines that are gone, twice there, elsewhere, or of another seed."""
    made = data.split(b"\n")
    at, other = chance.randrange(len(made)), chance.randrange(len(made))
    match chance.randrange(5):
        case 0:
            del made[at : at + chance.choice((1, 1, 4))]
        case 1:
            made[at:at] = [made[other]] * chance.choice((1, 1, 8, 512))
        case 2:
            made[at], made[other] = made[other], made[at]
        case 3:
            made[at:at] = [chance.choice(chance.choice(seeds).split(b"\n"))]
        case _:
            made[at : at + 2] = [b"".join(made[at : at + 2])]
    return b"\n".join(made)


def splice(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """The beginning of one text and the end of another one."""
    other = chance.choice(seeds)
    return data[: _place(chance, data)] + other[_place(chance, other) :]


def _replaced(chance: random.Random, data: bytes, pattern: re.Pattern[bytes], new: bytes) -> bytes:
    places = [match.span() for match in pattern.finditer(data)]
    if not places:
        return data
    first, last = chance.choice(places)
    return data[:first] + new + data[last:]


MUTATIONS: tuple[Mutation, ...] = (
    flip_bits, random_bytes, cut, remove, repeat, number, number, number, word, token, token, lines, lines, splice,
)  # fmt: skip
