"""Whether a part is what a line says is away, and not a thing of it.

    mlx5_3 on node gx-1 not found                        the adapter
    mlx5_0 port 1: issm character device missing         a device node: the adapter is there

What stands between the part and the word that it is away says which.
"""

from __future__ import annotations

import re

GONE = (
    r"lost|gone|missing|not (?:found|detected|present|seen|visible|recogni[sz]ed)|disappeared|unreachable|unavailable"
)
AWAY = (
    r"(?<!link )(?<!carrier )(?<!packets )(?<!frames )\blost\b(?! (?:carrier|link|connection|packet|frame|its"
    r" (?:link|IP|addr)))"
    r"|\b(?:gone|missing(?! (?:[\w-]{1,12} )?(?:NIC|HCA|adapter)s\b)|disappeared|vanished)\b|\bf[ae]ll(?:en|s)?"
    r" off\b|\bleft the (?:PCIe? )?bus\b"
    r"|\bnot (?:there|found|detected|present|seen|listed|recogni[sz]ed)\b|\boff the (?:PCIe? )?bus\b"
)
"""What only the adapter itself can be, and not its link."""

_FAULTS = frozenset({"port-count", "gpu-lost"})
_IS_GONE = re.compile(rf"(?:{GONE}|{AWAY})", re.IGNORECASE)
_LINKING = re.compile(
    r"is|are|was|were|has|have|had|been|be|went|the|its|an?|one|two|of|on|at|in|from|for|to|just|now|again|suddenly"
    r"|still|completely|also|and|status|state|device|adapter|card|nic|hca|rdma|ib|infiniband|compute|node|host|slot"
    r"|rail|bus|pcie?|gpus?|named?",
    re.IGNORECASE,
)
"""What may stand between a part and the word that it is away, beside names with digits: words that name nothing else.
Another thing there is what is missing: a device node of it, a module, a counter."""
_LOSES = re.compile(r"\s{1,4}(?!(?:from|on|after|at|since|during|in|again|while|by|and|but|for|with|off)\b)\w")
"""`mlx5_0: lost 3 packets`: what it lost stands behind."""
_PLACES = frozenset({"on", "in", "of", "for", "to", "at"})
"""`MIG device not found on GPU 1`: the part is where, and not what."""
_WORD = re.compile(r"[\w.-]{1,60}")


def of_itself(fault: str, text: str, part: tuple[int, int], state: tuple[int, int]) -> bool:
    """Whether nothing but the part can be what is away: no other thing is named between them."""
    if fault not in _FAULTS or _IS_GONE.fullmatch(text, *state) is None:
        return True
    begin, end = (part[1], state[0]) if part[1] <= state[0] else (state[1], part[0])
    words = _WORD.findall(text, begin, end) if begin < end else []
    if part[1] <= state[0] and text[slice(*state)].lower() == "lost" and _LOSES.match(text, state[1]) is not None:
        return False
    if state[1] <= part[0] and words and words[-1].lower() in _PLACES:
        return False
    return all(_LINKING.fullmatch(word.strip(".-")) is not None or any(map(str.isdigit, word)) for word in words)


__all__ = ["AWAY", "GONE", "of_itself"]
