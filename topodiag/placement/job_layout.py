"""The parallel sizes of a job that ran, told by its communicators: only where these leave no doubt.

Roles that are a guess tell nothing, and the sizes that are seen must make all ranks of the job: a log that shows tensor
groups alone does not say what the other dimension is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import prod

import numpy as np

from topodiag.model.dimensions import BY_ROLE, NAMES, RANKED, Role
from topodiag.model.finding import Confidence
from topodiag.model.job import Communicator, Job
from topodiag.model.layout import Layout, LayoutError
from topodiag.model.layout_groups import LayoutGroups

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
