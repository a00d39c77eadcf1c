"""Jobs made for drawings: hosts with GPUs in rings, over the transports that a test asks for."""

from collections.abc import Sequence

import numpy as np

from topodiag.model.connections import Connections
from topodiag.model.job import Job, Rank

Row = tuple[int, int, str, int]
"""Sender, receiver (world ranks), transport, network device."""


def connections(rows: Sequence[Row], hosts: Sequence[str], gpus: int, direction: int = 0) -> Connections:
    """One entry per row, all of communicator 0 and channel 0."""
    vias = tuple(dict.fromkeys(via for _, _, via, _ in rows)) or ("P2P",)
    rank, peer = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
    none, same = np.full(len(rows), -1, np.int64), np.zeros(len(rows), np.int64)
    via = np.array([vias.index(row[2]) for row in rows], np.int64)
    dev = np.array([row[3] for row in rows], np.int64)
    return Connections(same, rank, peer, rank, peer, rank // gpus, peer // gpus, rank, np.ones(len(rows), np.uint64),
                       same, same + direction, via, dev, none, same + 1, none, none, vias, tuple(hosts))  # fmt: skip


def ringed(hosts: Sequence[str], gpus: int = 8, odd: str = "", odd_via: str = "NET/IB") -> Job:
    """A ring over all ranks, in each host by NVLink, from the last GPU of one to the first of the next over NIC 0 with
    GPUDirect RDMA; the host `odd` sends over `odd_via` on NIC 1."""
    world = len(hosts) * gpus
    rows: list[Row] = []
    for rank in range(world):
        host, local = divmod(rank, gpus)
        if local < gpus - 1 or len(hosts) == 1:
            rows.append((rank, host * gpus + (local + 1) % gpus, "P2P/CUMEM", -1))
        else:
            is_odd = hosts[host] == odd
            rows.append((rank, (rank + 1) % world, odd_via if is_odd else "NET/IB/GDRDMA", int(is_odd)))
    ranks = tuple(Rank(rank, hosts[rank // gpus], 100 + rank) for rank in range(world))
    return Job("job", world, ranks, (), (), connections(rows, hosts, gpus), tuple(hosts))
