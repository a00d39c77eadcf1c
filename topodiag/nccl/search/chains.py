"""Where a channel has no choice of its next GPU: several steps of the search as one.

With an NVSwitch each GPU is followed by its neighbour, so that after its first GPUs a channel runs in one order to its
end. What its steps take of the links adds up. Room only gets less on the way: where there is enough for the sum, there
was for each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from topodiag.nccl.search.follow import Roads, Step, Steps, amounts

_TWICE = 4
"""More often than this no way uses a link: once there, once back, and a part of each."""

Chain = tuple[int, int, list[int], int, tuple[int, ...]]
"""What it takes in all, its hops, its GPUs after the first, the set of GPUs then used, and what is taken by each."""


class Chains:
    """The chains of attempts whose ways between GPUs are alike, each found when it is met first."""

    def __init__(self, roads: Roads, ways: Steps, orders: Sequence[list[int] | None]) -> None:
        self._ways, self._orders, self._bits = ways, orders, roads.small
        self._known: dict[int, Chain | None] = {}

    def after(self, gpu: int, used: int) -> Chain | None:
        """The chain from a GPU, with those used so far; None where there is a choice, or nothing to go to."""
        key = used << self._bits | gpu
        try:
            return self._known[key]
        except KeyError:
            row = self._known[key] = self._found(gpu, used)
            return row

    def _found(self, gpu: int, used: int) -> Chain | None:
        gpus: list[int] = []
        steps: list[Step] = []
        while True:
            ways, order = self._ways[gpu], self._orders[gpu] or ()
            left = [(other, way) for other in order if (way := ways[other]) is not None and not used >> other & 1]
            if len(left) != 1:
                break
            gpu, step = left[0]
            used |= 1 << gpu
            gpus.append(gpu)
            steps.append(step)
        taken = tuple(accumulate(taken for taken, _ in steps))
        return (taken[-1], sum(hops for _, hops in steps), gpus, used, taken) if steps else None


def fits(roads: Roads, speed: float) -> bool:
    """Whether the sum of all that a channel takes of a link leaves its field as one subtraction: the guard bit goes
    where there is too little, and no other field changes."""
    return len(roads.system.gpus) * _TWICE * max(amounts(speed)) <= roads.mask
