"""What a line says or names beside its kind, by the rows of facts.toml: checks ask for these facts and read no text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache

from topodiag.lazy import regex
from topodiag.words.own_data import own_data

_ERRORS = ""
"""For the kind of the rows that errors and ends are searched for."""


_Row = tuple[str, tuple[str, ...], re.Pattern[str]]


def _rows() -> Mapping[str, Sequence[_Row]]:
    """By kind of line, the names of facts with words, one of which a line holds, and patterns."""
    rows = defaultdict(list)
    for row in own_data("evidence/nccl_log/grammar/facts")["fact"]:
        pattern = regex(row["pattern"])
        for kind in row.get("kinds", [_ERRORS]):
            rows[kind].append((row.get("name", ""), tuple(row.get("has", [""])), pattern))
    return rows


_ROWS = _rows()


@lru_cache(maxsize=65536)
def facts_of(text: str, kind: str = _ERRORS) -> Mapping[str, str]:
    """The facts of a line of this kind, `1` for those that it says and does not name; of an error without a kind."""
    facts: dict[str, str] = {}
    for name, words, pattern in _ROWS.get(kind, ()):
        if any(map(text.__contains__, words)) and (match := pattern.search(text)) is not None:
            facts |= {group: value for group, value in match.groupdict().items() if value}
            if name:
                facts[name] = "1"
    return facts
