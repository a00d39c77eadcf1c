"""Who talks to whom in a job that ran: its communicators, with the sizes that its logs show; and its training step, as
far as its layout is known: what a fault of one wire takes of it.

A log may show a whole run, its first operations, or none. The size of a call is the log's where it has one. How often a
step calls is the log's only where it shows a training step (several calls of the inner dimensions for each of the outer
ones), else the rule of thumb's.

The traffic of a step is that of `topodiag place` and `topodiag model step`. Where nobody says what is trained, the same
layout in steps of other models gives the range within which the share lies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from math import fsum, prod

import numpy as np

from topodiag.cost.step import Step, price_step
from topodiag.lazy import dataclass
from topodiag.model.cluster import Assignment, Cluster, Demand, Ints, Level
from topodiag.model.finding import Confidence, Outcome
from topodiag.model.job import Communicator, Job
from topodiag.model.job_rings import domains
from topodiag.model.layout import BY_NAME, BY_ROLE, NAMES, ORDER, RANKED, Layout, LayoutError, Role, flags
from topodiag.model.layout_groups import LayoutGroups
from topodiag.model.provenance import NotObserved
from topodiag.placement.groups import THUMB_WORDS, Talk, machine_of, thumb
from topodiag.placement.price import DemandCost, Floats, price_placement

_COLLECTIVES = {
    "AllReduce": ("all_reduce", False), "AllGather": ("all_gather", True), "ReduceScatter": ("reduce_scatter", True),
    "Broadcast": ("broadcast", False), "Reduce": ("reduce", False), "AlltoAll": ("all_to_all", True),
    "AllToAll": ("all_to_all", True), "Send": ("send_recv", False),
}  # fmt: skip
"""NCCL's name: (the cost model's, whether NCCL logs one rank's part where nccl-tests counts all parts)."""
INNER_CALLS = 4
"""Calls of tensor, context or expert parallelism for each of data parallelism that a training step has at the least:
one layer's, forward and backward."""


@dataclass(frozen=True, slots=True)
class _Family:
    """Communicators of one role and size."""

    role: str
    name: str
    groups: Ints
    calls: Mapping[str, float]
    """By collective of the cost model: calls of one member, the most of all members seen."""
    bytes: Mapping[str, float]


def talk_of_job(cluster: Cluster, job: Job) -> Talk:
    """The demands of a job's communicators. Those whose role is a guess, or of which a member is not known, are left
    out, and it is said."""
    families, notes = _families(job)
    if not families:
        return Talk(job.world_size, _world(job), None, (*notes, NO_ROLES))
    sizes = {family.role: int(family.groups.shape[1]) for family in reversed(families)}
    priced = _thumb_step(cluster, sizes, job.world_size)
    logged = [family for family in families if family.calls]
    counted = bool(logged) and _is_a_step(logged)
    demands: list[Demand] = []
    for family in families:
        demands += _logged(family, priced, counted) if family.calls else _guessed(family, priced, bool(logged))
    if not logged:
        notes.append(THUMB_WORDS)
    else:
        notes.append("sizes of calls are those of the log; all communication counts as waited for")
        if not counted:
            notes.append(
                "how often a step calls is the rule of thumb: the log shows too few operations to be training steps"
            )
        elif not all(family.calls for family in families):
            notes.append("dimensions without operations in the log cost nothing here")
    return Talk(job.world_size, tuple(demands), None, tuple(notes), sizes)


NO_ROLES = (
    "the log shows no communicator of a known role, and one all-reduce of 1 GiB over all ranks stands for it: name the "
    f"layout ({flags()}, --order)"
)


def joined_by_nvlink(cluster: Cluster, job: Job) -> Cluster:
    """The cluster with the NVLink domains that the job's logs show: hosts that reach each other by P2P are one, as the
    trays of a rack are, whatever the cluster was taken for."""
    of = domains(job)
    index = {name: number for number, name in enumerate(cluster.names)}
    domain = cluster.nvlink_domain.copy()
    for host, other in of.items():
        if host in index and other in index:
            mine, theirs = domain[index[host]], domain[index[other]]
            domain[domain == max(mine, theirs)] = min(mine, theirs)
    if np.array_equal(domain, cluster.nvlink_domain):
        return cluster
    _, group = np.unique(domain, return_inverse=True)
    note = "the log shows NVLink between nodes: they count as one domain"
    joined = replace(cluster, nvlink_domain=group.astype(np.int64), notes=(*cluster.notes, note))
    outer = [level for level in cluster.levels if level.kind != "nvlink" and _nested(group, level.group)]
    inner = Level("nvlink", group.astype(np.int64), cluster.inside_alpha_us, cluster.inside_gbs, source="the job's log")
    return replace(joined, levels=(inner, *outer))


def _nested(inner: Ints, outer: Ints) -> bool:
    """Whether no group of the inner partition lies in two of the outer."""
    return int(np.unique(np.stack([inner, outer]), axis=1).shape[1]) == int(np.unique(inner).size)


def _families(job: Job) -> tuple[list[_Family], list[str]]:
    parents = {
        (communicator.parent, communicator.role) for communicator in job.communicators if communicator.parent >= 0
    }
    by: dict[tuple[str, int], list[Communicator]] = defaultdict(list)
    unsure, torn = 0, 0
    for communicator in job.communicators:
        if communicator.role not in BY_ROLE or communicator.nranks < 2:
            continue
        if communicator.parent < 0 and (communicator.index, communicator.role) in parents:
            continue  # what the others were split from, whatever its name
        if communicator.role_sure is Confidence.LOW:
            unsure += 1
        elif (communicator.ranks < 0).any() or (communicator.ranks >= job.world_size).any():
            torn += 1
        else:
            by[BY_ROLE[communicator.role].name, communicator.nranks].append(communicator)
    largest = {role: max(size for other, size in by if other == role) for role, _ in by}
    families = []
    for (role, size), family in by.items():
        rows = np.stack([communicator.ranks for communicator in family]).astype(np.int64)
        _, first = np.unique(np.sort(rows, axis=1), axis=0, return_index=True)  # one group may have several
        calls, volume = _operations(family, size)
        name = role if size == largest[role] else f"{role} ({size})"
        families.append(_Family(role, name, rows[np.sort(first)], calls, volume))
    notes = []
    if unsure:
        notes.append(f"{unsure} communicators are left out: their role is a guess")
    if torn:
        notes.append(f"{torn} communicators are left out: not all of their members left a line")
    return families, notes


def _operations(family: Sequence[Communicator], size: int) -> tuple[dict[str, float], dict[str, float]]:
    """(calls, bytes of one call as nccl-tests counts them) by collective."""
    calls: dict[str, float] = {}
    volume: dict[str, float] = {}
    for communicator in family:
        for done in communicator.operations.values():
            for logged, count in done.calls_by_collective.items():
                name, parts = _COLLECTIVES.get(logged, ("", False))
                if not name or not count:
                    continue
                bytes_each = done.bytes_by_collective.get(logged, 0) / count * (size if parts else 1)
                calls[name] = max(calls.get(name, 0.0), float(count))
                volume[name] = max(volume.get(name, 0.0), bytes_each)
    return calls, volume


def _is_a_step(families: Sequence[_Family]) -> bool:
    inner = [fsum(family.calls.values()) for family in families if BY_NAME[family.role].inside_layers]
    outer = [fsum(family.calls.values()) for family in families if family.role == "dp"]
    return not inner or min(inner) >= INNER_CALLS * max(outer, default=1.0)


def _thumb_step(cluster: Cluster, sizes: Mapping[str, int], world: int) -> Step:
    """The rule of thumb's step for dimensions of these sizes, whatever they multiply to."""
    layout = Layout(**sizes, order=ORDER).filled
    while layout.copies % layout.ep:
        layout = replace(layout, dp=layout.dp + 1)
    machine = machine_of(cluster, max(world, layout.world))
    return price_step(thumb(machine.gpu, layout), layout, machine)


def _logged(family: _Family, priced: Step, counted: bool) -> list[Demand]:
    total = fsum(family.calls.values())
    thumbs = fsum(piece.traffic.calls for piece in priced.pieces if piece.dimension == family.role)
    demands = []
    for name, calls in family.calls.items():
        often = calls if counted or family.role == "dp" or not thumbs else thumbs * calls / total
        demands.append(
            Demand(
                family.name, family.groups, name, family.bytes[name], often,
                keep_together=BY_NAME[family.role].together, why=f"{calls:g} in the log",
            )
        )  # fmt: skip
    return demands


def _guessed(family: _Family, priced: Step, others_logged: bool) -> list[Demand]:
    """A family without operations in the log: none where it shows those of others, the rule of thumb else."""
    pieces = [piece for piece in priced.pieces if piece.dimension == family.role]
    demands = [
        Demand(
            family.name, family.groups, piece.traffic.collective, piece.traffic.size, piece.traffic.calls,
            keep_together=BY_NAME[family.role].together, why=piece.traffic.formula,
        )
        for piece in pieces
    ]  # fmt: skip
    return [replace(demand, calls=0.0) for demand in demands[:1]] if others_logged else demands


def _world(job: Job) -> tuple[Demand, ...]:
    """All ranks, where nothing else is known."""
    if job.world_size < 2:
        return ()
    ranks = np.arange(job.world_size, dtype=np.int64)[None, :]
    return (Demand("all", ranks, "all_reduce", 2.0**30, why="all ranks, 1 GiB"),)


_MOST_COMPARED = 64
"""Groups of a job that are held against an order of dimensions: a wrong order fails in the first ones already."""


def layout_of_job(job: Job) -> Layout | None:
    """The sizes and the order that the job's communicators show, None where they leave a doubt."""
    communicators = [communicator for communicator in job.communicators if _is_sure(communicator, job.world_size)]
    sizes = dict.fromkeys(NAMES, 1)
    for comm in communicators:
        name = BY_ROLE[comm.role].name
        sizes[name] = max(sizes[name], comm.nranks)
    # A data-parallel group may hold the ranks of the context dimension too, and a smaller one shards or experts alone.
    data = {communicator.nranks for communicator in communicators if communicator.role is Role.DP} or {1}
    for size in sorted(data | {size // sizes["cp"] for size in data}, reverse=True):
        given = {**sizes, "dp": size}
        if communicators and prod(given[name] for name in RANKED) == job.world_size:
            return _ordered(given, communicators[:_MOST_COMPARED], job.world_size)
    return None


def _is_sure(communicator: Communicator, world_size: int) -> bool:
    if communicator.role not in BY_ROLE or communicator.nranks < 2 or communicator.role_sure is Confidence.LOW:
        return False
    ranks = communicator.ranks
    return bool(ranks.size == communicator.nranks and (ranks >= 0).all() and (ranks < world_size).all())


def _ordered(sizes: dict[str, int], groups: Sequence[Communicator], world_size: int) -> Layout | None:
    """The layout of these sizes whose groups are those of the job; None where no order makes them."""
    spread = [name for name in RANKED if sizes[name] > 1]
    texts = [name for name in NAMES if name not in spread]
    rows = [(group.role, np.asarray(group.ranks, np.int64)) for group in groups]
    for names in permutations(spread):
        try:
            layout = Layout(**sizes, order="-".join((*names, *texts))).for_world(world_size)
        except LayoutError:
            return None
        layout_groups = LayoutGroups(layout, world_size)
        if all(role in {layout_groups.role(name) for name in layout_groups.matching(ranks)} for role, ranks in rows):
            return layout
    return None


Slower = Callable[[DemandCost], Floats | None]
"""Of a demand, for each of its groups, the share of its bandwidth that is left (1 where nothing is lost); None where
that is not known."""


@dataclass(frozen=True, slots=True)
class ModelStep:
    """The step of one model: `base_us` is what it takes besides the communication that it waits for."""

    name: str
    base_us: float
    demands: tuple[DemandCost, ...]

    @property
    def step_us(self) -> float:
        return self.base_us + fsum(demand.step_us for demand in self.demands)

    def lost(self, left: Sequence[Floats]) -> float:
        """The share of a step that is lost, 0 to 1, where `left` of each demand's bandwidth is there."""
        slow = fsum(
            cost.demand.waited_us(float((cost.each_us / share).max())) if cost.each_us.size else 0.0
            for cost, share in zip(self.demands, left, strict=True)
        )
        return max(1.0 - self.step_us / (self.base_us + slow), 0.0)


@dataclass(frozen=True, slots=True)
class JobStep:
    """A job by its name. `models` are the step of what is trained, first and alone where it is given, else the rule of
    thumb's and those of other sizes; `model` says where what is given is from. `layout` says the dimensions in words,
    `source` where they are from. `sm` is the compute capability of the GPUs that the step is reckoned for."""

    job: str
    models: tuple[ModelStep, ...]
    layout: str
    source: str
    given: bool = False
    model: str = "given"
    sm: int = 0

    @property
    def basis(self) -> str:
        """What the share of a step rests on, in words."""
        named = [model.name for model in self.models]
        if self.given:
            return f"{self.layout} ({self.source}), the model {self.model}"
        if len(named) == 1:
            return f"{self.layout} ({self.source}), a model of {named[0]} parameters assumed"
        first, *others = named
        return f"{self.layout} ({self.source}); {first} parameters assumed, the range is with {' and '.join(others)}"

    def lost(self, slower: Slower) -> tuple[float, ...]:
        """By model the share of a step that is lost; () where one demand's loss is not known."""
        known: dict[tuple[str, str], Floats] = {}
        lost = []
        for model in self.models:
            for demand in model.demands:
                key = (demand.demand.dimension, demand.demand.collective)
                if key not in known:
                    share = slower(demand)
                    if share is None:
                        return ()
                    known[key] = share
            lost.append(
                model.lost([known[demand.demand.dimension, demand.demand.collective] for demand in model.demands])
            )
        return tuple(lost)


def model_step(name: str, cluster: Cluster, talk: Talk, assignment: Assignment) -> ModelStep | None:
    """The step of a model on the seats that the ranks have; None where nothing says what is computed."""
    if talk.base_us is None:
        return None
    demands = tuple(demand for demand in talk.demands if demand.talks)
    return ModelStep(name, talk.base_us, price_placement(cluster, demands, assignment).demands)


@dataclass(frozen=True, slots=True)
class PlacedJobs:
    """What the seats of the ranks say: the training `steps` of jobs, the `outcomes` of the checks of layouts, and what
    could not be judged."""

    steps: tuple[JobStep, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    not_observed: tuple[NotObserved, ...] = ()
