"""Sources whose texts report faults of a node and nothing else, and the event that a reader of a format makes."""

from __future__ import annotations

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import Blob, Parsed, Source
from topodiag.model.events import Event, Trust


def report(
    kind: str, text: str, blob: Blob, number: int, line: str, *, trust: Trust = Trust.AGENT, host: str = ""
) -> Event:
    """What the reader of a format concludes from a line, as an event of the node."""
    return Event(kind, blob.name, text, blob.origin(number, line), trust=trust, host=host)


class Reporting(Source[Event]):
    """A source whose records are reports of the node."""

    def fill(self, blob: Blob, parsed: Parsed[Event], draft: NodeDraft) -> None:
        draft.reports.extend(parsed.records)
