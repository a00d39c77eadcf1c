"""Every source by its kind: those of `sources.toml`, in the order in which bare text is tried."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from topodiag.evidence.heads import possible
from topodiag.evidence.interface import Source
from topodiag.model.topics import Topic
from topodiag.words.own_data import own_data

_LISTED: Mapping[str, Mapping[str, Any]] = own_data("evidence/sources")
SOURCES: Mapping[str, Mapping[str, Any]] = {kind: row for kind, row in _LISTED.items() if "same" not in row}
"""By kind, what `sources.toml` says of each source."""
ASKED_LAST = "table"
"""Asked of a text that no other reader of anything takes: every tool prints tables."""

HEAD_CHARS = 65536
BY_LINE = ("kernel-log",)
"""Sources whose lines speak for themselves, so that they are looked for in all of a text."""


def kinds() -> tuple[str, ...]:
    return tuple(SOURCES)


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
    held = possible(text.encode("utf-8", "replace"))
    return tuple(
        kind
        for kind in SOURCES
        if kind != ASKED_LAST
        and (kind in held or "heads" not in SOURCES[kind])
        and (reader := source(kind)) is not None
        and reader.recognises(text if kind in BY_LINE else head)
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
