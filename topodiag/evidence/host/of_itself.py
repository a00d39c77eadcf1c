"""Whether a part is what a line says is away, and not a thing of it.

mlx5_3 on node gx-1 not found                        the adapter
mlx5_0 port 1: issm character device missing         a device node: the adapter is there
"""

from __future__ import annotations

import re

_LINKING = re.compile(
    r"is|are|was|were|has|have|had|been|be|went|the|its|an?|one|two|of|on|at|in|from|for|to|just|now|again|suddenly"
    r"|still|completely|also|and|status|state|device|adapter|card|nic|hca|rdma|ib|infiniband|compute|node|host|slot"
    r"|rail|bus|pcie?|gpus?|named?",
    re.IGNORECASE,
)
"""What may stand between a part and the word that it is away, beside names with digits: words that name nothing else.
Another thing there is what is missing: a device node of it, a module, a counter."""
_WORD = re.compile(r"[\w.-]{1,60}")


def of_itself(text: str, part: tuple[int, int], state: tuple[int, int]) -> bool:
    """Whether nothing but the part can be what is away: no other thing is named between them."""
    begin, end = (part[1], state[0]) if part[1] <= state[0] else (state[1], part[0])
    words = _WORD.findall(text, begin, end) if begin < end else []
    return all(_LINKING.fullmatch(word.strip(".-")) is not None or any(map(str.isdigit, word)) for word in words)


__all__ = ["of_itself"]
