"""The fields that a sentence may name, with their types. A field that does not parse costs the field, not the event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from topodiag.model.busid import normalise_bus_id
from topodiag.model.events import NO_FIELDS, Value

MAX_TEXT = 300
"""Characters that are kept of a field of text."""
MAX_LIST = 2000
"""The same of a list of ranks, and of the call of a rank with the shapes of its tensors."""


def _integer(text: str) -> int | None:
    digits = text.strip().replace(",", "")
    if len(digits) > 19:
        return None
    try:
        return int(digits, 16 if digits[:2].lower() == "0x" else 10)
    except ValueError:
        return None


def _decimal(text: str) -> float | None:
    try:
        return float(text.strip().replace(",", "")[:40])
    except ValueError:
        return None


def _text(text: str, most: int = MAX_TEXT) -> str | None:
    return text.strip()[:most] or None


FIELDS: Mapping[str, Callable[[str], Value | None]] = {
    "bus_id": normalise_bus_id,
    "seconds": _decimal,
    **dict.fromkeys(("gpu", "port", "rank", "local_rank", "pid", "code", "count", "expected", "sequence"), _integer),
    **dict.fromkeys(("ranks", "value"), partial(_text, most=MAX_LIST)),
    **dict.fromkeys(("nic", "host", "peer", "address", "reason", "collective", "size", "path"), _text),
    **dict.fromkeys(("variable", "version", "module", "name"), _text),
}
"""Seconds are seconds; `size` and `value` stay as they are written."""


def typed(groups: Mapping[str, str | None]) -> Mapping[str, Value]:
    """The named groups of a match as values of their types."""
    if not groups:
        return NO_FIELDS
    values = {
        name: value for name, text in groups.items() if text is not None and (value := FIELDS[name](text)) is not None
    }
    return values or NO_FIELDS
