"""The steps that all attempts of one search may take together, where some attempts need not be made.

An attempt that cannot find anything better (`ceiling`) matters only by the time it takes: once the budget is spent,
NCCL ends the search. As long as no other attempt follows, that changes nothing either. So such attempts are put aside,
and made only if another one follows and it depends on them whether NCCL would have come so far.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from topodiag.nccl.graph.graph import SearchGraph

Attempt = Callable[[SearchGraph, SearchGraph, int], int]
"""Makes an attempt with a trial, the best graph and a time; returns the time left."""


class Budget:
    """Steps left; attempts that were put aside count with all their time as long as they are not made."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self._aside: deque[tuple[SearchGraph, SearchGraph, int]] = deque()
        self._left = 0
        self._doubted = False
        self._at = 0

    def put_aside(self, trial: SearchGraph, best: SearchGraph, time: int) -> None:
        """An attempt is not made; `time` was taken off for it."""
        self._aside.append((trial.copy(), best.copy(), time))
        self._left += time

    def is_spent(self) -> bool:
        """Whether NCCL ends the search here. Where that depends on attempts that were put aside, `was_spent` tells."""
        self._doubted, self._at = self.steps < 0, self.steps
        return self.steps + self._left < 0

    def was_spent(self, attempt: Attempt) -> bool:
        """Whether NCCL ended the search when `is_spent` was asked last; makes as many attempts as that takes."""
        while self._doubted and self._at < 0 <= self._at + self._left:
            trial, best, time = self._aside.popleft()  # the fastest: at their speed little fits, and they end soon
            self._left -= time
            gained = attempt(trial, best, time)
            self.steps += gained
            self._at += gained
        return self._doubted and self._at < 0
