"""The words of a text as the table knows them, each by itself and with the next of its line: `no route` says what
neither of its words does.

Numbers of up to three digits stay what they are (an Xid, a CUDA error), what differs from machine to machine becomes
one word for all: pointers, bus ids and times of day, addresses, long numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

STOOD_IN = frozenset({"hex", "bus", "ip", "big"})
"""Words that stand for what differs from machine to machine."""
PAIR = " "
"""Stands between the two words of a pair."""
_TOKEN = re.compile(
    r"(?P<hex>0x[0-9a-f]{1,32})"
    r"|(?P<bus>(?<![0-9a-z])[0-9a-f]{2,4}(?::[0-9a-f]{2}){1,16}(?:\.\d)?)"
    r"|(?P<ip>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?::\d{1,5})?)"
    r"|(?P<big>(?<![a-z_])\d{4,40}(?:\.\d{1,20})?)"
    r"|[a-z]{1,40}|\d{1,40}",
    re.ASCII,
)


def tokens(text: str) -> Iterator[str]:
    """The words in their order, each followed by its pair with the one before it in its line: `mlx5_0: error` gives
    mlx, 5, mlx 5, 0, 5 0, error, 0 error."""
    for line in text.lower().splitlines():
        before = ""
        for met in _TOKEN.finditer(line):
            word = met.lastgroup or met[0]
            yield word
            if before:
                yield f"{before}{PAIR}{word}"
            before = word


__all__ = ["PAIR", "STOOD_IN", "tokens"]
