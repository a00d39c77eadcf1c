"""The calls of collectives, aggregated while records are read: one slot for each call, whatever its ranks.

A record is of one rank, and ranks write files of their own: what belongs together has the communicator, the collective
and the sequence number in common. Of a call stays the shortest kernel and whose it is, the longest one, the sum and the
count. 24 bytes a call: 10^8 records of groups of 8 ranks are 300 MB. Beyond MAX_SLOTS every second call is let go, and
again, which keeps medians and shares as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt

from topodiag.lazy import dataclass
from topodiag.model.inspector import CallsOfOneSize, HourOfCalls, InspectorCommunicator, LastArrivals

MAX_SLOTS = 12_000_000
STEPS_OF_OCTAVE = 4
"""Sizes within a quarter of an octave are judged together: their times differ by a fifth at most."""
AHEAD = 1 << 20
"""How far a sequence number may be in front of what the number of records allows: ranks drop what is small."""
LEAST_CALLS_OF_SIZE = 20
BEST = 10
"""Percentile of the clean times of calls that nothing else slowed."""
COMMON = 95
"""Percentile of the waiting at which longer waits are cut: one checkpoint outweighs a thousand steps, and tells nothing
of who comes last to them."""

_SLOT = np.dtype(
    [("least", "f4"), ("most", "f4"), ("sum", "f4"), ("who", "i4"), ("hour", "i4"), ("size", "i2"), ("count", "u2")]
)

BEHIND_NAME = "\t"
"""Parts the name of a collective from what else keeps its calls apart from others of the same number."""

Slots = npt.NDArray[np.void]


@dataclass(slots=True)
class _Series:
    """One collective of one communicator. `base` is the sequence number of the first slot."""

    slots: Slots
    base: int = 0
    used: int = 0
    factor: float = 0.0
    sizes: dict[int, int] = field(default_factory=dict)
    seen: dict[int, list[int]] = field(default_factory=dict)
    """By rank: lowest and highest sequence number, and the number of records."""


@dataclass(frozen=True, slots=True)
class Records:
    """Sequence numbers, times, sizes in bytes and hours of the dumps, one of each for each record."""

    numbers: npt.NDArray[np.int64]
    time_us: npt.NDArray[np.float32]
    sizes: npt.NDArray[np.int64]
    hours: npt.NDArray[np.int32]


class Calls:
    """All calls of all communicators."""

    def __init__(self, most: int = MAX_SLOTS) -> None:
        self._series: dict[int, dict[str, _Series]] = defaultdict(dict)
        self._most = most
        self._slots = 0
        self._records = 0
        self.one_in = 1

    def add(self, comm: int, collective: str, rank: int, records: Records, factor: float) -> None:
        """Records of one rank of a communicator. `factor` is bus bandwidth over algorithm bandwidth: the first of a
        collective counts."""
        numbers, time_us, sizes, hours = records.numbers, records.time_us, records.sizes, records.hours
        self._records += len(numbers)
        series = self._series[comm].get(collective)
        if series is None:
            series = _Series(np.zeros(0, _SLOT), base=int(numbers.min()) // self.one_in, factor=factor)
            self._series[comm][collective] = series
        low, high, count = series.seen.get(rank, (int(numbers[0]), int(numbers[0]), 0))
        series.seen[rank] = [min(low, int(numbers.min())), max(high, int(numbers.max())), count + len(numbers)]
        kept = numbers % self.one_in == 0
        at = numbers[kept] // self.one_in - series.base
        if at.size and at.min() < 0:
            at += self._moved(series, int(-at.min()))
        near = (at >= 0) & (at < AHEAD + 8 * self._records)
        _, once = np.unique(np.where(near, at, -1), return_index=True)
        once = once[near[once]]
        if not once.size:
            return
        at, times = at[once], time_us[kept][once]
        self._grow(series, int(at.max()) + 1)
        buckets = np.rint(np.log2(sizes[kept][once]) * STEPS_OF_OCTAVE).astype(np.int16)
        for bucket in np.unique(buckets):
            greatest = int(sizes[kept][once][buckets == bucket].max())
            series.sizes[int(bucket)] = max(series.sizes.get(int(bucket), 0), greatest)
        slots = series.slots
        fresh = slots["count"][at] == 0
        first = fresh | (times < slots["least"][at])
        slots["least"][at[first]] = times[first]
        slots["who"][at[first]] = rank
        slots["most"][at] = np.where(fresh, times, np.maximum(slots["most"][at], times))
        slots["sum"][at] += times
        slots["size"][at[fresh]] = buckets[fresh]
        slots["hour"][at[fresh]] = hours[kept][once][fresh]
        slots["count"][at] = np.minimum(slots["count"][at].astype(np.int32) + 1, 65535)
        if self._slots > self._most:
            self._thin()

    def _moved(self, series: _Series, by: int) -> int:
        """Make room in front of the first slot, where a rank's records begin earlier. Returns by how much all moved."""
        if by > AHEAD + 8 * self._records:
            return 0
        series.slots = np.concatenate((np.zeros(by, _SLOT), series.slots))
        series.base -= by
        series.used += by
        self._slots += by
        return by

    def _grow(self, series: _Series, wanted: int) -> None:
        series.used = max(series.used, wanted)
        have = len(series.slots)
        if wanted > have:
            more = max(wanted, have + have // 4 + 256) - have
            series.slots = np.concatenate((series.slots, np.zeros(more, _SLOT)))
            self._slots += more

    def _thin(self) -> None:
        """Let every second call go, in all communicators alike."""
        self.one_in *= 2
        self._slots = 0
        for series in self._all():
            start = series.base % 2  # even numbers stay
            series.slots = series.slots[: series.used][start::2].copy()
            series.base = (series.base + start) // 2
            series.used = len(series.slots)
            self._slots += len(series.slots)

    def _all(self) -> Iterator[_Series]:
        return (series for of_comm in self._series.values() for series in of_comm.values())

    def summed(self, communicator: InspectorCommunicator, members: int) -> InspectorCommunicator:
        """A communicator with what its calls say, of which at least half of the members recorded each."""
        sizes: list[CallsOfOneSize] = []
        calls, time_us, wait_us, missing = 0, 0.0, 0.0, 0
        times: dict[int, int] = defaultdict(int)
        waits: dict[int, float] = defaultdict(float)
        for collective, series in sorted(self._series.get(communicator.hash, {}).items()):
            missing += sum(high - low + 1 - count for low, high, count in series.seen.values())
            slots = series.slots[: series.used]
            slots = slots[slots["count"] >= max(2, (members + 1) // 2)]
            if not slots.size:
                continue
            mean = slots["sum"] / slots["count"]
            wait = np.maximum(mean - slots["least"], 0)
            wait = np.minimum(wait, np.percentile(wait, COMMON))
            mean = slots["least"] + wait
            calls += len(slots) * self.one_in
            time_us += float(mean.sum(dtype=np.float64)) * self.one_in
            wait_us += float(wait.sum(dtype=np.float64)) * self.one_in
            ranks, inverse = np.unique(slots["who"], return_inverse=True)
            often, caused = np.bincount(inverse), np.bincount(inverse, weights=wait)
            for rank, count, us in zip(ranks.tolist(), often.tolist(), caused.tolist(), strict=True):
                times[rank] += count * self.one_in
                waits[rank] += us * self.one_in
            sizes += _sizes(collective.partition(BEHIND_NAME)[0], series, slots, self.one_in)
        last = {rank: LastArrivals(times[rank], waits[rank]) for rank in sorted(times)}
        return replace(
            communicator, sizes=tuple(sizes), calls=calls, time_us=time_us, wait_us=wait_us, last=last,
            missing=max(missing, 0),
        )  # fmt: skip


def _sizes(collective: str, series: _Series, slots: Slots, one_in: int) -> Iterator[CallsOfOneSize]:
    for bucket in np.unique(slots["size"]).tolist():
        own = slots[slots["size"] == bucket]
        if len(own) * one_in < LEAST_CALLS_OF_SIZE:
            continue
        least = own["least"]
        size = series.sizes.get(bucket, 0)
        scale = size * series.factor / 1e3  # bytes per microsecond are MB/s
        clean = float(np.median(least))
        yield CallsOfOneSize(
            collective, size, len(own) * one_in, clean, scale / clean, scale / float(np.median(own["most"])),
            tuple(_hours(own["hour"], least, one_in)), float(np.percentile(least, BEST)),
        )  # fmt: skip


def _hours(hours: npt.NDArray[np.int32], least: npt.NDArray[np.float32], one_in: int) -> Iterator[HourOfCalls]:
    order = np.lexsort((least, hours))
    hours, least = hours[order], least[order]
    starts = np.flatnonzero(np.r_[True, hours[1:] != hours[:-1]])
    ends = np.r_[starts[1:], len(hours)]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if hours[start] > 0:
            yield HourOfCalls(int(hours[start]), (end - start) * one_in, float(least[(start + end) // 2]))
