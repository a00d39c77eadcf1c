"""Connections between nodes as both their ends print them: by which NIC they leave and by which they arrive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.checks.job.evidence import between_nodes, nic_side
from topodiag.lazy import dataclass
from topodiag.model.connections import Connections, Ints, Mask, packed
from topodiag.model.job import Hca, Job

JOIN_ROWS = 1 << 20
"""Ends that are brought together at once, in some 150 MB; of more, those of some communicators after the others."""
EXAMPLES = 4

_BITS = np.array([byte.bit_count() for byte in range(256)], np.uint8)
_Table = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Ends:
    """A connection as both its ends print it: entries of the connections, and the devices."""

    sender: int
    receiver: int
    out: int
    into: int


@dataclass(slots=True)
class BothEnds:
    """`channels` of all connections that both ends print, those of them that cross rails, with the first of these, and
    the world ranks and hosts (indexes) at their ends."""

    channels: int = 0
    crossed: int = 0
    first: list[Ends] = field(default_factory=list)
    ranks: set[int] = field(default_factory=set)
    hosts: set[int] = field(default_factory=set)


def both_ends(job: Job, listed: Mapping[str, Mapping[int, Hca]]) -> BothEnds:
    """Connections for collectives between hosts that list the same devices, several of them, and without PXN."""
    conns = job.connections
    made = BothEnds()
    same = _same_devices(conns, listed)
    if not (same >= 0).any() or not len(conns):
        return made
    counts = np.zeros(0, np.int64)
    for batch in conns.batches():
        more = np.bincount(batch.comm[_judged(batch, same)], minlength=len(counts))
        more[: len(counts)] += counts
        counts = more
    for low, high in _shares(counts):
        parts = [_ends_of(batch, same, low, high) for batch in conns.batches()]
        _join({name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, same, made)
    return made


def _same_devices(conns: Connections, listed: Mapping[str, Mapping[int, Hca]]) -> Ints:
    """By host, with -1 behind the last: a number that hosts with the same devices share; -1 for one with fewer than
    two devices."""
    lists: dict[tuple[tuple[int, str], ...], int] = {}
    made = np.full(len(conns.hosts) + 1, -1, np.int64)
    for number, host in enumerate(conns.hosts):
        own = tuple((at, hca.name) for at, hca in sorted(listed.get(host, {}).items()))
        if len(own) > 1:
            made[number] = lists.setdefault(own, len(lists))
    return made


def _judged(batch: Connections, same: Ints) -> Mask:
    side = np.where(batch.direction == 2, batch.peer_host, batch.host)
    wanted: Mask = (
        between_nodes(batch) & (batch.comm >= 0) & (batch.net_dev >= 0) & (batch.proxy < 0) & (batch.conn != 1)
    )
    wanted &= (batch.direction > 0) & (same[side] >= 0)
    return wanted


def _shares(counts: Ints) -> Iterator[tuple[int, int]]:
    """Communicators from the first to before the second number, few enough to be joined at once."""
    low = 0
    while low < len(counts):
        sums = np.cumsum(counts[low:])
        high = low + max(int(np.searchsorted(sums, JOIN_ROWS, side="right")), 1)
        if sums[high - low - 1]:
            yield low, high
        low = high


def _ends_of(batch: Connections, same: Ints, low: int, high: int) -> _Table:
    at = np.flatnonzero((batch.comm >= low) & (batch.comm < high) & _judged(batch, same))
    side = nic_side(batch, at)
    printed = ("comm", "rank", "peer", "conn", "direction", "channels", "net_dev")
    return {
        **{name: getattr(batch, name)[at] for name in printed},
        "host": side.host, "world": side.world, "entry": at + batch.first,
    }  # fmt: skip


def _join(ends: _Table, same: Ints, made: BothEnds) -> None:
    """Every sender with every receiver of its connection that has channels in common with it."""
    if not len(ends["entry"]):
        return
    key, _ = packed([ends[name] for name in ("comm", "rank", "peer", "conn")])
    order = np.argsort(key, kind="stable")
    sent, received = order[ends["direction"][order] == 1], order[ends["direction"][order] == 2]
    low, high = (np.searchsorted(key[received], key[sent], side) for side in ("left", "right"))
    counts = high - low
    a = np.repeat(sent, counts)
    b = received[np.arange(len(a)) + np.repeat(low - (np.cumsum(counts) - counts), counts)]
    channels = _bits(ends["channels"][a] & ends["channels"][b])
    both = (channels > 0) & (same[ends["host"][a]] == same[ends["host"][b]])
    made.channels += int(channels[both].sum())
    crossed = np.flatnonzero(both & (ends["net_dev"][a] != ends["net_dev"][b]))
    made.crossed += int(channels[crossed].sum())
    for side in (a[crossed], b[crossed]):
        made.hosts.update(np.unique(ends["host"][side]).tolist())
        made.ranks.update(np.unique(ends["world"][side]).tolist())
    made.ranks.discard(-1)
    for i in crossed[: EXAMPLES - len(made.first)].tolist():
        one, other = int(a[i]), int(b[i])
        made.first.append(Ends(int(ends["entry"][one]), int(ends["entry"][other]), int(ends["net_dev"][one]),
                               int(ends["net_dev"][other])))  # fmt: skip


def _bits(masks: npt.NDArray[np.uint64]) -> Ints:
    """How many bits are set in each."""
    made: Ints = _BITS[np.ascontiguousarray(masks).view(np.uint8)].reshape(-1, 8).sum(axis=1, dtype=np.int64)
    return made
