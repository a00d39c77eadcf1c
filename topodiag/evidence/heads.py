"""Literals of the formats: a text that holds none of a source's is none of its texts, and the source is not loaded.

They stand apart from the sources, in `sources.toml`, so that asking costs one pass over the bytes and no import.
"""

from __future__ import annotations

from functools import cache

from topodiag.evidence.signatures.literals import Finder, finder
from topodiag.words.own_data import own_data

_SOURCES = own_data("evidence/sources")
IN_FRONT = frozenset(kind for kind, source in _SOURCES.items() if source.get("front"))
"""Sources that are asked of the front of a text alone."""
_LITERALS = tuple(dict.fromkeys(literal for source in _SOURCES.values() for literal in source.get("heads", ())))


@cache
def _finder() -> Finder:
    return finder([literal.encode() for literal in _LITERALS], once=True)


@cache
def _kinds_of() -> tuple[frozenset[str], ...]:
    return tuple(
        frozenset(kind for kind, source in _SOURCES.items() if literal in source.get("heads", ()))
        for literal in _LITERALS
    )


def possible(text: bytes) -> frozenset[str]:
    """The kinds of sources of which a literal stands in the text."""
    texts: set[str] = set()
    for _, number in _finder().hits(text):
        texts |= _kinds_of()[number]
    return frozenset(texts)
