"""Documents as JSON text: pure ASCII, so that any terminal encoding carries it, and never NaN or an infinity."""

from __future__ import annotations

import json
import math
from typing import Any, TextIO

import msgspec

from topodiag.report.documents.from_model import Document

RESULT_INDENT = 2
PAGE_INDENT = 1
"""Of documents that stand beside a page: a map or a tuning table has many short lines."""


def write_json(document: Document, stream: TextIO, indent: int = PAGE_INDENT) -> None:
    """The document as one object, with a line end."""
    json.dump(plain(document), stream, indent=indent, ensure_ascii=True, allow_nan=False)
    stream.write("\n")


def plain(document: Document) -> Document:
    """The document as dictionaries, lists and numbers that JSON has words for."""
    plain_values: Document = _finite(msgspec.to_builtins(document, str_keys=True, enc_hook=_number))
    return plain_values


def _finite(value: Any) -> Any:
    """The value with NaN and infinities, which JSON has no word for, as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def _number(value: Any) -> float | int | bool:
    """A number of numpy as Python's own."""
    number: float | int | bool = value.item()
    return number
