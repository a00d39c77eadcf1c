"""Numbers out of a log, bounded: a damaged log can hold any digits. -1 or NaN stands for what is no number."""

from __future__ import annotations

import re
from math import nan

from topodiag.lazy import regex
from topodiag.words.units import read_number


def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern whose digits, words and blanks are those of ASCII, as in the bytes of a log."""
    return regex(pattern, re.ASCII)


def _whole(text: str | None, most: int, base: int = 10) -> int:
    """The number that a text of at most so many characters writes, -1 for what is none."""
    if not text or len(text) > most:
        return -1
    try:
        return int(text, base)
    except ValueError:
        return -1


def i8(digits: str | None) -> int:
    value = _whole(digits, 19)
    return value if -128 <= value < 128 else -1


def i32(digits: str | None) -> int:
    value = _whole(digits, 19)
    return value if -(1 << 31) <= value < 1 << 31 else -1


def i64(digits: str | None) -> int:
    value = _whole(digits, 19)
    return value if -(1 << 63) <= value < 1 << 63 else -1


def u64_hex(digits: str | None) -> int:
    """A pointer or hash, with or without 0x; 0 for `(nil)` and whatever else is none."""
    bare = digits[2:] if digits and digits[:2] in ("0x", "0X") else digits
    return max(_whole(bare, 16, 16), 0)


def bus(digits: str | None) -> int:
    """NCCL's packed bus id, printed as hex."""
    return max(_whole(digits, 15, 16), -1)


def device(digits: str | None) -> int:
    """What stands in the brackets of a connection: the packed bus id in hex before 2.18, the NVML index since.

    A packed bus id ends with the function, 0 on every GPU, and is four digits long from bus 1 up. Of two or three
    digits, on bus 0, it ends with 0 as well; an index of 10 is the only one in use that also does.
    """
    if not digits:
        return -1
    if len(digits) >= 4 or not digits.isdigit() or (len(digits) >= 2 and digits[-1] == "0" and digits != "10"):
        return bus(digits)
    return i64(digits)


def seconds(digits: str | None) -> float:
    value = read_number(digits or "")
    return value if value is not None else nan
