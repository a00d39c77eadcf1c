"""What sources made of a text, kept for the next node that has the same one: siblings share most of theirs.

Reading is a function of the source, the text and what the manifest says of it, so that the answer is the same as of
reading anew. Of texts that differ in identities alone the reading of one serves for the others (siblings.py). What one
node alone has is not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from typing import Any

from topodiag.evidence.intake.siblings import Likeness, Template, TextRead, likeness_of, template_of
from topodiag.evidence.interface import Blob, Item, Source
from topodiag.lazy import dataclass

MOST_TEXTS = 1024
"""Texts that are remembered, those of the last dozens of nodes."""
MOST_BYTES = 1 << 20
"""Larger texts are logs, which no two nodes share."""


Said = tuple[Any, ...]
said_of = attrgetter(*(each.name for each in fields(Item) if each.name != "duration_s"))
"""All that the manifest says of an item, but for how long it took."""


@dataclass(slots=True)
class _Same:
    """The place of a text: what was made of it is kept once a second node has it."""

    met: bool = False
    made: TextRead | None = None


@dataclass(slots=True)
class _Alike:
    """The place of texts that differ in identities alone. The second is kept, and must foretell the third."""

    met: bool = False
    second: tuple[TextRead, Likeness] | None = None
    template: Template | None = None
    refused: bool = False


def read_once(source: Source[Any], blob: Blob, digest: str, host: str, read: Callable[[], TextRead]) -> TextRead:
    """What `read` makes of a text, by reading it or by what is known. `digest` is the sha256 of its bytes, `host` the
    node's name in it, "" where that is not known."""
    if len(blob.data) > MOST_BYTES:
        return read()
    item = said_of(blob.item) if blob.item is not None else None
    same = _same(source, blob.name, digest, item, blob.sample)
    if same.made is not None:
        return same.made
    likeness = likeness_of(blob.data, host)
    if likeness is None:
        made = read()
    else:
        made = _by_likeness(_alike(source, blob.name, likeness.shared, item, blob.sample), likeness, digest, read)
    if same.met:
        made.part.keep()
        same.made = made
    same.met = True
    return made


def _by_likeness(alike: _Alike, likeness: Likeness, digest: str, read: Callable[[], TextRead]) -> TextRead:
    if alike.template is not None:
        return alike.template.of_sibling(likeness, digest)
    made = read()
    if alike.second is not None and alike.second[1].is_of_another(likeness):
        first, old = alike.second
        alike.second = None
        alike.template = template_of(first, old, made, likeness)
        alike.refused = alike.template is None
        if alike.template is not None:
            first.part.keep()
    elif alike.met and not alike.refused and alike.second is None:
        alike.second = made, likeness
    alike.met = True
    return made


@lru_cache(maxsize=MOST_TEXTS)
def _same(source: Source[Any], name: str, digest: str, item: Said | None, sample: int) -> _Same:
    return _Same()


@lru_cache(maxsize=MOST_TEXTS)
def _alike(source: Source[Any], name: str, shared: str, item: Said | None, sample: int) -> _Alike:
    return _Alike()
