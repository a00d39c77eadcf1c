"""Numbers as NCCL reads them out of attributes: C's strtol and strtof, 32-bit integers, single precision.

Every result is bounded, whatever the text: C clamps and wraps, so does this.
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from itertools import takewhile
from string import hexdigits

from topodiag.lazy import regex

_HEX = regex(r"[ \t\n\v\f\r]*([+-]?)(?:0[xX])?([0-9a-fA-F]*)")
_ANY = regex(r"[ \t\n\v\f\r]*([+-]?)(0[xX][0-9a-fA-F]+|[0-9]+)")
_FLOAT = regex(r"[ \t\n\v\f\r]*([+-]?[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]{1,4})?)")
_LONG = 1 << 63
_DIGITS = 24
"""More significant digits than any 64-bit number has, in any base."""
_GREATEST = 3.4028234663852886e38
_SINGLE = struct.Struct("f")


def _clamped(digits: str, base: int, most: int) -> int:
    digits = digits.lstrip("0")
    return most if len(digits) > _DIGITS else min(int(digits or "0", base), most)


def _signed(sign: str, digits: str, base: int) -> int:
    return -_clamped(digits, base, _LONG) if sign == "-" else _clamped(digits, base, _LONG - 1)


def c_long(text: str) -> int:
    """strtol(text, NULL, 0): a leading 0x is hexadecimal, a leading 0 octal, anything else after it is ignored."""
    match = _ANY.match(text)
    if not match:
        return 0
    sign, digits = match[1], match[2]
    if digits[1:2] in ("x", "X"):
        return _signed(sign, digits[2:], 16)
    if digits[0] == "0":
        octal = re.match(r"[0-7]*", digits)
        return _signed(sign, octal[0] if octal else "", 8)
    return _signed(sign, digits, 10)


def wrap32(value: int) -> int:
    """A value as a 32-bit int keeps it."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def c_int(text: str) -> int:
    """An attribute as xmlGetAttrInt reads it (src/graph/xml.h)."""
    return wrap32(c_long(text))


def c_hex(text: str) -> int:
    """strtoull(text, NULL, 16), as guid and host_hash are read: 64 bits, unsigned."""
    match = _HEX.match(text)
    if not match:
        return 0
    value = _clamped(match[2], 16, (1 << 64) - 1)
    return (-value if match[1] == "-" else value) % (1 << 64)


def bus_id(text: str) -> int:
    """`0000:1b:00.0` as NCCL packs it (busIdToInt64, src/misc/utils.cc): at most 16 hex digits, no `:` and `.`."""
    digits = "".join(takewhile(hexdigits.__contains__, text.replace(":", "").replace(".", "")))[:16]
    return min(_LONG - 1, int(digits, 16)) if digits else 0


def spell_bus_id(number: int) -> str:
    """A packed bus id as text (int64ToBusId, src/misc/utils.cc): domain, bus, device, function: 20 bits up, 8, 8, 4."""
    return f"{number >> 20:04x}:{number >> 12 & 0xFF:02x}:{number >> 4 & 0xFF:02x}.{number & 0xF:x}"


@lru_cache(maxsize=4096)
def single(value: float) -> float:
    """A number rounded to single precision, in which NCCL keeps every bandwidth."""
    if not -_GREATEST <= value <= _GREATEST:
        return _GREATEST if value > 0 else -_GREATEST if value < 0 else 0.0
    rounded: float = _SINGLE.unpack(_SINGLE.pack(value))[0]
    return rounded


def c_float(text: str) -> float:
    """strtof(text, NULL) in single precision; 0 for what is no plain number."""
    match = _FLOAT.match(text)
    try:
        return single(float(match[1])) if match else 0.0
    except ValueError:
        return 0.0


def power_of_two(value: int) -> int:
    """The least power of two that is not less."""
    return 1 << max(0, value - 1).bit_length()
