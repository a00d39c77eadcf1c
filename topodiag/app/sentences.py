"""The use case of `topodiag explain EVENT` and `explain --line`: entries of the catalogue of sentences."""

from __future__ import annotations

from topodiag.evidence.signatures.engine import LineMatch, Refused, verdicts
from topodiag.evidence.signatures.entry import Signature, catalogue


def entries(name: str) -> tuple[Signature, ...]:
    """The entries with this id, or all that say this event."""
    return tuple(entry for entry in catalogue() if name in (entry.id, entry.says))


__all__ = ["LineMatch", "Refused", "Signature", "entries", "verdicts"]
