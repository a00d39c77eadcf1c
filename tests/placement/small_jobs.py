"""Small clusters of two levels, and jobs of tensor, pipeline and data parallelism on them."""

import numpy as np

from topodiag.model.cluster import Cluster, Demand, Level


def cluster(free: list[int], leaf: int, rails: int = 0, *, spine_gbs: float = 22.5) -> Cluster:
    """Nodes with so many free GPUs of 8, `leaf` of them below a switch."""
    numbers = np.arange(len(free))
    levels = (Level("leaf", numbers // leaf, 5.0, 45.0), Level("spine", np.zeros(len(free), np.int64), 7.0, spine_gbs))
    usable = np.arange(8)[None, :] < np.asarray(free)[:, None]
    return Cluster(tuple(f"n{n}" for n in numbers), usable, numbers, levels, 1.0, 400.0, rails)


def job(tp: int, pp: int, dp: int) -> list[Demand]:
    ranks = np.arange(tp * pp * dp).reshape(pp, dp, tp)
    demands = [
        Demand("tp", ranks.reshape(-1, tp), "all_reduce", 64e6, calls=160, keep_together=True),
        Demand("pp", np.moveaxis(ranks, 0, 2).reshape(-1, pp), "send_recv", 32e6, calls=16),
        Demand("dp", np.moveaxis(ranks, 1, 2).reshape(-1, dp), "all_reduce", 1e9, exposed=0.5),
    ]
    return [demand for demand in demands if demand.size > 1]
