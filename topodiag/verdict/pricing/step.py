"""What a cause takes of a training step: each dimension's groups on the machines with it and without it.

What the groups send and how long a step computes is the model of `topodiag place`; how much slower a group becomes is
NCCL's own search for that group on both machines, as for the job's collective. A fault that leaves the collectives
inside a node alone lies on the way out, which all GPUs of a node share: there a group that leaves the node loses what
the job's collective loses, for NCCL's search of one group knows nothing of the other groups on the same NICs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from topodiag.expect.rates import reached
from topodiag.lazy import dataclass
from topodiag.model.cluster import Ints
from topodiag.model.job import Job
from topodiag.nccl.connect.communicator import Member
from topodiag.nccl.topo.changes import bus_of, gpus_of
from topodiag.placement.job_groups import JobStep
from topodiag.placement.price import DemandCost, Floats, pairs_of
from topodiag.verdict.pricing.grounds import figures_of_group
from topodiag.verdict.pricing.mend import Ground, Machine
from topodiag.words.units import grouped

MOST_KINDS = 16
"""Kinds of groups of one dimension whose loss is asked of NCCL's search; a node has no more GPUs, and
more kinds are left unpriced."""
_OUT, _INSIDE = ("out",), ("inside",)
"""Groups that lose what the job's collective loses; collectives inside a node."""
_TESTED = {"all_to_all": "alltoall", "send_recv": "sendrecv"}
"""What nccl-tests calls a collective of the cost model, where the names differ."""


def shares_of_step(
    ground: Ground, built: Sequence[Machine], now: Sequence[Machine], left: float, step: JobStep
) -> tuple[float, ...]:
    """What the machines `now` take of a step against those as `built`, by host of the ground: by each model that it may
    be, the share of its step, 0 to 1. `left` is the share of the job's collective that is left with them. () where a
    group cannot be priced, or the step is that of other GPUs."""
    if ground.job is None or ground.setup.domain > 1 or step.sm != ground.setup.sm:
        return ()
    seats = _seats(ground, ground.job)
    return step.lost(_Groups(ground, tuple(built), tuple(now), left, seats).left_of) if seats is not None else ()


def _seats(ground: Ground, job: Job) -> Mapping[int, tuple[int, str]] | None:
    """The place of each rank of the job: the number of its host, and the bus id of its GPU; None where one has none."""
    places = {host.name: place for place, host in enumerate(ground.hosts)}
    buses = [set(map(bus_of, gpus_of(host.built.tree).values())) for host in ground.hosts]
    seats = {}
    for rank in job.ranks:
        place, bus = places.get(rank.host), rank.bus_id.lower()
        if place is None or bus not in buses[place]:
            return None
        seats[rank.rank] = (place, bus)
    return seats if len(seats) == job.world_size else None


@dataclass
class _Groups:
    """Groups of a job on its machines."""

    ground: Ground
    built: tuple[Machine, ...]
    now: tuple[Machine, ...]
    left: float
    seats: Mapping[int, tuple[int, str]]
    known: dict[tuple[object, ...], float | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        pairs = list(zip(self.built, self.now, strict=True))
        numbers = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
        self.alike = [numbers[pair] for pair in pairs]
        """The number of each host's pair of machines: that of hosts that are alike is the same."""
        self.hurt = {place for place, (built, now) in enumerate(pairs) if built != now}

    def left_of(self, cost: DemandCost) -> Floats | None:
        """For each group the share of its bandwidth that is left."""
        groups = cost.demand.groups
        if cost.demand.collective != "send_recv":
            return self._rows(groups, cost.demand.collective)
        pairs = self._rows(pairs_of(groups), cost.demand.collective)
        return None if pairs is None else pairs.reshape(len(groups), -1).min(axis=1)

    def _rows(self, rows: Ints, collective: str) -> Floats | None:
        weights = np.ones(len(rows), np.float64)
        hosts = np.array([self.seats[rank][0] for rank in range(len(self.seats))], np.int64)
        touched = np.isin(hosts[rows], sorted(self.hurt)).any(axis=1)
        numbered = np.flatnonzero(touched).tolist()
        kinds = grouped((self._kind(rows[number], collective), number) for number in numbered)
        if len(kinds) > MOST_KINDS or (kinds and self._inside() is None):
            return None
        for kind, numbers in kinds.items():
            if kind not in self.known:
                self.known[kind] = self.left if kind == _OUT else self._asked(rows[numbers[0]].tolist(), collective)
            share = self.known[kind]
            if share is None:
                return None
            weights[numbers] = share
        return weights

    def _kind(self, ranks: Ints, collective: str) -> tuple[object, ...]:
        """What groups that lose alike have in common: which machines they are on, and with which GPUs."""
        by_host = grouped(self.seats[rank] for rank in ranks.tolist())
        if len(by_host) > 1 and self._inside() == 1.0:
            return _OUT
        return (collective, *sorted((self.alike[place], tuple(sorted(buses))) for place, buses in by_host.items()))

    def _inside(self) -> float | None:
        """What is left of a collective inside the node that loses most of one; None where that is not known."""
        if _INSIDE not in self.known:
            places = sorted({self.alike[place]: place for place in self.hurt}.values())
            inside = [[rank for rank, (host, _) in self.seats.items() if host == place] for place in places]
            shares = [self._asked(ranks, "all_reduce") for ranks in inside[:MOST_KINDS] if len(ranks) > 1]
            known = [share for share in shares if share is not None]
            self.known[_INSIDE] = min(known, default=1.0) if len(known) == len(shares) else None
        return self.known[_INSIDE]

    def _asked(self, ranks: list[int], collective: str) -> float | None:
        """The share of a group's bandwidth that is left, by NCCL's search on both machines; None where it has none."""
        places = {place: at for at, place in enumerate(dict.fromkeys(self.seats[rank][0] for rank in ranks))}
        members = [Member(at, places[self.seats[rank][0]], self.seats[rank][1]) for at, rank in enumerate(ranks)]
        built, now = ([machines[place] for place in places] for machines in (self.built, self.now))
        if built == now:
            return 1.0
        tested = _TESTED.get(collective, collective)
        whole, less = (figures_of_group(self.ground.setup, hosts, members, tested) for hosts in (built, now))
        if whole is None or less is None:
            return None
        share = reached(whole, less) * min(machine.pace for machine in now)
        return min(share, 1.0) if share > 0 else None
