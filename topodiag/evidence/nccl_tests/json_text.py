"""JSON that was cut off, closed at the last whole value: nccl-tests writes as it goes, and a crash leaves it open."""

from __future__ import annotations

import json
import math
from typing import Any

from topodiag.lazy import regex

MAX_DEPTH = 64
MAX_DIGITS = 30

_TOKEN = regex(r'"(?:[^"\\\n]|\\.)*"|[\[\]{},]|[^"\[\]{},]+')


def load(text: str) -> tuple[Any, bool, str]:
    """The document, whether it had to be closed, and why there is none (None with a reason)."""
    value, why = _loads(text)
    if not why:
        return value, False, ""
    closed = _closed(text)
    if closed is None:
        return None, False, why
    value, still = _loads(closed)
    return (value, True, "") if not still else (None, False, why)


def _loads(text: str) -> tuple[Any, str]:
    try:
        return json.loads(text, parse_int=_int, parse_float=_float, parse_constant=lambda _: None, strict=False), ""
    except ValueError as error:
        return None, f"not JSON: {error}"[:120]
    except RecursionError:
        return None, "nested too deeply"


def _int(digits: str) -> int | None:
    return int(digits) if len(digits) <= MAX_DIGITS else None


def _float(digits: str) -> float | None:
    value = float(digits[:400])
    return value if math.isfinite(value) else None


def _closed(text: str) -> str | None:
    """The text up to the last place where a value had ended, with the brackets that were open there closed."""
    stack: list[str] = []
    cut, closers = -1, ""
    at = 0
    for token in _TOKEN.finditer(text):
        if token.start() != at:
            break  # a string that never ends
        at = token.end()
        sign = token[0]
        if sign in "[{" and len(sign) == 1:
            stack.append("]" if sign == "[" else "}")
            if len(stack) > MAX_DEPTH:
                return None
            cut, closers = at, "".join(reversed(stack))
        elif sign in ("]", "}"):
            if not stack or stack.pop() != sign:
                return None
            cut, closers = at, "".join(reversed(stack))
            if not stack:
                break
        elif sign == ",":
            cut, closers = token.start(), "".join(reversed(stack))
    return text[:cut] + closers if cut > 0 else None
