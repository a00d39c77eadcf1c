"""Which rank runs on which host, before anybody knows the cluster: what launchers' files and logs say."""

from __future__ import annotations

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.cluster import Ints
from topodiag.model.errors import InputError


@dataclass(frozen=True, slots=True)
class RankHosts:
    """The host of every rank as an index into `hosts` (distinct names in the order of their first rank), and its GPU,
    -1 where nobody says. `whole` says that each host stands for all its free GPUs: then there is one entry per host.
    `notes` are sentences on what was taken for granted."""

    name: str
    hosts: tuple[str, ...]
    host: Ints
    gpu: Ints
    whole: bool = False
    notes: tuple[str, ...] = ()

    @property
    def ranks(self) -> int:
        return int(self.host.size)


def ranks_on(name: str, hosts: list[str], gpus: list[int] | None = None, *, whole: bool = False) -> RankHosts:
    """One entry per rank. Raises InputError for none at all."""
    if not hosts:
        raise InputError(name, "names no hosts")
    index = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
    at = np.asarray([index[host] for host in hosts], np.int64)
    gpu = np.full(len(hosts), -1, np.int64) if gpus is None else np.asarray(gpus, np.int64)
    return RankHosts(name, tuple(index), at, gpu, whole)
