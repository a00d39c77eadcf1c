"""Lines that name a fault and report none: denied, supposed, advised, counted as zero, quoted as text.

One module for all entries. `denies` looks at the words around a match; an entry whose fixed sentence holds one of these
words itself says `denied = false`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from topodiag.lazy import regex
from topodiag.model.events import Value
from topodiag.words.own_data import own_data

REACH = 120
"""Characters before and behind the match that belong to its clause at most."""
_LIKE = {
    name: regex("|".join(patterns), re.IGNORECASE if name in ("before", "behind") else 0)
    for name, patterns in own_data("evidence/signatures/denial").items()
}


def warns(line: str, start: int) -> bool:
    """Whether the words that begin at `start` stand in a warning of Python's, which ends no program."""
    return _LIKE["warned"].search(line, 0, start) is not None


def explains(line: str, start: int) -> bool:
    """Whether a line explains the message that begins at `start`, and does not report it. Asked for every entry."""
    return _LIKE["explained"].search(line) is not None or _LIKE["quoted"].search(line[:start]) is not None


def denies(line: str, start: int, end: int) -> bool:
    """Whether the words before or behind a match (its span on the line) say that nothing happened, or only what may."""
    before = line[max(0, start - REACH) : start]
    ends = [clause.end() for clause in _LIKE["clause_end"].finditer(before)]
    before = before[ends[-1] :] if ends else before
    return _LIKE["before"].search(before) is not None or _LIKE["behind"].search(line[end : end + REACH]) is not None


def counts_none(fields: Mapping[str, Value]) -> bool:
    """Whether the sentence counts errors or devices, and counts zero of them."""
    return fields.get("count") == 0 and "expected" not in fields
