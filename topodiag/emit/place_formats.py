"""Every format of a map by its name; what is written is read back first and must be the same map. Groups for PyTorch
are the lists of ranks that torch.distributed.new_group takes, and a DeviceMesh of the dimensions.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable

import numpy as np

from topodiag.emit import rank_files as writers
from topodiag.emit.place_map import UnwritableMapError, check, to_json
from topodiag.emit.rank_files import Written
from topodiag.evidence.interface import Blob
from topodiag.evidence.layout import rank_files as readers
from topodiag.lazy import regex
from topodiag.model.cluster import Ints, PlaceMap, RankHosts, ranks_on
from topodiag.placement.price import by_family
from topodiag.words.node_sets import expand
from topodiag.words.own_data import own_text

_NAME = regex(r"[^A-Za-z0-9]+")


def members(number: Ints) -> list[list[int]]:
    """The ranks of each group, in ascending order."""
    inside = np.flatnonzero(number >= 0)
    return [part.tolist() for part in by_family(inside, number)] if inside.size else []


def new_group(place: PlaceMap) -> Written:
    """A module with GROUPS by dimension, a function that makes the process groups, and a DeviceMesh where the
    dimensions form a grid. Raises UnwritableMapError for a map without groups."""
    check(place)
    if not place.groups:
        raise UnwritableMapError("the map has no groups", hint="give --tp, --pp, ... or --groups where it is solved")
    lines: list[str] = []
    for name, number in place.groups.items():
        rows = [f"        {ranks}," for ranks in members(number)]
        lines += [f"    {_key(name)!r}: [", *rows, "    ],"]
    text = own_text("emit/new_group.txt").format(world=place.ranks, groups="\n".join(lines))
    grid = _grid(place)
    if grid is None:
        return Written(text, "", ("the dimensions form no grid: there is no DeviceMesh of them",))
    names, mesh = grid
    sizes = " x ".join(f"{name} {size}" for name, size in zip(names, mesh.shape, strict=True))
    given = {"sizes": sizes, "ranks": mesh.ravel().tolist(), "shape": mesh.shape, "names": names}
    return Written(text + own_text("emit/device_mesh.txt").format(**given))


def _key(name: str) -> str:
    return _NAME.sub("_", name).strip("_") or "group"


def _grid(place: PlaceMap) -> tuple[tuple[str, ...], Ints] | None:
    """Names and ranks of the mesh: the dimensions whose sizes multiply to the world, the one with the largest stride
    first."""
    grid = []
    for name, number in place.groups.items():
        groups = members(number)
        sizes = {len(group) for group in groups}
        if len(sizes) != 1 or len(groups) * len(groups[0]) != place.ranks:
            continue
        rows = np.asarray(groups, np.int64)
        place_in = np.empty(place.ranks, np.int64)
        place_in[rows] = np.arange(rows.shape[1])[None, :]
        stride = int(rows[0, 1] - rows[0, 0]) if rows.shape[1] > 1 else 0
        grid.append((stride, _key(name), rows.shape[1], place_in))
    grid.sort(key=lambda row: -row[0])
    shape = tuple(size for _, _, size, _ in grid)
    if not grid or int(np.prod(shape)) != place.ranks:
        return None
    flat = np.ravel_multi_index([where for *_, where in grid], shape)
    if np.unique(flat).size != place.ranks:
        return None
    mesh = np.empty(place.ranks, np.int64)
    mesh[flat] = np.arange(place.ranks)
    mesh_ranks = mesh.reshape(shape)
    for axis, (_, name, size, _) in enumerate(grid):
        # Each line of the mesh along this axis has to be a group of the dimension.
        number = next(ids for key, ids in place.groups.items() if _key(key) == name)
        lines = number[np.moveaxis(mesh_ranks, axis, -1).reshape(-1, size)]
        if (lines != lines[:, :1]).any():
            return None
    return tuple(name for _, name, *_ in grid), mesh_ranks


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
