"""What a file says of a cluster: its nodes in order, how they are grouped, and which GPUs they offer.

Partitions go from the innermost to the outermost. What a link of a level can do is not in such files, except in those
of the fabric manager (`oversubscription`); it comes from the system that the nodes are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from topodiag.lazy import dataclass
from topodiag.model.cluster import Bools, Ints
from topodiag.model.errors import InputError
from topodiag.words.hosts import short_name
from topodiag.words.node_sets import MAX_NODES, short
from topodiag.words.units import first_of

MAX_GPUS = 4_000_000
"""Slots of a cluster: nodes times the most GPUs that any has."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Nodes that meet below one switch, in one rack or block. `group[node]` numbers the groups from 0 in the order of
    their first nodes; `names` are theirs. `oversubscription` is what enters a group over what leaves it upwards, 0
    where nobody says."""

    kind: str
    group: Ints
    names: tuple[str, ...] = ()
    oversubscription: float = 0.0

    @property
    def groups(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The nodes of a cluster as one file tells. `gpus[node]` is -1 where it does not say; `free` holds the free GPUs of
    the nodes for which it does. `domain` is the partition into NVLink domains, None where it says nothing. `nics` are
    those of a node for the job, as (count, Gb/s each), and `sample` a bundle of such a node; None and "" where nobody
    has looked. `rails` is 0 where the file does not say, and 1 where all NICs of a node are on one switch."""

    name: str
    format: str
    nodes: tuple[str, ...]
    partitions: tuple[Partition, ...] = ()
    domain: Partition | None = None
    gpus: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    free: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    rails: int = 0
    system: str = ""
    gpu: str = ""
    notes: tuple[str, ...] = ()
    nics: tuple[int, float] | None = None
    sample: str = ""

    def __post_init__(self) -> None:
        if self.gpus.size != len(self.nodes):
            object.__setattr__(self, "gpus", np.full(len(self.nodes), -1, np.int64))

    def subset(self, wanted: Sequence[str]) -> ClusterFacts:
        """Only these nodes, in the file's order. Raises InputError for one that it does not name."""
        index = {name: number for number, name in enumerate(self.nodes)}
        missing = [name for name in wanted if name not in index]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            hint = f"its nodes are {some_of(self.nodes)}"
            raise InputError(self.name, f"has no node {short(missing[0])!r}{more}", hint=hint)
        return self.chosen(sorted({index[name] for name in wanted}))

    def chosen(self, numbers: Sequence[int]) -> ClusterFacts:
        """The nodes with these numbers, in this order."""
        at = np.asarray(numbers, np.int64)
        return replace(
            self,
            nodes=tuple(self.nodes[old] for old in numbers),
            partitions=tuple(_cut(partition, at) for partition in self.partitions),
            domain=self.domain and _cut(self.domain, at),
            gpus=self.gpus[at],
            free={new: self.free[old] for new, old in enumerate(numbers) if old in self.free},
        )


def merged(network: ClusterFacts, machines: ClusterFacts) -> ClusterFacts:
    """The nodes that were looked at, in the order and with the levels of the network's file. Hosts match by their names
    or the first part of them. Raises InputError where the file names none of them."""
    by_name = {name: number for number, name in enumerate(network.nodes)}
    by_name = {short_name(name): number for name, number in by_name.items()} | by_name
    place = [by_name.get(name, by_name.get(short_name(name), -1)) for name in machines.nodes]
    texts = [name for name, at in zip(machines.nodes, place, strict=True) if at < 0]
    if len(texts) == len(place):
        hint = f"its nodes are {some_of(network.nodes)}"
        raise InputError(network.name, f"names no node of {machines.name} ({some_of(texts)})", hint=hint)
    order = sorted(range(len(place)), key=lambda number: (place[number] < 0, place[number]))
    ordered, chosen = machines.chosen(order), np.asarray([place[number] for number in order], np.int64)
    return replace(
        ordered,
        name=network.name,
        format=f"{network.format}, {machines.format}",
        partitions=tuple(_cut(partition, chosen) for partition in network.partitions) or ordered.partitions,
        domain=ordered.domain or (network.domain and _cut(network.domain, chosen)),
        rails=network.rails or machines.rails,
        notes=(*network.notes, *_joined_notes(network, machines, texts)),
    )


def _joined_notes(network: ClusterFacts, machines: ClusterFacts, texts: Sequence[str]) -> Iterator[str]:
    """What the reader should know of both; `apart` are the hosts that the network's file does not name."""
    yield from (note for note in machines.notes if not network.partitions or "no switches" not in note)
    if texts:
        yield f"not in {network.name}, each taken to be alone there: {some_of(texts)} ({len(texts)} of the nodes)"
    without = len(network.nodes) - len(machines.nodes) + len(texts)
    if without > 0:
        yield f"{without} nodes of {network.name} have no bundle and are left out"


def _cut(partition: Partition, chosen: Ints) -> Partition:
    """The groups of these nodes; -1 is a node that is alone."""
    numbers = [int(partition.group[node]) if node >= 0 else None for node in chosen.tolist()]
    cut = partition_of(partition.kind, numbers, ["" if at is None else partition.names[at] for at in numbers])
    return replace(partition, group=cut.group, names=cut.names)


def some_of(names: Sequence[str]) -> str:
    """The first few, for the reader."""
    return first_of([short(name) for name in names], 4)


def partition_of(kind: str, labels: Sequence[Hashable], names: Sequence[str] | None = None) -> Partition:
    """Nodes of one label are one group. None stands for "no label": such a node is a group of its own."""
    numbers: dict[Hashable, int] = {}
    group = np.empty(len(labels), np.int64)
    called: list[str] = []
    for node, label in enumerate(labels):
        key = ("alone", node) if label is None else label
        group[node] = numbers.setdefault(key, len(numbers))
        if len(called) < len(numbers):
            called.append("" if label is None else names[node] if names is not None else str(label))
    return Partition(kind, group, tuple(called))


def nested(kinds: Sequence[str], labels: Sequence[Sequence[str | None]]) -> tuple[Partition, ...]:
    """Partitions from labels, innermost first: groups of one name below different groups are different groups, so each
    level is coarser than the one before. A level that says the same as the one inside it is left out."""
    partitions: list[Partition] = []
    below: list[Hashable] = [("alone", node) for node in range(len(labels[0]) if labels else 0)]
    filled: list[list[Hashable]] = []
    for row in labels:  # without a label: what is below stands alone there
        below = [("only", under) if label is None else label for label, under in zip(row, below, strict=True)]
        filled.append(below)
    path: list[Hashable] = [0] * len(below)
    for kind, row, keys in reversed(list(zip(kinds, labels, filled, strict=True))):
        partition = partition_of(kind, list(zip(path, keys, strict=True)), [label or "" for label in row])
        path = partition.group.tolist()
        partitions.append(partition)
    partitions.reverse()
    return tuple(
        partition for number, partition in enumerate(partitions)
        if number == 0 or not np.array_equal(partition.group, partitions[number - 1].group)
    )  # fmt: skip


def usable(facts: ClusterFacts, per_node: int) -> Bools:
    """Which slot of which node can be used: `per_node` GPUs where the file does not say."""
    counts = np.where(facts.gpus < 0, per_node, facts.gpus)
    width = int(counts.max(initial=0))
    for gpus in facts.free.values():
        width = max(width, max(gpus, default=-1) + 1)
    if width * len(facts.nodes) > MAX_GPUS:
        raise InputError(facts.name, f"makes more than {MAX_GPUS} GPU slots")
    mask = np.arange(width)[None, :] < counts[:, None]
    for node, gpus in facts.free.items():
        mask[node] = False
        mask[node, list(gpus)] = True
    return mask


def check_nodes(name: str, nodes: Sequence[str], hint: str = "", lines: Sequence[int] = ()) -> None:
    """Raises InputError for no node, for too many, and for one that is listed twice."""
    if not nodes:
        raise InputError(name, "names no nodes", hint=hint)
    if len(nodes) > MAX_NODES:
        raise InputError(name, f"names more than {MAX_NODES} nodes")
    first: dict[str, int] = {}
    for place, node in enumerate(nodes):
        if first.setdefault(node, place) != place:
            where = f", first in line {lines[first[node]]}" if lines else ""
            line = lines[place] if lines else None
            raise InputError(name, f"names node {short(node)!r} twice{where}", line=line, hint="keep one of the two")
