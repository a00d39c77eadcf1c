"""What sources made of a text, kept for the next node that has the same one: siblings share most of theirs.

Reading is a function of the source, the text and what the manifest says of it, so that the answer is the same as of
reading anew. What one node alone has is not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Item, Source
from topodiag.model.finding import Input
from topodiag.model.result import UnreadLine
from topodiag.model.topics import Topic

MOST_TEXTS = 1024
"""Texts that are remembered, those of the last dozens of nodes."""
MOST_BYTES = 1 << 20
"""Larger texts are logs, which no two nodes share."""


@dataclass(frozen=True, slots=True)
class TextRead:
    """What one source made of one text: what it offers, and the account of it. `spoke`: it is evidence of its kind."""

    part: NodeDraft
    item: Input
    unread: tuple[UnreadLine, ...] = ()
    told: frozenset[Topic] = field(default=frozenset())
    spoke: bool = False


@dataclass(slots=True)
class _Place:
    """Where what was made of a text is kept, once a second node has it."""

    met: bool = False
    made: TextRead | None = None


def read_once(source: Source[Any], blob: Blob, digest: str, read: Callable[[], TextRead]) -> TextRead:
    """What `read` makes of a text, or what it made of the same one before. `digest` is the sha256 of its bytes."""
    if len(blob.data) > MOST_BYTES:
        return read()
    item = replace(blob.item, duration_s=0.0) if blob.item is not None else None
    place = _place(source, blob.name, digest, item, blob.sample)
    if place.made is not None:
        return place.made
    made = read()
    if place.met:
        made.part.keep()
        place.made = made
    place.met = True
    return made


@lru_cache(maxsize=MOST_TEXTS)
def _place(source: Source[Any], name: str, digest: str, item: Item | None, sample: int) -> _Place:
    return _Place()
