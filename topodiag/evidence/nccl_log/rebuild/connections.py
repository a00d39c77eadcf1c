"""Who talks to whom: the rows of connections with world ranks and hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from topodiag.evidence.nccl_log.rebuild.frame import Frame, Ints
from topodiag.evidence.nccl_log.tables.facts import Table
from topodiag.evidence.nccl_log.tables.saved import SMALL_BYTES, Columns, narrowest
from topodiag.model.connections import COLUMNS, Connections, no_connections, summed, transport_label
from topodiag.model.job import Job

_PRINTED = ("rank", "peer", "channels", "conn", "direction", "via", "net_dev", "proxy", "count", "line")
"""Columns that are as the lines have them."""


class ConnectionCollector:
    """The connections of one job while its rows come. World rank and host of every rank of every communicator stand
    below each other (`world`, `host`), and -1 for those that are unknown behind the last; `base` is where those of each
    communicator begin. They have the types of the columns: wider ones would take more memory."""

    def __init__(  # noqa: PLR0917 - what a job knows of itself
        self, frame: Frame, job: Job, group: Sequence[int], comms: int, host_of_process: Sequence[str],
        spans: Mapping[str, tuple[int, int]],
    ) -> None:  # fmt: skip
        """`group` are the numbers of the job's communicators among the `comms` of all jobs."""
        self.frame, self.hosts = frame, job.hosts
        self.lines: Counter[tuple[int, int, int]] = Counter()
        """How many by communicator of the job, via and device."""
        ranks = [communicator.ranks for communicator in job.communicators]
        world = np.concatenate([*ranks, np.full(1, -1, np.int64)])
        number_of_host = {host: i for i, host in enumerate(job.hosts)}
        host_of_rank = np.full(max((rank.rank for rank in job.ranks), default=-1) + 2, -1, np.int64)
        for rank in job.ranks:
            host_of_rank[rank.rank] = number_of_host.get(rank.host, -1)
        kinds = {name: narrowest(*span) for name, span in spans.items()}
        kinds["channels"], kinds["line"] = np.dtype(np.uint64), np.dtype(np.int32)
        of_ranks, of_hosts = narrowest(-1, int(world.max(initial=-1))), narrowest(-1, len(job.hosts))
        kinds |= dict.fromkeys(("world", "world_peer", "printed_by"), of_ranks)
        kinds |= dict.fromkeys(("host", "peer_host"), of_hosts)
        kinds["comm"], kinds["via"] = narrowest(-1, comms + 1), narrowest(0, len(frame.vias))
        kinds["file"] = narrowest(-1, len(frame.files))
        self.base = np.cumsum([0, *map(len, ranks)])
        self.index = np.full(comms + 1, -1, np.int64)
        """By communicator over all jobs its number in this one, with -1 behind the last."""
        self.index[list(group)] = np.arange(len(group))
        self.world = world.astype(of_ranks)
        self.host = host_of_rank[np.where(world < len(host_of_rank), world, -1)].astype(of_hosts)
        self.host_of_process = np.array([number_of_host.get(name, -1) for name in host_of_process], of_hosts)
        self.columns = Columns(
            {name: kinds[name] for name in COLUMNS}, frame.connection_rows, SMALL_BYTES, "connections"
        )

    def _places(self, comm: npt.NDArray[Any], rank: npt.NDArray[Any]) -> Ints:
        """Places in `world` and `host` of ranks of the job's communicators."""
        unknown = len(self.world) - 1
        first, size = self.base[:-1], np.diff(self.base)
        if not size.size:
            return np.full(len(comm), unknown)
        good = (comm >= 0) & (rank >= 0) & (rank < size[comm])
        return np.where(good, first[comm] + rank, unknown)

    def add(self, rows: Table, chosen: Ints | slice, comm: Ints, process: Ints) -> None:
        """These rows of a batch; `comm` (over all jobs, -1 unknown) and `process` are of the whole batch."""
        table = {name: rows[name][chosen] for name in _PRINTED}
        table["file"] = self.frame["threads"]["file"][rows["thread"][chosen]]
        table["comm"] = own = self.index[comm[chosen]]
        printer, received = self.host_of_process[process[chosen]], table["direction"] == 2
        place, peer_place = (self._places(own, table[end]) for end in ("rank", "peer"))
        host, peer_host = self.host[place], self.host[peer_place]
        table["host"] = np.where((host < 0) & ~received, printer, host)
        table["peer_host"] = np.where((peer_host < 0) & received, printer, peer_host)
        table["world"], table["world_peer"] = self.world[place], self.world[peer_place]
        table["printed_by"] = np.where(received, table["world_peer"], table["world"])
        self.columns.add(table)
        by_transport, single = (own, table["via"], table["net_dev"]), np.ones(len(own), np.int64)
        sums = summed(by_transport, single, table["count"], np.arange(len(own)))
        for number, transport, device, _, lines, _ in zip(*(column.tolist() for column in sums), strict=True):
            self.lines[number, transport, device] += lines

    def connections(self) -> Connections:
        """All that came, once."""
        columns, maps = self.columns.take()
        if not len(self.columns):
            return no_connections()
        fields: dict[str, Any] = {**columns, "maps": maps}
        return Connections(**fields, vias=self.frame.vias, hosts=self.hosts, files=self.frame.files)

    def transports(self) -> dict[int, dict[str, int]]:
        """Lines by communicator of the job and transport label."""
        counts: dict[int, dict[str, int]] = {}
        for (number, via, device), count in sorted(self.lines.items()):
            own = counts.setdefault(number, {})
            label = transport_label(self.frame.vias[via], device)
            own[label] = own.get(label, 0) + count
        return counts
