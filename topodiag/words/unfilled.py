"""Format strings of a program: a message whose places nobody filled has happened to nobody.

Mismatched NCCL version detected : rank %d version %d rank %d version %d      out of `strings libnccl.so`
"""

from __future__ import annotations

from topodiag.lazy import regex

_PLACE = regex(r"(?<![\w%\\./])%(?:-?\d{1,3})?(?:\.\d{1,2})?(?:(?:hh?|ll?|z)[dux]|l[fs]|[dsfpi])(?![A-Za-z0-9_-])")
"""A place for a value, as printf of C writes it. No letter or digit stands before it, as in addresses of the web, and
no dot or slash, as in patterns for names of files (`NCCL_DEBUG_FILE=/tmp/nccl.%h.%p`)."""
_OF_A_DATE = regex(r"%[YmHM](?![a-z])")
"""`date +%Y-%m-%d` and formats of log files have a day that nobody filled either."""
LONGEST = 1000
"""Characters of a line that is looked at: longer ones are data."""


def is_unfilled(line: str) -> bool:
    """Whether a line holds a place that was not filled."""
    if "%" not in line or len(line) > LONGEST or _OF_A_DATE.search(line) is not None:
        return False
    return _PLACE.search(line) is not None


def without_unfilled(text: str) -> str:
    """The text with such lines blank; those of data formats, those with tabs, and indented ones hold more than a
    message and stay: a tool's own output has values there. So does a single word, which is no message."""
    if "%" not in text or _PLACE.search(text) is None:
        return text
    lines = text.split("\n")
    return "\n".join("" if _may_be_message(line) and is_unfilled(line) else line for line in lines)


def _may_be_message(line: str) -> bool:
    return line[:1] not in "{[< " and "\t" not in line and " " in line
