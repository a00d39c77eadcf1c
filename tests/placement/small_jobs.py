"""Small clusters of two levels, and jobs of tensor, pipeline and data parallelism on them."""

from collections.abc import Sequence

import numpy as np

from topodiag.model.cluster import Assignment, Cluster, Demand, Level


def cluster(
    free: Sequence[int], leaf: int | Sequence[int] = 0, rails: int = 0, *, spine_gbs: float = 22.5, slots: int = 8
) -> Cluster:
    """Nodes with so many free GPUs of `slots`; so many nodes below a switch, or the switch of each; 0: one for all."""
    numbers = np.arange(len(free))
    below = numbers // (leaf or len(free)) if isinstance(leaf, int) else np.asarray(leaf)
    levels = (Level("leaf", below, 5.0, 45.0), Level("spine", numbers * 0, 7.0, spine_gbs))
    usable = np.arange(slots)[None, :] < np.asarray(free)[:, None]
    return Cluster(tuple(f"n{n}" for n in numbers), usable, numbers, levels, 1.0, 400.0, rails)


def placed(*slots: int) -> Assignment:
    return Assignment(np.asarray(slots, np.int64))


def job(tp: int, pp: int, dp: int) -> list[Demand]:
    ranks = np.arange(tp * pp * dp).reshape(pp, dp, tp)
    demands = [
        Demand("tp", ranks.reshape(-1, tp), "all_reduce", 64e6, calls=160, keep_together=True),
        Demand("pp", np.moveaxis(ranks, 0, 2).reshape(-1, pp), "send_recv", 32e6, calls=16),
        Demand("dp", np.moveaxis(ranks, 1, 2).reshape(-1, dp), "all_reduce", 1e9, exposed=0.5),
    ]
    return [demand for demand in demands if demand.size > 1]
