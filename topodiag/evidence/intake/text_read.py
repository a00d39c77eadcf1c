"""What one source made of one text."""

from __future__ import annotations

from dataclasses import field

from topodiag.evidence.draft import NodeDraft
from topodiag.lazy import dataclass
from topodiag.model.finding import Input
from topodiag.model.result import UnreadLine
from topodiag.model.topics import Topic


@dataclass(frozen=True, slots=True)
class TextRead:
    """What it offers, and the account of it. `spoke`: it is evidence of its kind."""

    part: NodeDraft
    item: Input
    unread: tuple[UnreadLine, ...] = ()
    told: frozenset[Topic] = field(default=frozenset())
    spoke: bool = False
