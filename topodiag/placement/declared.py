"""A declared layout beside the real one: which ranks ran elsewhere than a launcher's file says, and what that costs."""

from __future__ import annotations

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.cluster import Cluster, Ints, RankHosts
from topodiag.model.errors import TopodiagError
from topodiag.placement.groups import Talk
from topodiag.placement.price import price_placement
from topodiag.placement.seats import assign
from topodiag.words.hosts import short_name
from topodiag.words.units import plural


@dataclass(frozen=True, slots=True)
class MovedRank:
    """A rank that ran on another host than declared, or on another GPU of it. GPUs are -1 where nobody says them."""

    rank: int
    declared: str
    ran: str
    declared_gpu: int = -1
    ran_gpu: int = -1


@dataclass(frozen=True, slots=True)
class DeclaredRanks:
    """What the file `name` declares, compared with where ranks ran. `compared` are the ranks that both know, `hosts`
    those that ran something and are not declared, `undeclared` the ranks beyond the last one declared. `step_us` is
    what a step would wait under the declared layout, None where it has no place on the cluster."""

    name: str
    compared: int
    elsewhere: tuple[MovedRank, ...]
    hosts: tuple[str, ...] = ()
    undeclared: int = 0
    step_us: float | None = None

    @property
    def differs(self) -> bool:
        return bool(self.elsewhere or self.undeclared)

    @property
    def difference(self) -> str:
        """The difference in one line; "" where there is none."""
        if not self.differs:
            return ""
        moved = sum(moved_rank.declared != moved_rank.ran for moved_rank in self.elsewhere)
        words = []
        if moved:
            words.append(f"{moved} of {self.compared} ranks ran on another host than {self.name} declares")
        elif self.elsewhere:
            words.append(f"{len(self.elsewhere)} of {self.compared} ranks ran on another GPU than {self.name} declares")
        if self.undeclared:
            ranks = plural(self.compared, "rank")
            words.append(f"{self.name} declares {ranks}, and {self.compared + self.undeclared} ran")
        return "; ".join(words)


def compare_layouts(declared: RankHosts, ran: RankHosts) -> DeclaredRanks:
    """The ranks of a launcher's file against those of a job's log. Hosts are the same by the first part of their names.

    A hostfile declares room, so that fewer ranks than it declares are no difference. Hosts without a number of ranks
    declare as many as ran on them, or as on the fullest host where none ran.
    """
    hosts, gpus = _by_rank(declared, ran)
    compared = min(len(hosts), ran.ranks)
    elsewhere = []
    for rank in range(compared):
        host, gpu = ran.hosts[int(ran.host[rank])], int(ran.gpu[rank])
        wanted = gpus[rank]
        if short_name(hosts[rank]) != short_name(host) or (wanted >= 0 and gpu >= 0 and wanted != gpu):
            same = short_name(hosts[rank]) == short_name(host)
            elsewhere.append(MovedRank(rank, host if same else hosts[rank], host, wanted, gpu))
    known = {short_name(host) for host in declared.hosts}
    others = tuple(host for host in ran.hosts if short_name(host) not in known)
    return DeclaredRanks(declared.name, compared, tuple(elsewhere), others, ran.ranks - compared)


def price_declared(ranks: DeclaredRanks, declared: RankHosts, cluster: Cluster, talk: Talk) -> float | None:
    """What a step would wait under the declared layout, us; None where the cluster has no such place for every rank."""
    if ranks.undeclared:
        return None
    try:
        return price_placement(cluster, talk.demands, assign(cluster, declared, talk.world)).step_us
    except TopodiagError:
        return None


def _by_rank(declared: RankHosts, ran: RankHosts) -> tuple[list[str], list[int]]:
    """Host and GPU of each declared rank."""
    if not declared.whole:
        return [declared.hosts[int(host)] for host in declared.host], [int(gpu) for gpu in declared.gpu]
    counts: Ints = np.bincount(ran.host, minlength=len(ran.hosts))
    ranks = {short_name(host): int(count) for host, count in zip(ran.hosts, counts, strict=True)}
    most = int(counts.max(initial=1))
    order = [declared.hosts[int(host)] for host in declared.host]
    hosts = [host for host in order for _ in range(ranks.get(short_name(host), most))]
    return hosts, [-1] * len(hosts)
