"""An index map for Kubernetes: the pod of each completion index of an indexed Job, JobSet or MPIJob, and its node."""

from __future__ import annotations

import json

import numpy as np

from topodiag.emit.place_map import check
from topodiag.emit.rank_files import Written
from topodiag.model.place_map import PlaceMap


def index_map(place: PlaceMap) -> Written:
    """One pod per host with its ranks and GPUs, in the order of their first ranks."""
    check(place)
    order = np.argsort(place.host, kind="stable")
    members = np.split(order, np.cumsum(place.per_host)[:-1])
    pods = [
        {
            "index": number,
            "node": host,
            "nodeSelector": {"kubernetes.io/hostname": host},
            "ranks": ranks.tolist(),
            "gpus": place.gpu[ranks].tolist() if (place.gpu[ranks] >= 0).all() else None,
        }
        for number, (host, ranks) in enumerate(zip(place.hosts, members, strict=True))
    ]
    lines = ",\n".join(json.dumps(pod) for pod in pods)
    notes = ["a Job has one nodeSelector for all its indices: pin each index by a replicated job of one pod, or by a"
             " scheduler that reads this map"]  # fmt: skip
    if not place.consecutive:
        notes.append("ranks of a pod do not follow one another: set RANK per process from the map, not from the index")
    return Written(f'{{"ranks": {place.ranks}, "pods": [\n{lines}\n]}}\n', "", tuple(notes))
