"""Sentences of the catalogue in a text that nobody captured as a format: reports of the node."""

from __future__ import annotations

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.evidence.signatures import engine
from topodiag.model.events import Event, Scope

OF_A_NODE = frozenset({Scope.NODE, Scope.DEVICE})


class SentenceSource(Source):
    """What programs, agents and persons report of a node or a device of it. It answers for nothing that is not said."""

    def recognises(self, head: str) -> bool:
        return speaks(head.encode("utf-8", "replace"))

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[Event]:
        command = blob.item.command if blob.item is not None else ""
        events = _events(blob.text.encode("utf-8", "replace"), blob.name, command)
        draft.reports += events
        return Parsed(events)


def speaks(data: bytes) -> bool:
    """Whether a text reports anything of a node."""
    return engine.finder_of(*engine.families_of_nodes()).any(data) and bool(_events(data))


def _events(data: bytes, name: str = "", command: str = "") -> list[Event]:
    events = engine.read([data], name, command, *engine.families_of_nodes()).events
    return [event for event in events if event.scope in OF_A_NODE]
