"""The speeds per channel that NCCL's graph search tries, high to low, and how long it may try.

Source: the speedArray tables and NCCL_SEARCH_* constants of src/graph/search.cc, last patch of each version.
"""

from __future__ import annotations

from topodiag.nccl.numbers import single

_OLD_INTRA = (40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0)
_OLD_INTER = (
    *(48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0),
    *(2.4, 1.2, 0.24, 0.12),
)
_SM90_INTRA_18 = (60.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 6.0, 3.0)
_SM90_INTRA_19 = (60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 6.0, 3.0)
_SM90_INTRA_21 = (60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0)
_SM90_INTER_18 = (48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12)
_SM90_INTER_19 = (48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12)
_SM100_INTRA_25 = (90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 19.0)
_SM100_INTRA_27 = (*_SM100_INTRA_25, 18.0)
_SM100_INTRA_29 = (90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0)
_SM100_REST = (48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12)

TIMEOUT = 1 << 14
TIMEOUT_SAME_CHANNELS = 1 << 8
TIMEOUT_PCI_ORDER = 1 << 10
"""Steps of one attempt; with equal channels; of the PCI order from a NET, which has a clock of its own."""


def _sm90(minor: int, inter: bool) -> tuple[float, ...]:
    if inter:
        return _SM90_INTER_19 if minor >= 19 else _SM90_INTER_18
    return _SM90_INTRA_21 if minor >= 21 else _SM90_INTRA_19 if minor >= 19 else _SM90_INTRA_18


def _sm100(minor: int, inter: bool) -> tuple[float, ...]:
    if not inter:
        return _SM100_INTRA_29 if minor >= 29 else _SM100_INTRA_27 if minor >= 27 else _SM100_INTRA_25
    if minor >= 30:
        return (96.0, 86.0, 80.0, *_SM100_REST)
    if minor == 29:
        return (96.0, 80.0, *_SM100_REST)
    return (96.0, *_SM100_REST) if minor >= 27 else _SM90_INTER_19


def ladder(minor: int, sm: int, inter: bool) -> tuple[float, ...]:
    """GB/s per channel for the least compute capability among the GPUs, in single precision, falling."""
    if sm >= 100 and minor >= 25:
        speeds = _sm100(minor, inter)
    elif sm >= 90:
        speeds = _sm90(minor, inter)
    else:
        speeds = _OLD_INTER if inter else _OLD_INTRA
    return tuple(single(speed) for speed in speeds)


def total_budget(minor: int) -> int:
    """Steps that all attempts of one search may take together once there is a solution."""
    return 1 << 19 if minor >= 19 else 5 << 16
