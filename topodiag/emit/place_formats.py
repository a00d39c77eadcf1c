"""Every format of a map by its name; what is written is read back first and must be the same map."""

from __future__ import annotations

import ast
from collections.abc import Callable

import numpy as np

from topodiag.emit.kubernetes import index_map
from topodiag.emit.new_group import members, new_group
from topodiag.emit.place_map import UnwritableMapError, to_json
from topodiag.emit.rank_files import Written, hostfile, mpich_hostfile, rankfile, slurm_flags, slurm_hostfile, torchrun
from topodiag.evidence.interface import Blob
from topodiag.evidence.layout.rank_files import (
    read_hostfile,
    read_index_map,
    read_map,
    read_rankfile,
    read_slurm_hostfile,
    read_torchrun,
)
from topodiag.model.place_map import PlaceMap, RankHosts
from topodiag.words.node_sets import expand

FORMATS: dict[str, tuple[Callable[[PlaceMap], Written], Callable[[Blob], RankHosts] | None]] = {
    "slurm-hostfile": (slurm_hostfile, read_slurm_hostfile),
    "slurm-flags": (slurm_flags, None),
    "rankfile": (rankfile, read_rankfile),
    "hostfile": (hostfile, read_hostfile),
    "mpich": (mpich_hostfile, read_hostfile),
    "torchrun": (torchrun, read_torchrun),
    "kubernetes": (index_map, read_index_map),
    "new-group": (new_group, None),
    "json": (lambda place: Written(to_json(place)), read_map),
}
"""How each is written, and how it is read back to ranks on hosts."""


def write(place: PlaceMap, name: str) -> Written:
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
