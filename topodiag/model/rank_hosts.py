"""Which rank runs on which host, before anybody knows the cluster: what launchers' files and logs say."""

from __future__ import annotations

from topodiag.lazy import dataclass
from topodiag.model.cluster import Ints


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
