"""Small random clusters and jobs, and a search through all their placements."""

import numpy as np

from topodiag.model.cluster import Cluster, Demand, Level
from topodiag.placement.price import pairs_of, span_time_us

MOST_RANKS = 16
MOST_VISITS = 400_000


class TooLargeError(Exception):
    """The search was given up."""


def random_case(seed: int, most: int = MOST_RANKS) -> tuple[Cluster, list[Demand], int]:
    """A cluster of two to five nodes with uneven free GPUs under one or two leaves, and a job whose ranks are numbered
    at random, with tensor, pipeline and data dimensions of random sizes and weights."""
    random = np.random.default_rng(seed)
    while True:
        sizes = random.choice([1, 2, 3, 4], size=3)
        world = int(sizes.prod())
        if 4 <= world <= most:
            break
    free = random.integers(1, 9, size=int(random.integers(2, 6)))
    while free.sum() < world:
        free = np.minimum(free + 1, 8) if (free < 8).any() else np.append(free, 8)
    usable = np.arange(8)[None, :] < free[:, None]
    nodes = np.arange(len(free))
    levels = (
        Level("leaf", random.integers(0, 2, size=len(free)), 5.0, 45.0),
        Level("spine", np.zeros(len(free), np.int64), 7.0, float(random.choice([11.0, 22.5, 45.0]))),
    )
    machines = Cluster(tuple(f"n{n}" for n in nodes), usable, nodes, levels, 1.0, float(random.choice([50.0, 400.0])))
    ranks = random.permutation(world).reshape(sizes)
    rows = [np.moveaxis(ranks, axis, 2).reshape(-1, sizes[axis]) for axis in range(3)]
    size = 2.0 ** random.integers(18, 28, size=3)
    demands = [
        Demand("tp", rows[0], "all_reduce", size[0], calls=float(random.integers(1, 100)), keep_together=True),
        Demand("pp", rows[1], "send_recv", size[1], calls=float(random.integers(1, 20))),
        Demand("dp", rows[2], "all_reduce", size[2], calls=1.0, exposed=0.5),
    ]
    return machines, [demand for demand in demands if demand.size > 1], world


def better(machines: Cluster, demands: list[Demand], world: int, than_us: float) -> float | None:
    """The step of a placement below `than_us`, the best there is; None where there is none. Every sharing of the ranks
    over the nodes is tried that what is laid already does not rule out; empty nodes that are alike count once. Raises
    TooLargeError after MOST_VISITS."""
    rows = [pairs_of(demand.groups) if demand.collective == "send_recv" else demand.groups for demand in demands]
    keys = [_group_of(demand.groups, world) for demand in demands[::-1]]
    order = np.lexsort([np.arange(world), *keys]).tolist()
    place = {rank: number for number, rank in enumerate(order)}
    ready: list[list[tuple[int, list[int]]]] = [[] for _ in order]
    for number, ndarray in enumerate(rows):
        for row in ndarray.tolist():
            ready[max(place[rank] for rank in row)].append((number, row))
    floors = [_least(machines, demand, row.shape[1]) for demand, row in zip(demands, rows, strict=True)]
    visits = [MOST_VISITS]
    free = machines.usable.sum(axis=1).tolist()
    full = list(free)
    leaf = machines.levels[0].group.tolist()
    node = [-1] * world
    known: dict[tuple[int, int, int, int], float] = {}
    best: list[float] = [than_us]

    def took(number: int, row: list[int]) -> float:
        where = [node[rank] for rank in row]
        counts = [where.count(number) for number in set(where)]
        level = 0 if len(counts) == 1 else 1 if len({leaf[number] for number in where}) == 1 else 2
        key = (number, len(counts), min(counts), level)
        if key not in known:
            known[key] = span_time_us(machines, demands[number], len(row), *key[1:])
        return known[key]

    def step(slowest: list[float]) -> float:
        return sum(demand.waited_us(time) for demand, time in zip(demands, slowest, strict=True))

    def search(at: int, slowest: list[float]) -> None:
        visits[0] -= 1
        if visits[0] < 0:
            raise TooLargeError
        if at == world:
            best[0] = step(slowest)
            return
        tried = set()
        for index in range(len(free)):
            alike = (leaf[index], full[index]) if free[index] == full[index] else index
            if not free[index] or alike in tried:
                continue
            tried.add(alike)
            node[order[at]] = index
            now = list(slowest)
            for number, row in ready[at]:
                now[number] = max(now[number], took(number, row))
            if step(now) < best[0] * (1 - 1e-12):
                free[index] -= 1
                search(at + 1, now)
                free[index] += 1

    search(0, floors)
    return best[0] if best[0] < than_us else None


def _least(machines: Cluster, demand: Demand, size: int) -> float:
    """The fastest that any group of this size can be: in one node where one is large enough."""
    most = int(machines.usable.sum(axis=1).max())
    if size <= most:
        return span_time_us(machines, demand, size, 1, size, 0)
    return min(span_time_us(machines, demand, size, -(-size // index), index, 1) for index in range(1, most + 1))


def _group_of(groups: np.ndarray, world: int) -> np.ndarray:
    ndarray = np.full(world, -1, np.int64)
    for number, row in enumerate(groups.tolist()):
        ndarray[row] = number
    return ndarray
