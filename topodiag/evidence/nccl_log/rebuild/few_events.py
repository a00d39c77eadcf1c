"""Which of the events of a log are kept where it tells of more than any job has.

An event takes 3 KB as a value. Two that differ in their numbers alone are of one shape: of each shape the first ones
are kept, so that a line that stands there once is never lost to one that stands there a million times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topodiag.evidence.nccl_log.plain.collect import MOST_EVENTS, shape
from topodiag.evidence.nccl_log.rebuild.frame import Rows


def few(rows: Rows, order: Sequence[int], most: int = MOST_EVENTS) -> list[int]:
    """The rows that are kept, in the order given."""
    if len(order) <= most:
        return list(order)
    shapes = np.fromiter(
        (hash(shape(rows.word("level", row), rows.word("text", row))) for row in order),
        np.int64,
        len(order),
    )
    _, group, sizes = np.unique(shapes, return_inverse=True, return_counts=True)
    by_group = np.argsort(group, kind="stable")
    place = np.empty(len(order), np.int64)  # in its group
    place[by_group] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = np.flatnonzero(place < _of_each(sizes.tolist(), most))[:most]
    return [order[at] for at in kept.tolist()]


def _of_each(sizes: Sequence[int], most: int) -> int:
    """How many of each shape there is room for: what small shapes leave goes to the large ones."""
    left = most
    for at, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - at)
        if size > share:
            return max(share, 1)
        left -= size
    return most


__all__ = ["few"]
