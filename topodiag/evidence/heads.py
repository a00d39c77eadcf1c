"""Heads of the formats: what shows of which kind a text is (`heads.toml`), and which sources may read it.

A text that holds none of a source's literals (`sources.toml`) is none of its texts, and the source is not loaded:
asking costs one pass over the bytes and no import.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache

from topodiag.evidence.kinds import Kind
from topodiag.evidence.signatures.literals import Finder
from topodiag.lazy import dataclass, regex
from topodiag.words.own_data import own_data

_SOURCES = own_data("evidence/sources")
IN_FRONT = frozenset(kind for kind, source in _SOURCES.items() if source.get("front"))
"""Sources that are asked of the front of a text alone."""
_KINDS: dict[bytes, set[str]] = defaultdict(set)
"""By literal, the sources whose texts hold it."""
for _kind, _source in _SOURCES.items():
    for _literal in _source.get("heads", ()):
        _KINDS[_literal.encode()].add(_kind)
_FINDER = Finder(tuple(_KINDS), once=True)


def possible(text: bytes) -> frozenset[str]:
    """The kinds of sources of which a literal stands in the text."""
    return frozenset[str]().union(*(_KINDS[_FINDER.literals[number]] for _, number in _FINDER.hits(text)))


@dataclass(frozen=True, slots=True)
class Head:
    """An entry of `heads.toml`."""

    kind: Kind
    pattern: re.Pattern[bytes]
    holds: tuple[bytes, ...] = ()
    anywhere: bool = False

    def shows_in(self, text: bytes) -> bool:
        """Whether a text begins so, or holds such a line."""
        if not self.holds:
            return self.pattern.match(text) is not None
        return not held(text).isdisjoint(self.holds) and self.pattern.search(text) is not None


HEADS: dict[str, Head] = {
    name: Head(
        Kind(row["kind"]),
        regex(row["pattern"].encode(), re.M),
        tuple(literal.encode() for literal in row.get("holds", ())),
        row.get("anywhere", False),
    )
    for name, row in own_data("evidence/heads").items()
}
RECORDS = (b"NCCL ", b"] INFO ", b"atchdog caught", b"ProcessGroupNCCL", b"Error 802")
"""One of these stands in each line of NCCL, or of torch about NCCL."""
_MARKS = Finder(
    tuple(dict.fromkeys((*RECORDS, *(literal for head in HEADS.values() for literal in head.holds)))), once=True
)


@lru_cache(4)
def held(text: bytes) -> frozenset[bytes]:
    """Which literals of the heads, and of RECORDS, stand in a text, which is asked for each of them in turn."""
    return frozenset(_MARKS.literals[number] for _, number in _MARKS.hits(text))


def line_kinds(text: bytes, *, anywhere: bool = False) -> Iterator[Kind]:
    """The kinds that a line of a text shows; with `anywhere` those alone that a text of another kind may hold."""
    for head in HEADS.values():
        if head.holds and (head.anywhere or not anywhere) and head.shows_in(text):
            yield head.kind
