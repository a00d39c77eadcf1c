"""Lines that name a fault and report none: denied, supposed, advised, counted as zero, quoted as text.

One module for all entries. `denies` looks at the words around a match; an entry whose fixed sentence holds one of these
words itself says `denied = false`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from topodiag.lazy import regex
from topodiag.model.events import Value

REACH = 120
"""Characters before and behind the match that belong to its clause at most."""
_CLAUSE_END = regex(r"[.;!?](?=\s|$)")
_BEFORE = regex(
    r"\b(?:no|not|never|without|neither|nor|isn't|wasn't|aren't|didn't|doesn't|don't|cannot be|free of|zero|0)"
    r"(?: (?:a|an|any|the|such|more|further|new|single|other"
    r"|found|saw|sees?|seen|had|has|have|reports?|detected|reported|logged|errors?|sign of)){0,3}"
    r"\s*['\"`:]?$"
    r"|\b(?:if|when|whenever|whether|unless|until|in case|should|could|would|may|might|e\.g\.|for example|such as"
    r"|check (?:for|whether|if)|look for|grep|look(?:s|ed)? like|means?(?: that)?|documented|expected|simulat\w+)\b"
    r"[^.;!?]*$"
    r"|(?:^|\s)(?:#|//|\*) [^.;!?]*$",
    re.IGNORECASE,
)
_BEHIND = regex(
    r"^['\"`)]?\s*(?:[:=]\s*(?:0|0x0|none|no|false|null|n/a)\b"
    r"|(?:was|were|is|are|has been|have been)\s+(?:not|never|no longer|cleared|resolved|fixed|recovered)\b"
    r"|(?:recovered|resolved|cleared|did not (?:happen|occur))\b"
    r"|(?:errors?|events?|faults?|failures?)?\s*:?\s*(?:0|none|no)\s*$)",
    re.IGNORECASE,
)

_EXPLAINED = regex(
    r"^\s{0,8}(?:[#>*-]{1,4}\s{1,3})?(?:Q\s?[:.]|Question\b)|\b[Ww]hat (?:does|do|is|are) .{1,120}\?\s*$"
    r"|^\s{0,12}(?:summary|description|expr|alert|annotations): |\{\{ {0,2}\$"
    r"|\b(?:when|if|means?(?: that)?) (?:a|an|the|any|one|your) (?:\w{1,12} )?GPU\b"
)
"""Questions, rules of alerts, handbooks: they explain a message whatever its words are."""
_QUOTED = regex(r"`$|(?:^|[.;:] )\W{0,8}(?:[Ii]f|[Ii]n case|[Ss]hould)\b")
"""How a sentence begins that says what may come."""

_WARNED = regex(r"\.py:\d{1,6}: \w{0,40}Warning: ")
"""Python's `warnings` (Lib/warnings.py, formatwarning): the program goes on below it."""


def warns(line: str, start: int) -> bool:
    """Whether the words that begin at `start` stand in a warning of Python's, which ends no program."""
    return _WARNED.search(line, 0, start) is not None


def explains(line: str, start: int) -> bool:
    """Whether a line explains the message that begins at `start`, and does not report it. Asked for every entry."""
    return _EXPLAINED.search(line) is not None or _QUOTED.search(line[:start]) is not None


def denies(line: str, start: int, end: int) -> bool:
    """Whether the words before or behind a match (its span on the line) say that nothing happened, or only what may."""
    before = line[max(0, start - REACH) : start]
    ends = [clause.end() for clause in _CLAUSE_END.finditer(before)]
    before = before[ends[-1] :] if ends else before
    return _BEFORE.search(before) is not None or _BEHIND.search(line[end : end + REACH]) is not None


def counts_none(fields: Mapping[str, Value]) -> bool:
    """Whether the sentence counts errors or devices, and counts zero of them."""
    return fields.get("count") == 0 and "expected" not in fields
