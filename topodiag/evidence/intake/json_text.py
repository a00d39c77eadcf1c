"""Whether a text is JSON, by its first bytes: many a log line begins with a bracket, too."""

from __future__ import annotations

import re

from topodiag.lazy import regex

MOST_CHARS = 1 << 16
MOST_DEPTH = 512

_TOKEN = regex(
    r"[ \t\r\n]*(?:(?P<open>[\[{])|(?P<close>[\]}])|(?P<part>[,:])"
    r'|(?P<value>"(?:[^"\\\x00-\x1f]|\\.)*(?:"|$)|-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,9})?(?![0-9A-Za-z_.-])'
    r"|(?:true|false|null)(?![0-9A-Za-z_]))|(?P<end>$))",
    re.DOTALL,
)
_CUT = regex(r"(?:-|-?[0-9.]{1,400}(?:[eE][+-]?[0-9]{0,9})?|t|tr|tru|f|fa|fal|fals|n|nu|nul)$")
_PAIRS = {"[": "]", "{": "}"}


def is_json(text: str) -> bool:
    """Whether a text that begins with a bracket or a brace reads as JSON, one value or several below each other, as far
    as it goes: what is cut off at its end still counts. At most MOST_CHARS of it are looked at."""
    text = text.lstrip("\ufeff \t\r\n")[:MOST_CHARS]
    if text[:1] not in _PAIRS:
        return False
    stack: list[str] = []
    at, after_value = 0, False
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return bool(stack) and _CUT.match(text[at:].lstrip()) is not None
        if found["end"] is not None:
            return True
        if found["part"]:
            fits, after_value = after_value and bool(stack), False
        elif found["close"]:
            fits, after_value = bool(stack) and stack.pop() == found["close"], True
        else:
            fits = not after_value or (not stack and found["open"] is not None and "\n" in found[0])
            after_value = found["open"] is None and bool(stack)
            fits = fits and (bool(stack) or found["open"] is not None)
            if found["open"]:
                stack.append(_PAIRS[found["open"]])
        if not fits or len(stack) > MOST_DEPTH:
            return False
        at = found.end()
    return True
