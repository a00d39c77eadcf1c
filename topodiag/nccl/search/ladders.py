"""The speeds per channel that NCCL's graph search tries, high to low, and how long it may try.

Source: the speedArray tables and NCCL_SEARCH_* constants of src/graph/search.cc, last patch of each version.
"""

from __future__ import annotations

from topodiag.model.nccl_features import is_rubin
from topodiag.model.nccl_versions import ByVersion
from topodiag.nccl.numbers import single

_OLD_INTRA = (40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0)
_OLD_INTER = (
    *(48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0),
    *(2.4, 1.2, 0.24, 0.12),
)
_SM90_INTER = (48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12)
_SM90_INTRA = (60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0)
_SM100_INTRA = (90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 19.0)
_SM100_REST = (48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12)

_HOPPER_INTRA = ByVersion(
    {
        18: (60.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 6.0, 3.0),
        19: (60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 6.0, 3.0),
        21: _SM90_INTRA,
    }
)
_HOPPER_INTER = ByVersion(
    {
        18: (48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12),
        19: _SM90_INTER,
    }
)
# Before 2.25 Blackwell counts as Hopper.
_BLACKWELL_INTRA = ByVersion(
    {
        18: _HOPPER_INTRA[18],
        19: _HOPPER_INTRA[19],
        21: _SM90_INTRA,
        25: _SM100_INTRA,
        27: (*_SM100_INTRA, 18.0),
        29: (90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0),
    }
)
_BLACKWELL_INTER = ByVersion(
    {
        18: _HOPPER_INTER[18],
        19: _SM90_INTER,
        27: (96.0, *_SM100_REST),
        29: (96.0, 80.0, *_SM100_REST),
        30: (96.0, 86.0, 80.0, *_SM100_REST),
        31: (96.0, 90.2, 86.0, 80.0, *_SM100_REST),
    }
)
_RUBIN_INTRA = (280.8, 187.2, 140.4, 93.6, 70.2, 46.8, 35.1, 23.4, 17.55)
_RUBIN_INTER = (
    *(280.8, 187.2, 140.4, 96.0, 93.6, 74.6, 70.2, 48.0, 46.8, 37.4, 36.1, 35.1, 32.8, 24.6, 23.4, 19.7, 18.1, 17.55),
    *(16.4, 14.4, 12.3, 9.9, 4.9, 2.5, 2.0, 1.0, 0.2, 0.1),
)

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


def ladder(minor: int, sm: int, inter: bool) -> tuple[float, ...]:
    """GB/s per channel for the least compute capability among the GPUs, in single precision, falling."""
    speeds: tuple[float, ...]
    if is_rubin(sm, minor):
        speeds = _RUBIN_INTER if inter else _RUBIN_INTRA
    elif sm >= 100:
        speeds = (_BLACKWELL_INTER if inter else _BLACKWELL_INTRA)[minor]
    elif sm >= 90:
        speeds = (_HOPPER_INTER if inter else _HOPPER_INTRA)[minor]
    else:
        speeds = _OLD_INTER if inter else _OLD_INTRA
    return tuple(single(speed) for speed in speeds)
