"""The rank that the name of a file says: `nccl_trace_rank_3`, `rank0.txt`, `train-rank=12.log`."""

from __future__ import annotations

import os

from topodiag.lazy import regex

_RANK = regex(r"rank[ _=-]?([0-9]{1,9})(?![0-9])")


def rank_of_name(path: str) -> int | None:
    """The last rank in the name of a file, in capitals or not; None where it says none."""
    ranks = _RANK.findall(os.path.basename(path).lower())
    return int(ranks[-1]) if ranks else None
