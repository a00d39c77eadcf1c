"""Who talks to whom, as columns: in memory, or mapped from a file where there are millions of connections.

Whoever looks at all of them does it in batches (`Connections.batches`), or asks for what is counted once (`flows`).
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.lazy import dataclass
from topodiag.model.provenance import Origin

Ints = npt.NDArray[np.int64]
Column = npt.NDArray[np.signedinteger[Any]]
Mask = npt.NDArray[np.bool_]

BATCH_ROWS = 1 << 19
"""Connections that are looked at together: what is made of them on the way takes some 30 MB."""
_WIDEST = 1 << 62


@dataclass(frozen=True, slots=True)
class Flows:
    """What hosts say to each other: one entry per sender, receiver, `via` and direction (see `Connections`), in the
    order of their first connection. entries: connections; lines: lines of the log; first: number of the first one."""

    host: Ints
    peer_host: Ints
    via: Ints
    direction: Ints
    entries: Ints
    lines: Ints
    first: Ints


@dataclass(frozen=True)
class Connections:
    """Who talks to whom, one entry per sender, receiver, transport and device; all arrays have one length.

    comm: index of the communicator, -1 unknown. rank, peer: of that communicator. world, world_peer: of the world (-1
    unknown). host, peer_host: index into `hosts` (-1). channels: bit per channel. conn: 0 collectives, 1 send/recv.
    direction: 0 not printed (P2P, SHM: the sender prints), 1 send, 2 receive. via: index into `vias`. net_dev: the
    network device (-1 none). proxy: communicator rank whose NIC is used by PXN (-1). count: lines. For a receive
    line, rank is still the sender and peer the receiver, as printed; `printed_by` is the world rank that printed it.
    A large job has millions of entries: columns are as narrow as their numbers allow, so widen before you multiply.
    """

    comm: Column
    rank: Column
    peer: Column
    world: Column
    world_peer: Column
    host: Column
    peer_host: Column
    printed_by: Column
    channels: npt.NDArray[np.uint64]
    conn: Column
    direction: Column
    via: Column
    net_dev: Column
    proxy: Column
    count: Column
    file: Column
    line: Column
    vias: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    first: int = 0
    """Of a batch: the number that its first entry has in the whole."""
    maps: tuple[mmap.mmap, ...] = ()
    """Files on disk that hold the columns."""

    def __len__(self) -> int:
        return len(self.comm)

    def batches(self, rows: int = 0) -> Iterator[Connections]:
        """All entries in their order, `rows` at a time (0: as many as are good for memory and speed)."""
        rows = rows or BATCH_ROWS
        for first in range(0, len(self), rows):
            own = slice(first, first + rows)
            yield replace(self, first=self.first + first, **{name: getattr(self, name)[own] for name in COLUMNS})
            self.release()

    def release(self) -> None:
        """Let go of the memory that looking at columns on disk has taken; they are read again where needed."""
        for mapped in self.maps:
            if hasattr(mapped, "madvise"):
                mapped.madvise(mmap.MADV_DONTNEED)

    @cached_property
    def flows(self) -> Flows:
        """Counted once, by batch."""
        parts = [
            summed((batch.host, batch.peer_host, batch.via, batch.direction), np.ones(len(batch), np.int64),
                    batch.count, np.arange(batch.first, batch.first + len(batch)))
            for batch in self.batches()
        ]  # fmt: skip
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)] or [np.zeros(0, np.int64)] * 7
        return Flows(*summed(columns[:4], *columns[4:]))

    def over(self, wanted: Callable[[str], bool]) -> Mask:
        """Entries whose `via` is one that is wanted."""
        return np.array([wanted(via) for via in self.vias] or [False], bool)[self.via]

    def label(self, i: int) -> str:
        """The transport as NCCL prints it, without the proxy: `NET/IB/3/GDRDMA`."""
        return transport_label(self.vias[int(self.via[i])], int(self.net_dev[i]))

    def origin(self, i: int) -> Origin:
        words = ("", " [send]", " [receive]")[int(self.direction[i])]
        mask = int(self.channels[i])
        first = max((mask & -mask).bit_length() - 1, 0)
        text = f"Channel {first:02d} : {int(self.rank[i])} -> {int(self.peer[i])}{words} via {self.label(i)}"
        file = int(self.file[i])
        return Origin(self.files[file] if 0 <= file < len(self.files) else "", int(self.line[i]), text)


COLUMNS = tuple(field.name for field in fields(Connections))[:17]


def no_connections() -> Connections:
    none = np.zeros(0, np.int64)
    return Connections(none, none, none, none, none, none, none, none, np.zeros(0, np.uint64), none, none, none, none,
                       none, none, none, none)  # fmt: skip


def distinct(*columns: Column) -> tuple[Ints, Ints]:
    """The places of the first of each different row of these columns, in order, and how many rows are like it."""
    first, inverse = unique_rows(columns)
    counts = np.bincount(inverse, minlength=len(first))
    order = np.argsort(first)
    return first[order], counts[order]


def packed(columns: Sequence[Column]) -> tuple[Ints, int]:
    """One number per row, ordered and equal as the rows of these columns are, and a bound above all of them."""
    key, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        low, span = int(column.min()), int(column.max()) - int(column.min()) + 1
        if size * span >= _WIDEST:  # numbers that are far apart: their places in order do as well
            _, key = np.unique(key, return_inverse=True)
            keys, column = np.unique(column, return_inverse=True)
            low, size, span = 0, int(key.max()) + 1, len(keys)
        low = low - (1 << 64) if low >= 1 << 63 else low  # as the column is, of pointers: beyond 63 bits negative
        key, size = key * span + (column.astype(np.int64) - low), size * span
    return key, size


def unique_rows(columns: Sequence[Column]) -> tuple[Ints, Ints]:
    """Place of the first of each different row, by their order, and the number of each row among the different."""
    if not columns or not len(columns[0]):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    key, size = packed(columns)
    if size > 4 * len(key) + 1024:
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return first, inverse
    # Few possible rows: a table of them is far quicker than sorting.
    table = np.full(size, -1, np.int64)
    table[key[::-1]] = np.arange(len(key) - 1, -1, -1)  # the last that is written stays: the first place
    used = np.flatnonzero(table >= 0)
    first = table[used]
    table[used] = np.arange(len(used))
    return first, table[key]


def summed(columns: Sequence[Column], entries: Ints, lines: Column, first: Ints) -> tuple[Ints, ...]:
    """Equal rows as one, in order of `first`: the columns, the sums of entries and lines, the first `first`."""
    at, inverse = unique_rows(columns)
    order = np.argsort(first[at])
    sums = (np.bincount(inverse, values, len(at)).astype(np.int64) for values in (entries, lines))
    summed_columns = (*(column[at].astype(np.int64) for column in columns), *sums, first[at])
    return tuple(column[order] for column in summed_columns)


def transport_label(via: str, net_dev: int) -> str:
    """`NET/IB/GDRDMA` and device 3 make `NET/IB/3/GDRDMA`; without a device `via` stands as it is."""
    if net_dev < 0:
        return via
    parts = via.split("/")
    tail = [part for part in parts[2:] if part.startswith(("GDRDMA", "Shared"))]
    return "/".join([*parts[: len(parts) - len(tail)], str(net_dev), *tail])
