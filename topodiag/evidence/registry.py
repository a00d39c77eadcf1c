"""Every source by its kind: those of `sources.toml`, in the order in which bare text is tried.

Heads of the formats: what shows of which kind a text is (`heads.toml`), and which sources may read it. A text that
holds none of a source's literals (`sources.toml`) is none of its texts, and the source is not loaded: asking costs one
pass over the bytes and no import.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from topodiag.evidence.interface import Source
from topodiag.evidence.kinds import Kind
from topodiag.evidence.signatures.literals import Finder
from topodiag.lazy import dataclass, regex
from topodiag.model.provenance import Topic
from topodiag.words.own_data import own_data
from topodiag.words.units import grouped

_LISTED: Mapping[str, Mapping[str, Any]] = own_data("evidence/sources")
IN_FRONT = frozenset(kind for kind, source in _LISTED.items() if source.get("front"))
"""Sources that are asked of the front of a text alone."""
_KINDS = grouped((literal.encode(), kind) for kind, source in _LISTED.items() for literal in source.get("heads", ()))
"""By literal, the sources whose texts hold it."""
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
    for head in HEADS.values() if text else ():
        if head.holds and (head.anywhere or not anywhere) and head.shows_in(text):
            yield head.kind


SOURCES: Mapping[str, Mapping[str, Any]] = {kind: row for kind, row in _LISTED.items() if "same" not in row}
"""By kind, what `sources.toml` says of each source."""
_WITHOUT_HEADS = frozenset(kind for kind, row in SOURCES.items() if "heads" not in row)
ASKED_LAST = "table"
"""Asked of a text that no other reader of anything takes: every tool prints tables."""

HEAD_CHARS = 65536
BY_LINE = ("kernel-log",)
"""Sources whose lines speak for themselves, so that they are looked for in all of a text."""


@cache
def source(kind: str) -> Source | None:
    """The source that reads this kind, or None when no source does."""
    kind = _read_as(kind)
    if kind not in SOURCES:
        return None
    place = SOURCES[kind]["reads"]
    module, _, name = place.partition(":")
    built = getattr(import_module(f"topodiag.evidence.{module}"), name)()
    if not isinstance(built, Source) or built.kind != kind:
        raise TypeError(f"{place} is registered as {kind} and is not that source")
    return built


def topics(kind: str) -> frozenset[Topic]:
    """What the source of this kind answers for, without loading it: asked of what is missing, too."""
    return frozenset(Topic[name] for name in SOURCES.get(_read_as(kind), {}).get("topics", ()))


def _read_as(kind: str) -> str:
    return str(_LISTED.get(kind, {}).get("same", kind))


def recognise(text: str) -> tuple[str, ...]:
    """The kinds of a text without a manifest, from its content: none, one, or several in a terminal transcript."""
    head = text[:HEAD_CHARS]
    asked = (possible(text.encode("utf-8", "replace")) | _WITHOUT_HEADS) - {ASKED_LAST}
    return tuple(
        kind
        for kind in in_order(asked)
        if (reader := source(kind)) is not None and reader.recognises(text if kind in BY_LINE else head)
    )


def recognise_bare(text: str) -> tuple[tuple[str, ...], str]:
    """The same, be it that a launcher put a prefix before all lines, and the text as its readers know it."""
    kinds = recognise(text)
    if kinds:
        return kinds, text
    from topodiag.evidence.signatures.wrappers import of_one_host  # noqa: PLC0415 - not for bundles, nor archives

    label, bare = of_one_host(text)
    return (recognise(bare), bare) if label else (kinds, text)


def in_order(sources: Collection[str]) -> tuple[str, ...]:
    return tuple(kind for kind in SOURCES if kind in sources)


def as_table(text: str) -> tuple[str, ...]:
    """The reader of tables, where a text has one. To be asked where all others were."""
    head = text[:HEAD_CHARS]
    reader = source(ASKED_LAST) if ASKED_LAST in possible(head.encode("utf-8", "replace")) else None
    return (ASKED_LAST,) if reader is not None and reader.recognises(head) else ()
