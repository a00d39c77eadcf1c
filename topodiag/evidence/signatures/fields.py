"""The fields that a sentence may name, with their types. A field that does not parse costs the field, not the event."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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


def _text(text: str) -> str | None:
    return text.strip()[:MAX_TEXT] or None


def _list(text: str) -> str | None:
    return text.strip()[:MAX_LIST] or None


FIELDS: Mapping[str, Callable[[str], Value | None]] = {
    "gpu": _integer,
    "bus_id": normalise_bus_id,
    "nic": _text,
    "port": _integer,
    "rank": _integer,
    "ranks": _list,
    "host": _text,
    "pid": _integer,
    "peer": _text,
    "address": _text,
    "code": _integer,
    "reason": _text,
    "count": _integer,
    "expected": _integer,
    "seconds": _decimal,
    "collective": _text,
    "sequence": _integer,
    "size": _text,
    "path": _text,
    "variable": _text,
    "value": _list,
    "version": _text,
    "module": _text,
    "name": _text,
    "local_rank": _integer,
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
