"""Which words of evidence identify nobody. All others are replaced by `--redact`.

Decides by the word alone, so that one word has one answer in all items: words of words.py, numbers, versions, short
hexadecimal, variables that are kept. A name with dots or dashes is harmless as a whole or not at all: hosts are called
`gpu-a` and `storage.cluster`.
"""

import re
from functools import lru_cache

from topodiag_probes.variables import form_of
from topodiag_probes.words import HARMLESS, HARMLESS_WHOLE

RUN = r"[^\W_]+(?:[._-]+[^\W_]+)*"
"""A word, or several that dots, dashes and underscores join."""

_DIGITS = re.compile(r"[0-9]+")
_JOINTS = re.compile(r"[._-]+")
_SHORT_HEX = re.compile(r"[0-9a-f]{0,7}[0-9][0-9a-f]{0,7}\Z|[0-9a-f]{8}\Z|[0f]+\Z")
_PREFIXED_HEX = re.compile(r"0x[0-9a-f]{1,16}\Z")
_TOKEN = re.compile(r"(?:host|name)-[0-9a-f]{10}\Z")
_RELEASED = re.compile(r"([a-z_]{2,40})-([0-9]+(?:[.-][0-9]+)+)\Z")
_TAGGED = re.compile(r"([a-z0-9]+)\.[0-9]{1,4}\Z")


LONGEST = 128
"""Characters; nothing that is longer is on a list."""


def is_harmless(run: str) -> bool:
    """Whether a word, or words that are joined, may stay."""
    return len(run) <= LONGEST and _is_harmless(run)


@lru_cache(maxsize=65536)
def _is_harmless(run: str) -> bool:
    low = run.lower()
    return _is_known(low) or (run == run.upper() and form_of(run) is not None) or _is_joined(low)


def _is_known(low: str) -> bool:
    """A word on the list, a number, or short hexadecimal."""
    shape = _DIGITS.sub("#", low)
    if len(low) <= 2 or len(shape.replace("#", "")) <= 1 or shape in HARMLESS or shape in HARMLESS_WHOLE:
        return True
    if not shape.strip("#._-") or not low.strip("0f"):
        return True
    return bool((len(low) <= 8 and _SHORT_HEX.match(low)) or _PREFIXED_HEX.match(low) or _TOKEN.match(low))


def _is_joined(low: str) -> bool:
    """Words that underscores join, versions, and names with a version or with a VLAN's number."""
    parts = _JOINTS.split(low)
    if len(parts) == 1:
        return False
    if low[0].isdigit() or (low[0] == "v" and low[1].isdigit()) or not ("." in low or "-" in low):
        return all(_is_known(part) for part in parts)
    released = _RELEASED.match(low)
    if released is not None:  # MLNX_OFED_LINUX-5.8-1.1.2.1
        return "." in released.group(2) and is_harmless(released.group(1))
    tagged = _TAGGED.match(low)
    return tagged is not None and any(map(str.isdigit, tagged.group(1))) and _is_known(tagged.group(1))
