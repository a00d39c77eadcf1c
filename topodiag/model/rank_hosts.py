"""Which rank runs on which host, before anybody knows the cluster: what launchers' files and logs say."""

from __future__ import annotations

from dataclasses import dataclass

from topodiag.model.cluster import Ints


@dataclass(frozen=True, slots=True)
class RankHosts:
    """The host of every rank as an index into `hosts` (distinct names in the order of their first rank), and its GPU,
    -1 where nobody says. `whole` says that each host stands for all its free GPUs: then there is one entry per host."""

    name: str
    hosts: tuple[str, ...]
    host: Ints
    gpu: Ints
    whole: bool = False

    @property
    def ranks(self) -> int:
        return int(self.host.size)
