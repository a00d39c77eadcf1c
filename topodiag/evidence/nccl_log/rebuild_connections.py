"""Who talks to whom: the rows of connections with world ranks and hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topodiag.evidence.nccl_log.rebuild_frame import Frame, Ints
from topodiag.model.job import Communicator, Connections, transport_label


@dataclass(frozen=True, slots=True)
class Seats:
    """World rank and host of every rank of every communicator of a job, below each other."""

    base: Ints
    world: Ints
    host: Ints

    def at(self, values: Ints, comm: Ints, rank: Ints) -> Ints:
        if not values.size:
            return np.full(len(comm), -1, np.int64)
        size = np.diff(self.base)
        good = (comm >= 0) & (rank >= 0)
        good &= rank < size[np.where(comm >= 0, comm, 0)]
        return np.where(good, values[np.where(good, self.base[np.maximum(comm, 0)] + rank, 0)], -1)


def seats(communicators: Sequence[Communicator], host_of_world: Mapping[int, int]) -> Seats:
    base = np.cumsum([0, *(each.nranks for each in communicators)])
    world = np.concatenate([each.ranks for each in communicators]) if communicators else np.zeros(0, np.int64)
    size = max(host_of_world, default=-1) + 1
    table = np.full(size + 1, -1, np.int64)
    table[np.array(list(host_of_world), np.int64)] = np.array(list(host_of_world.values()), np.int64)
    host: Ints = table[np.where((world >= 0) & (world < size), world, size)]
    return Seats(base, world, host)


def connections(  # noqa: PLR0917 - columns that belong together
    frame: Frame, rows: Ints, comm: Ints, printer_host: Ints, seated: Seats, hosts: tuple[str, ...]
) -> Connections:
    """The rows of `conn` with these numbers; `comm` and `printer_host` (index into hosts) are theirs."""
    table = frame["conn"]
    column = {name: table[name][rows] for name in table.columns}
    rank, peer = column["rank"], column["peer"]
    received = column["direction"] == 2
    mine = np.where(received, peer, rank)
    host = seated.at(seated.host, comm, rank)
    peer_host = seated.at(seated.host, comm, peer)
    host = np.where((host < 0) & ~received, printer_host, host)
    peer_host = np.where((peer_host < 0) & received, printer_host, peer_host)
    return Connections(
        comm=comm, rank=rank, peer=peer,
        world=seated.at(seated.world, comm, rank), world_peer=seated.at(seated.world, comm, peer),
        host=host, peer_host=peer_host, printed_by=seated.at(seated.world, comm, mine),
        channels=column["channels"], conn=column["conn"], direction=column["direction"], via=column["via"],
        net_dev=column["net_dev"], proxy=column["proxy"], count=column["count"],
        file=frame["threads"]["file"][column["thread"]], line=column["line"],
        vias=table.words["via"], hosts=hosts, files=frame.files,
    )  # fmt: skip


def transports(frame: Frame, rows: Ints, comm: Ints) -> dict[int, dict[str, int]]:
    """Lines by communicator and transport label."""
    table = frame["conn"]
    vias = table.words["via"]
    made: dict[int, dict[str, int]] = {}
    if not len(rows):
        return made
    via, dev = table["via"][rows], table["net_dev"][rows]
    keys, place = np.unique(np.stack([comm, via, dev]), axis=1, return_inverse=True)
    counts = np.bincount(place.reshape(-1), table["count"][rows]).astype(np.int64)
    for number, kind, device, count in zip(*keys.tolist(), counts.tolist(), strict=True):
        own = made.setdefault(number, {})
        label = transport_label(vias[kind], device)
        own[label] = own.get(label, 0) + count
    return made
