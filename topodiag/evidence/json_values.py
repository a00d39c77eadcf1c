"""JSON that the collector wrote, read with bounds: values of another type than expected are no readings."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from topodiag.evidence.interface import Blob, Parsed

MAX_BYTES = 32_000_000
"""A rack-scale node with 72 GPUs writes about 1 MB."""
MAX_INT_DIGITS = 20
MAX_TEXT = 400


def opens_list(text: str) -> bool:
    """Whether a text is a list of objects, as `ip -j` prints, and no shell's prompt: `[root@node7 ~]# ip link`."""
    first, second = text.lstrip()[:1], text.lstrip()[1:1000].lstrip()[:1]
    return first == "[" and second in ("{", "]", "")


def load(blob: Blob, most: int = MAX_BYTES) -> tuple[Any, str]:
    """The document, or None and why there is none. Numbers beyond 64 bits and NaN become null."""
    if len(blob.data) > most:
        return None, "larger than any collector writes"
    return decoded(blob.written)


def document_of(blob: Blob, parsed: Parsed[Any]) -> Any:
    """The document, or None where there is none; why is left with what could not be read."""
    document, why = load(blob)
    if why:
        parsed.leave(blob, None, "", why)
    return document


def decoded(text: str) -> tuple[Any, str]:
    """The same of a text of any size."""
    try:
        return json.loads(text, parse_int=_int, parse_float=_float, parse_constant=lambda _: None, strict=False), ""
    except ValueError as error:
        return None, f"not JSON: {error}"[:120]
    except RecursionError:
        return None, "nested too deeply"


def _int(digits: str) -> int | None:
    return int(digits) if len(digits) <= MAX_INT_DIGITS else None


def _float(digits: str) -> float | None:
    value = float(digits[:400])
    return value if math.isfinite(value) else None


def integer(value: object, low: int = 0, high: int = 2**64 - 1) -> int | None:
    """A whole number within bounds, or None; a whole float counts, a truth value does not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if low <= value <= high else None


def number(value: object, high: float, low: float = 0.0) -> float | None:
    """A number within bounds, or None; a truth value is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if low <= value <= high else None


def text(value: object) -> str | None:
    """A text that is not blank, cut to a sane length, or None."""
    return (value.strip()[:MAX_TEXT] or None) if isinstance(value, str) else None


def error_of(value: object) -> str | None:
    """The error's name where a call failed (`{"error": "NotSupported"}`), else None."""
    return text(value.get("error")) if isinstance(value, dict) else None


def objects(value: object, limit: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a list with their places; what is no object is passed over."""
    if isinstance(value, list):
        for place, item in enumerate(value[:limit]):
            if isinstance(item, dict):
                yield place, item


def member(value: object, name: str) -> Any:
    """A member of an object; None when it has none or is no object. The error of a failed call is passed down."""
    if not isinstance(value, dict):
        return None
    return value if name not in value and "error" in value else value.get(name)


def shown(value: object) -> str:
    """A value as JSON on one short line, for quoting."""
    if type(value) is int:  # most values, and the encoder is slow to start
        return str(value)[:120] if -(10**18) < value < 10**18 else json.dumps(value)[:120]
    return json.dumps(value)[:120] if isinstance(value, str | int | float | list | dict | None) else ""


def line_of(text: str, word: str) -> int:
    """The line of a text on which a string of its JSON stands first; 1 where none does."""
    return text.count("\n", 0, max(0, text.find(f'"{word}"'))) + 1
