"""What a source makes of a captured text, read once in a process: tests read captures that differ in a file or two.

A text is read into a draft of its own, which is kept; each node takes what that draft has. Keys are the contents, the
manifest's word on them and the reader itself, so that one that a test replaces is asked. Held to the program's own
reading by test_read_once.py.
"""

from functools import lru_cache
from typing import Any

from topodiag.evidence.draft import Entity, NodeDraft
from topodiag.evidence.intake import reader
from topodiag.evidence.interface import Blob, Source
from topodiag.model.finding import Input
from topodiag.model.result import UnreadLine

Account = tuple[Input, tuple[UnreadLine, ...]]
KEPT = 6000
"""Texts: those of a hundred nodes."""
_LISTS = ("events", "reports", "tables", "processes", "settings", "conf_lines", "acs_lines", "missing")
plainly = reader._read_with


def use() -> None:
    """In this process, from now on."""
    setattr(reader, "_read_with", read_with)  # noqa: B010 - untyped


def read_with(source: Source, blob: Blob, draft: NodeDraft, digest: str) -> Account:
    """As `reader._read_with`; a text that nobody captured is read as ever, as is one whose reading fails."""
    if blob.item is None:
        return plainly(source, blob, draft, digest)
    own, account = _read(source, source.read, blob, digest)
    draft.weight.trust, draft.weight.sample = source.trust, blob.sample
    _take(own, draft)
    return account


@lru_cache(KEPT)
def _read(source: Source, _: Any, blob: Blob, digest: str) -> tuple[NodeDraft, Account]:
    own = NodeDraft()
    return own, plainly(source, blob, own, digest)


def _take(own: NodeDraft, draft: NodeDraft) -> None:
    """All that one draft was offered, in its order, to another; offers never change, and are shared."""
    same = {}
    for kind, entity in own.singles.items():
        same[entity] = draft.single(kind)
    for kind, entity in own.all_entities():
        same[entity] = draft._find(kind, entity.keys)
    for entity, other in same.items():
        _give(entity, other)
    for pair in own.pairs:
        draft.pairs.append(type(pair)(pair.table, same[pair.a.root], same[pair.b.root], pair.offer))
    for name in _LISTS:
        getattr(draft, name).extend(getattr(own, name))
    draft.nccl_file = draft.nccl_file or own.nccl_file
    draft.read |= own.read
    draft.topics |= own.topics
    draft.makers |= own.makers
    draft.only_loads |= own.only_loads


def _give(entity: Entity, other: Entity) -> None:
    for mine, theirs in ((entity.offers, other.offers), (entity.counters, other.counters)):
        for name, offers in mine.items():
            theirs.setdefault(name, []).extend(offers)
    for place, child in entity.children.items():
        _give(child, other.child(*place))
