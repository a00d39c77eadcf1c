"""The speeds per channel that NCCL's graph search tries, high to low, and how long it may try.

Source: the speedArray tables (speeds.toml) and NCCL_SEARCH_* constants of src/graph/search.cc, last patch of each
version.
"""

from __future__ import annotations

from functools import cache

from topodiag.model.nccl_features import is_rubin
from topodiag.model.nccl_versions import ByVersion
from topodiag.nccl.numbers import single
from topodiag.words.own_data import own_data

TOTAL_BUDGET = ByVersion({18: 5 << 16, 19: 1 << 19})
"""Steps that all attempts of one search may take together once there is a solution."""
TIMEOUT = 1 << 14
TIMEOUT_SAME_CHANNELS = 1 << 8
TIMEOUT_PCI_ORDER = 1 << 10
"""Steps of one attempt; with equal channels; of the PCI order from a NET, which has a clock of its own."""


RCCL_LADDER = tuple(
    single(speed)
    for speed in (48.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.4, 1.2, 0.24, 0.12)
)
"""RCCL 2.21.5, within a node and between nodes (src/graph/search.cc)."""


@cache
def ladder(minor: int, sm: int, inter: bool) -> tuple[float, ...]:
    """GB/s per channel for the least compute capability among the GPUs, in single precision, falling (speeds.toml)."""
    generation = "blackwell" if sm >= 100 else "hopper" if sm >= 90 else "before_hopper"
    if is_rubin(sm, minor):
        generation = "rubin"
    speeds = ByVersion(own_data("nccl/search/speeds")[generation]["inter" if inter else "intra"])
    return tuple(single(speed) for speed in speeds[minor])
