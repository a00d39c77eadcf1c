"""How deep the suite goes: the whole corpora and many examples of a property with TOPODIAG_TESTS=deep, else a sample.

A sample takes the same cases in every run, and each value of what is asked (each version, each kind) at least once.
"""

import os
from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

DEEP = os.environ.get("TOPODIAG_TESTS") == "deep"
EXAMPLES = 500 if DEEP else 15
"""Examples of a property whose test does not say how many."""

Value = TypeVar("Value")


def some_of(values: Sequence[Value], name: str, share: int = 3, *, always: bool = False) -> tuple[Value, ...]:
    """Of the values that could be asked of the case `name` every `share`-th, at least one; all where the case is
    always asked whole, and in a deep run. Names that differ begin elsewhere."""
    if DEEP or always:
        return tuple(values)
    return tuple(values[crc32(name.encode()) % min(share, len(values) or 1) :: share])
