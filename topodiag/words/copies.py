"""Copies of messages in two logs of one machine, told by their words and by how their clocks differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from itertools import islice
from math import inf

from topodiag.words.units import grouped

Print = tuple[Hashable, float | None]
"""A message: its words, and its time in seconds of its log's clock."""
_MOST_PAIRS = 500_000
"""Pairs of equal messages by which clocks are compared: a line may stand in a log thousands of times."""


def copies(own: Sequence[Print], other: Sequence[Print], within_s: float, most_s: float = inf) -> dict[int, int]:
    """By place, the messages of the other log that this one holds too, each with its place in this one: those of equal
    words whose times differ as those of most messages, by up to `most_s`, and else by no more than `within_s`. A
    message without a time is any of equal words, and each print stands for one of the other log."""
    difference = _difference(own, other, within_s / 2, most_s)
    places = grouped((words, place) for place, (words, _) in enumerate(own))
    shared: dict[int, int] = {}
    for at, (words, time) in enumerate(other):
        for place in places.get(words, ()):
            held = own[place][1]
            if held is None or time is None or abs(held - time - difference) <= within_s:
                places[words].remove(place)
                shared[at] = place
                break
    return shared


def _difference(own: Sequence[Print], other: Sequence[Print], step_s: float, most_s: float) -> float:
    """How many seconds the other log is behind, by the difference that most different messages share which both print;
    0 where no two do, and one message is not all that there is."""
    times = grouped((words, time) for words, time in own if time is not None)
    pairs = ((words, held - time) for words, time in other if time is not None for held in times.get(words, ()))
    steps: dict[int, Counter[Hashable]] = defaultdict(Counter)
    for words, difference in islice(pairs, _MOST_PAIRS):
        if abs(difference) <= most_s:
            steps[round(difference / step_s)][words] += 1
    near = {step: counts + steps.get(step + 1, Counter()) for step, counts in steps.items()}
    best = max(sorted(near), key=lambda step: (len(near[step]), near[step].total(), -abs(step)), default=0)
    return best * step_s if len({words for words, _ in other}) == 1 or len(near.get(best, ())) > 1 else 0.0
