"""The event that a reader of a format makes."""

from __future__ import annotations

from topodiag.evidence.interface import Blob
from topodiag.model.events import Event, Trust


def report(
    kind: str, text: str, blob: Blob, number: int, line: str, *, trust: Trust = Trust.AGENT, host: str = ""
) -> Event:
    """What the reader of a format concludes from a line, as an event of the node."""
    return Event(kind, blob.name, text, blob.origin(number, line), trust=trust, host=host)
