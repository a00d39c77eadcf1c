"""Who talks to whom: the rows of connections with world ranks and hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.rebuild.frame import Frame, Ints
from topodiag.evidence.nccl_log.tables.columns import SMALL_BYTES, Columns, narrowest
from topodiag.evidence.nccl_log.tables.facts import Table
from topodiag.lazy import dataclass
from topodiag.model.connections import COLUMNS, Connections, no_connections, summed, transport_label
from topodiag.model.job import Communicator

_PRINTED = ("rank", "peer", "channels", "conn", "direction", "via", "net_dev", "proxy", "count", "line")
"""Columns that are as the lines have them."""


@dataclass(frozen=True, slots=True)
class Seats:
    """World rank and host of every rank of every communicator of a job, below each other, and -1 for those that are
    unknown behind the last. `index`: number in the job by that of the communicator over all jobs, with -1 behind the
    last; `host_of`: index into `hosts` by process."""

    base: Ints
    world: Ints
    host: Ints
    index: Ints
    host_of: Ints
    hosts: tuple[str, ...]

    def at(self, comm: npt.NDArray[Any], rank: npt.NDArray[Any]) -> Ints:
        """Places in `world` and `host`."""
        unknown = len(self.world) - 1
        first, size = self.base[:-1], np.diff(self.base)
        if not size.size:
            return np.full(len(comm), unknown)
        good = (comm >= 0) & (rank >= 0) & (rank < size[comm])
        return np.where(good, first[comm] + rank, unknown)


def seats(  # noqa: PLR0917 - what a job knows of itself
    group: Sequence[int], comms: int, communicators: Sequence[Communicator], host_of_rank: Mapping[int, str],
    host_of_process: Sequence[str], hosts: tuple[str, ...],
) -> Seats:  # fmt: skip
    """Those of a job whose communicators have the numbers `group` among the `comms` of all jobs."""
    index = np.full(comms + 1, -1, np.int64)
    index[list(group)] = np.arange(len(group))
    numbers = {host: i for i, host in enumerate(hosts)}
    base = np.cumsum([0, *(communicator.nranks for communicator in communicators)])
    world = np.concatenate([*(communicator.ranks for communicator in communicators), np.full(1, -1, np.int64)])
    size = max(host_of_rank, default=-1) + 1
    table = np.full(size + 1, -1, np.int64)
    for rank, name in host_of_rank.items():
        table[rank] = numbers.get(name, -1)
    host: Ints = table[np.where((world >= 0) & (world < size), world, size)]
    of_process = np.array([numbers.get(name, -1) for name in host_of_process], np.int64)
    return Seats(base, world, host, index, of_process, hosts)


class ConnectionCollector:
    """The connections of one job while its rows come."""

    def __init__(self, frame: Frame, seated: Seats, spans: Mapping[str, tuple[int, int]]) -> None:
        self.frame = frame
        self.lines: Counter[tuple[int, int, int]] = Counter()
        """How many by communicator of the job, via and device."""
        kinds = {name: narrowest(*span) for name, span in spans.items()}
        kinds["channels"], kinds["line"] = np.dtype(np.uint64), np.dtype(np.int32)
        world = narrowest(-1, int(seated.world.max(initial=-1)))
        kinds |= dict.fromkeys(("world", "world_peer", "printed_by"), world)
        host = narrowest(-1, len(seated.hosts))
        kinds |= dict.fromkeys(("host", "peer_host"), host)
        kinds["comm"], kinds["via"] = narrowest(-1, len(seated.index)), narrowest(0, len(frame.vias))
        kinds["file"] = narrowest(-1, len(frame.files))
        # As narrow as the columns, so that what is made of them on the way is too.
        self.seats = replace(
            seated,
            world=seated.world.astype(world),
            host=seated.host.astype(host),
            host_of=seated.host_of.astype(host),
        )
        self.columns = Columns(
            {name: kinds[name] for name in COLUMNS}, frame.connection_rows, SMALL_BYTES, "connections"
        )

    def add(self, rows: Table, chosen: Ints | slice, comm: Ints, process: Ints) -> None:
        """These rows of a batch; `comm` (over all jobs, -1 unknown) and `process` are of the whole batch."""
        table = {name: rows[name][chosen] for name in _PRINTED}
        seated = self.seats
        table["file"] = self.frame["threads"]["file"][rows["thread"][chosen]]
        table["comm"] = own = seated.index[comm[chosen]]
        printer, received = seated.host_of[process[chosen]], table["direction"] == 2
        place, peer_place = (seated.at(own, table[end]) for end in ("rank", "peer"))
        host, peer_host = seated.host[place], seated.host[peer_place]
        table["host"] = np.where((host < 0) & ~received, printer, host)
        table["peer_host"] = np.where((peer_host < 0) & received, printer, peer_host)
        table["world"], table["world_peer"] = seated.world[place], seated.world[peer_place]
        table["printed_by"] = np.where(received, table["world_peer"], table["world"])
        self.columns.add(table)
        self._count(own, table["via"], table["net_dev"], table["count"])

    def _count(self, comm: Ints, via: npt.NDArray[Any], net_dev: npt.NDArray[Any], count: npt.NDArray[Any]) -> None:
        rows = np.arange(len(comm))
        sums = summed((comm, via, net_dev), np.ones(len(comm), np.int64), count, rows)
        for number, transport, device, _, lines, _ in zip(*(column.tolist() for column in sums), strict=True):
            self.lines[number, transport, device] += lines

    def connections(self) -> Connections:
        """All that came, once."""
        columns, maps = self.columns.take()
        if not len(self.columns):
            return no_connections()
        fields: dict[str, Any] = {**columns, "maps": maps}
        return Connections(**fields, vias=self.frame.vias, hosts=self.seats.hosts, files=self.frame.files)

    def transports(self) -> dict[int, dict[str, int]]:
        """Lines by communicator of the job and transport label."""
        counts: dict[int, dict[str, int]] = {}
        for (number, via, device), count in sorted(self.lines.items()):
            own = counts.setdefault(number, {})
            label = transport_label(self.frame.vias[via], device)
            own[label] = own.get(label, 0) + count
        return counts
