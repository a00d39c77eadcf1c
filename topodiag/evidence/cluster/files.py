"""Which format a description of a cluster has, and its reader: one line per format; and the reader of the last.

A cluster as CSV: one row per node, a header, and a column for each level of the network.

Columns that are known: `node` (or host, hostname, name), `gpus`, `free` (`0-3,6`, or `none`), `nvlink` (or domain,
clique: the NVLink domain), `system`, `gpu`. Every other column whose name is a level's (leaf, switch, block, subblock,
rack, spine, pod, group, island, core, row, cell, zone, fabric) is one; the innermost is the one whose groups lie inside
those of the others. Semicolons and tabs separate cells too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from topodiag.evidence import marks as looks
from topodiag.evidence.cluster import fabric, kubernetes, slurm
from topodiag.evidence.interface import Blob
from topodiag.evidence.page import at_line, csv_rows
from topodiag.lazy import regex
from topodiag.model.cluster_facts import ClusterFacts, check_nodes, nested, partition_of
from topodiag.model.errors import InputError
from topodiag.words.node_sets import MAX_GPUS, MAX_NODES, expand, short
from topodiag.words.own_data import own_data

_MAX_CELL = 4096


def _read_csv(blob: Blob) -> ClusterFacts:
    """The cluster. Raises InputError with the line."""
    rows = csv_rows(blob)
    header = [cell.lower() for cell in rows[0][1]] if rows else []
    columns = {name: place for place, name in enumerate(header) if name}
    node_at = next((columns[name] for name in looks.NODE if name in columns), None)
    if node_at is None:
        raise InputError(blob.name, "has no column of nodes", hint="a header like node,gpus,rack,leaf")
    nodes = _nodes(blob, rows[1:], len(header), node_at)

    def column(name: str) -> list[str | None]:
        place = columns.get(name)
        return [row[place].strip()[:_MAX_CELL] or None for _, row, _ in nodes] if place is not None else []

    lines = [line for *_, line in nodes]
    labels = _innermost_first([(name, column(name)) for name in dict.fromkeys(header) if name in looks.LEVELS])
    domain = next((name for name in looks.DOMAIN if name in columns), None)
    return ClusterFacts(
        name=blob.name,
        format="CSV",
        nodes=tuple(name for name, *_ in nodes),
        partitions=nested([name for name, _ in labels], [row for _, row in labels]),
        domain=None if domain is None else partition_of("nvlink", column(domain)),
        gpus=np.asarray(_counts(blob, column("gpus"), lines), np.int64),
        free=_free(blob, column("free"), lines),
        system=_one(column("system")),
        gpu=_one(column("gpu")),
        notes=tuple(_notes(header, labels)[:20]),
    )


def _notes(header: list[str], labels: list[tuple[str, list[str | None]]]) -> list[str]:
    """Which columns are not read, and which levels some nodes lack."""
    notes = [f"column {name!r} is not read" for name in header if name and name not in looks.COLUMNS]
    return notes + [
        f"{row.count(None)} nodes without a {name}: each counts as alone there" for name, row in labels if None in row
    ]


def _nodes(blob: Blob, rows: list[tuple[int, list[str]]], width: int, node_at: int) -> list[tuple[str, list[str], int]]:
    """The name of each node, its row filled up to `width` cells, its line. Raises InputError with the line."""
    nodes: list[tuple[str, list[str], int]] = []
    for line, row in rows:
        padded = row + [""] * (width - len(row))
        with at_line(blob, line):
            nodes += ((name, padded, line) for name in expand(padded[node_at]))
        if len(nodes) > MAX_NODES:
            raise InputError(blob.name, f"names more than {MAX_NODES} nodes")
    check_nodes(blob.name, [name for name, *_ in nodes], lines=[line for *_, line in nodes])
    return nodes


def _innermost_first(labels: list[tuple[str, list[str | None]]]) -> list[tuple[str, list[str | None]]]:
    """The levels in their usual order, except where the groups of one lie inside those of the other."""
    levels = sorted(labels, key=lambda level: looks.LEVELS.index(level[0]))
    for _ in levels:
        for place in range(len(levels) - 1):
            inner, outer = levels[place][1], levels[place + 1][1]
            if _refines(outer, inner) and not _refines(inner, outer):
                levels[place], levels[place + 1] = levels[place + 1], levels[place]
    return levels


def _refines(inner: list[str | None], outer: list[str | None]) -> bool:
    """Whether every group of the first lies in one of the second."""
    home: dict[str | None, str | None] = {}
    return all(home.setdefault(one, other) == other for one, other in zip(inner, outer, strict=True))


def _counts(blob: Blob, cells: list[str | None], lines: list[int]) -> list[int]:
    numbers = []
    for cell, line in zip(cells, lines, strict=False):
        if cell is None:
            numbers.append(-1)
        elif cell.isascii() and cell.isdigit() and len(cell) < 5 and int(cell) <= MAX_GPUS:
            numbers.append(int(cell))
        else:
            raise InputError(blob.name, f"{short(cell)!r} is no count of GPUs", line=line)
    return numbers


def _free(blob: Blob, cells: list[str | None], lines: list[int]) -> dict[int, tuple[int, ...]]:
    free = {}
    for node, (cell, line) in enumerate(zip(cells, lines, strict=False)):
        with at_line(blob, line):
            # Spaces too: a comma needs quotes in CSV.
            gpus = slurm.free_gpus(",".join((cell or "all").replace(",", " ").split()))
        if gpus is not None:
            free[node] = gpus
    return free


def _one(cells: list[str | None]) -> str:
    """The value that all rows share, "" where they do not."""
    texts = {cell for cell in cells if cell}
    return next(iter(texts)) if len(texts) == 1 else ""


READERS: Mapping[str, tuple[Callable[[str], bool], Callable[[Blob], ClusterFacts]]] = {
    "kubectl get nodes": (looks.is_kubernetes, kubernetes.read),
    "ibnetdiscover": (looks.is_discover, fabric.read_discover),
    "iblinkinfo": (looks.is_linkinfo, fabric.read_linkinfo),
    "Slurm topology.yaml": (looks.is_slurm_yaml, slurm.read_yaml),
    "Slurm topology.conf": (looks.is_slurm_conf, slurm.read_conf),
    "CSV": (looks.is_csv, _read_csv),
}
"""By format, what knows it by the first 64 KiB, and its reader."""
_OTHERS = tuple((regex(other["pattern"]), other["hint"]) for other in own_data("evidence/cluster/others")["other"])
"""What people give in place of a cluster, and where it belongs."""
_HEAD = 1 << 16


def read_cluster(blob: Blob) -> ClusterFacts:
    """The cluster that a file describes. Raises InputError for a file of no known format, or a broken one."""
    head = Blob(blob.name, blob.data[:_HEAD]).text
    for recognises, read in READERS.values():
        if recognises(head):
            return read(blob)
    if not head.strip():
        raise InputError(blob.name, "is empty")
    belongs = next((hint for pattern, hint in _OTHERS if pattern.search(head)), "")
    raise InputError(
        blob.name,
        "is no description of a cluster that topodiag knows",
        hint=belongs
        or "Slurm topology.conf, topology.yaml or scontrol show topology, ibnetdiscover, iblinkinfo, kubectl get"
        " nodes -o json, or CSV with a header like node,gpus,rack,leaf",
    )
