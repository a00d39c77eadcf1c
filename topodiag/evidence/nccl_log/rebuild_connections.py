"""Who talks to whom: the rows of connections with world ranks and hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.rebuild_frame import BATCH_ROWS, Frame, Ints, Rows
from topodiag.model.job import Communicator, Connections, no_connections, transport_label

_MOST_NARROW = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Seats:
    """World rank and host of every rank of every communicator of a job, below each other."""

    base: Ints
    world: Ints
    host: Ints

    def at(self, values: Ints, comm: npt.NDArray[Any], rank: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        if not values.size:
            return np.full(len(comm), -1, np.int32)
        made = np.full(len(comm), -1, np.int32)
        size = np.diff(self.base)
        for first in range(0, len(comm), BATCH_ROWS):
            some, own = comm[first : first + BATCH_ROWS], rank[first : first + BATCH_ROWS]
            good = (some >= 0) & (own >= 0)
            good &= own < size[np.where(some >= 0, some, 0)]
            found = values[np.where(good, self.base[np.maximum(some, 0)] + own, 0)]
            made[first : first + BATCH_ROWS] = np.where(good, found, -1)
        return made


def seats(communicators: Sequence[Communicator], host_of_world: Mapping[int, int]) -> Seats:
    base = np.cumsum([0, *(each.nranks for each in communicators)])
    world = np.concatenate([each.ranks for each in communicators]) if communicators else np.zeros(0, np.int64)
    size = max(host_of_world, default=-1) + 1
    table = np.full(size + 1, -1, np.int64)
    table[np.array(list(host_of_world), np.int64)] = np.array(list(host_of_world.values()), np.int64)
    host: Ints = table[np.where((world >= 0) & (world < size), world, size)]
    return Seats(base, world, host)


_PRINTED = ("rank", "peer", "channels", "conn", "direction", "via", "net_dev", "proxy", "count", "line")


@dataclass(slots=True)
class Gathered:
    """Rows of one job's connections as they come, in as few bytes as their numbers take. `comm` and `process` are
    counted over all jobs. `lines`: how many by communicator, via and device."""

    parts: dict[str, list[npt.NDArray[Any]]] = field(default_factory=dict)
    lines: Counter[tuple[int, int, int]] = field(default_factory=Counter)

    def add(self, frame: Frame, rows: Rows, chosen: Ints, comm: Ints, process: Ints) -> None:
        """These rows of a batch; `comm` (-1 unknown) and `process` are of the whole batch."""
        columns = {name: rows[name][chosen] for name in _PRINTED}
        columns["file"] = frame["threads"]["file"][rows["thread"][chosen]].astype(np.int32)
        columns["comm"], columns["process"] = comm[chosen].astype(np.int32), process[chosen].astype(np.int32)
        for name, values in columns.items():
            self.parts.setdefault(name, []).append(values)
        devices = int(columns["net_dev"].max()) + 2
        keys = (columns["comm"].astype(np.int64) * len(frame.vias) + columns["via"]) * devices + columns["net_dev"] + 1
        found, place = np.unique(keys, return_inverse=True)
        for key, count in zip(found.tolist(), np.bincount(place, columns["count"]).tolist(), strict=True):
            rest, device = divmod(key, devices)
            number, via = divmod(rest, len(frame.vias))
            self.lines[number, via, device - 1] += int(count)

    def take(self, name: str) -> npt.NDArray[Any]:
        """The whole column, once."""
        parts = self.parts.pop(name, [])
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)


def connections(  # noqa: PLR0917 - what a job knows of itself
    gathered: Gathered, index: Ints, host_of: Ints, seated: Seats, frame: Frame, hosts: tuple[str, ...]
) -> Connections:
    """The connections of a job; empties `gathered`. `index`: number in the job by that of the communicator, with -1
    behind the last; `host_of`: index into hosts by process."""
    if not gathered.parts:
        return no_connections()
    comm = index[gathered.take("comm")].astype(np.int32)
    printer = host_of[gathered.take("process")].astype(np.int32)
    rank, peer, direction = (gathered.take(name) for name in ("rank", "peer", "direction"))
    received = direction == 2
    host = seated.at(seated.host, comm, rank)
    peer_host = seated.at(seated.host, comm, peer)
    host = np.where((host < 0) & ~received, printer, host)
    peer_host = np.where((peer_host < 0) & received, printer, peer_host)
    count = gathered.take("count")
    world, world_peer = seated.at(seated.world, comm, rank), seated.at(seated.world, comm, peer)
    return Connections(
        comm=comm, rank=rank, peer=peer, world=world, world_peer=world_peer, host=host, peer_host=peer_host,
        printed_by=np.where(received, world_peer, world), channels=gathered.take("channels"),
        conn=gathered.take("conn"), direction=direction, via=gathered.take("via"), net_dev=gathered.take("net_dev"),
        proxy=gathered.take("proxy"), count=count.astype(np.int32) if count.max() <= _MOST_NARROW else count,
        file=gathered.take("file"), line=gathered.take("line"), vias=frame.vias, hosts=hosts, files=frame.files,
    )  # fmt: skip


def transports(gathered: Gathered, index: Ints, vias: Sequence[str]) -> dict[int, dict[str, int]]:
    """Lines by communicator of the job and transport label."""
    made: dict[int, dict[str, int]] = {}
    for (number, via, device), count in sorted(gathered.lines.items()):
        own = made.setdefault(int(index[number]), {})
        label = transport_label(vias[via], device)
        own[label] = own.get(label, 0) + count
    return made
