"""Every format of a map by its name; what is written is read back first and must be the same map."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable

import numpy as np

from topodiag.emit import rank_files as writers
from topodiag.emit.new_group import members, new_group
from topodiag.emit.place_map import UnwritableMapError, to_json
from topodiag.evidence.interface import Blob
from topodiag.evidence.layout import rank_files as readers
from topodiag.model.cluster import PlaceMap, RankHosts, ranks_on
from topodiag.words.node_sets import expand


def _of_pods(blob: Blob) -> RankHosts:
    """The ranks of an index map."""
    rows: list[tuple[int, str, int]] = []
    for pod in json.loads(blob.data)["pods"]:
        gpus = pod["gpus"] or [-1] * len(pod["ranks"])
        rows += ((rank, pod["node"], gpu) for rank, gpu in zip(pod["ranks"], gpus, strict=True))
    rows.sort()
    return ranks_on(blob.name, [host for _, host, _ in rows], [gpu for *_, gpu in rows])


FORMATS: dict[str, tuple[Callable[[PlaceMap], writers.Written], Callable[[Blob], RankHosts] | None]] = {
    "slurm-hostfile": (writers.slurm_hostfile, readers.read_slurm_hostfile),
    "slurm-flags": (writers.slurm_flags, None),
    "rankfile": (writers.rankfile, readers.read_rankfile),
    "hostfile": (writers.hostfile, readers.read_hostfile),
    "mpich": (writers.mpich_hostfile, readers.read_hostfile),
    "torchrun": (writers.torchrun, readers.read_torchrun),
    "kubernetes": (writers.index_map, _of_pods),
    "new-group": (new_group, None),
    "json": (lambda place: writers.Written(to_json(place)), readers.read_map),
}
"""How each is written, and how it is read back to ranks on hosts."""


def write(place: PlaceMap, name: str) -> writers.Written:
    """The map in a format, read back. Raises UnwritableMapError."""
    make, read = FORMATS[name]
    written = make(place)
    blob = Blob(name, written.text.encode())
    if read is not None:
        again = read(blob)
        same = _hosts_again(place, again) if again.whole else _ranks_again(place, again)
    elif name == "slurm-flags":
        listed = next(line for line in written.text.splitlines() if line.startswith("--nodelist="))
        same = set(expand(listed.partition("=")[2])) == set(place.hosts)
    else:
        same = _groups_again(place, written.text)
    if not same:
        raise UnwritableMapError(f"the {name} would be read as another map")
    return written


def _ranks_again(place: PlaceMap, again: RankHosts) -> bool:
    if again.ranks != place.ranks or again.hosts != place.hosts or not np.array_equal(again.host, place.host):
        return False
    seated = again.gpu >= 0
    return bool((again.gpu[seated] == place.gpu[seated]).all())


def _hosts_again(place: PlaceMap, again: RankHosts) -> bool:
    """Of a list of hosts: each stands for its ranks, which follow one another."""
    return tuple(again.hosts[host] for host in again.host.tolist()) == place.hosts and place.consecutive


def _groups_again(place: PlaceMap, text: str) -> bool:
    tree = ast.parse(text)
    assigned = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    groups = ast.literal_eval(assigned["GROUPS"])
    return list(groups.values()) == [members(number) for number in place.groups.values()]
