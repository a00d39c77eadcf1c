"""Slurm's topology.conf (tree and block), topology.yaml, scontrol show topology: switches, their children, blocks.

Formats: the topology.conf and topology.yaml pages of Slurm 25.05. Switches name nodes or switches as node sets; blocks
are joined in the file's order into larger ones of the further sizes (`BlockSizes=18,144`).

A file of the free GPUs has a node set per line and the free GPUs behind it: `gpu[01-04] 0-3`, `gpu05 all`, `gpu06
slots=4` (the first four). Without GPUs all of the node are meant. Nodes that the file does not name are not free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from topodiag.evidence.interface import Blob, to_int
from topodiag.evidence.page import at_line, bare_lines
from topodiag.evidence.yaml_values import load_yaml, word
from topodiag.lazy import dataclass
from topodiag.model.cluster_facts import ClusterFacts, check_nodes, nested
from topodiag.model.errors import InputError
from topodiag.words.node_sets import MAX_GPUS, MAX_NODES, NodeSetError, expand, gpu_list, short
from topodiag.words.own_data import patterns

_LIKE = patterns("evidence/lines", "slurm")


def read_free(blob: Blob) -> dict[str, tuple[int, ...] | None]:
    """The free GPUs by node, None for all that it has. Raises InputError with the line."""
    free: dict[str, tuple[int, ...] | None] = {}
    for line, bare in bare_lines(blob):
        match = _LIKE["line"].fullmatch(bare)
        with at_line(blob, line):
            if match is None:
                raise NodeSetError(f"{short(bare)!r} is no node with its free GPUs: write gpu[01-04] 0-3")
            gpus = free_gpus((match[2] or "all").strip())
            for node in expand(match[1]):
                if node in free:
                    raise NodeSetError(f"names node {short(node)!r} twice")
                free[node] = gpus
    if not free:
        raise InputError(blob.name, "names no free GPU", hint="a line per node: gpu[01-04] 0-3")
    return free


def free_gpus(text: str) -> tuple[int, ...] | None:
    """`0-3`, `none`, `slots=4`; None for `all`. Raises NodeSetError."""
    if text.lower() == "all":
        return None
    if text.lower() in ("none", "-"):
        return ()
    slots, _, count = text.replace(" ", "").partition("=")
    known = to_int(count, low=0) if slots.lower() == "slots" else None
    return gpu_list(text) if known is None else tuple(range(min(known, MAX_GPUS)))


_KINDS = ("leaf", "spine", "core")
"""Of the first levels of a tree; further ones are `fabric`."""
MAX_LEVELS = 16
"""Slurm's own trees have three or four."""
MAX_LISTED = 5 * MAX_NODES
"""Names that all lines of a file list together: `scontrol show topology` lists each node once for each level."""


_Blocks = list[tuple[str, tuple[str, ...]]]
"""Blocks in their order, each with its nodes."""


@dataclass(slots=True)
class _Topology:
    """What a file says: nodes and child switches by switch, and the line that each is on; blocks, and their sizes."""

    blob: Blob
    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    children: dict[str, tuple[str, ...]] = field(default_factory=dict)
    line: dict[str, int | None] = field(default_factory=dict)
    blocks: _Blocks = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    shown: set[int] = field(default_factory=set)
    """What scontrol says of each block in place of BlockSizes."""
    listed: int = 0

    def take(self, words: Mapping[str, str], line: int | None) -> bool:
        """Take in a line by its words; False where it is none of such a file. Raises InputError."""
        if "blocksize" in words or "aggregatedblock" in words:
            self.shown.update(_sizes(self.blob, words.get("blocksize", "").split(","), line))
        if "switchname" in words:
            name = words["switchname"]
            if not name:
                raise InputError(self.blob.name, "has a switch without a name", line=line)
            if name in self.line:
                raise InputError(self.blob.name, f"names switch {short(name)!r} twice", line=line)
            self.line[name] = line
            self.nodes[name] = self.names(words.get("nodes", ""), line)
            self.children[name] = self.names(words.get("switches", ""), line)
        elif "blockname" in words:
            self.blocks.append((words["blockname"], self.names(words.get("nodes", ""), line)))
        elif "blocksizes" in words:
            self.sizes = _sizes(self.blob, words["blocksizes"].split(","), line)
        return not words.keys().isdisjoint(("switchname", "aggregatedblock", "blockname", "blocksizes"))

    def names(self, text: str, line: int | None) -> tuple[str, ...]:
        """A set of names. Raises InputError for what is none, and where all sets of the file are too many."""
        with at_line(self.blob, line):
            names = expand(text) if text else ()
        self.listed += len(names)
        if self.listed > MAX_LISTED:
            raise InputError(self.blob.name, f"lists more than {MAX_LISTED} names", line=line)
        return names


def read_conf(blob: Blob) -> ClusterFacts:
    """The cluster of a topology.conf. Raises InputError with the line."""
    topology = _Topology(blob)
    for line, text in _logical_lines(blob):
        if not topology.take({match[1].lower(): match[2] for match in _LIKE["word"].finditer(text)}, line):
            raise InputError(blob.name, f"{short(text.strip())!r} is no line of a topology.conf", line=line)
    if topology.line and topology.blocks:
        raise InputError(blob.name, "has switches and blocks: Slurm takes one of them")
    sizes = topology.sizes or sorted(topology.shown)
    return _of_blocks(blob, topology.blocks, sizes) if topology.blocks else _of_tree(topology)


def read_yaml(blob: Blob) -> ClusterFacts:
    """The cluster of a topology.yaml: the default topology, else the first that has nodes. Raises InputError."""
    document = load_yaml(blob)
    entries = [entry for entry in document if isinstance(entry, Mapping)] if isinstance(document, list) else []
    real = [
        entry for entry in entries if isinstance(entry.get("tree"), Mapping) or isinstance(entry.get("block"), Mapping)
    ]
    if not real:
        raise InputError(blob.name, "has no tree and no block topology", hint="a flat one says nothing of the network")
    chosen = next((entry for entry in real if entry.get("cluster_default") is True), real[0])
    notes = (f"of {len(entries)} topologies, {word(chosen.get('topology'))!r} is read",) if len(entries) > 1 else ()
    topology = _Topology(blob)
    if isinstance(chosen.get("tree"), Mapping):
        for entry in _entries(blob, chosen["tree"].get("switches"), "switches"):
            words = {"switchname": "switch", "nodes": "nodes", "switches": "children"}
            topology.take({name: _text(entry.get(key)) for name, key in words.items()}, None)
        return _of_tree(topology, notes)
    block = chosen["block"]
    for entry in _entries(blob, block.get("blocks"), "blocks"):
        topology.take({"blockname": _text(entry.get("block")), "nodes": _text(entry.get("nodes"))}, None)
    sizes = [size for size in _text(block.get("block_sizes", [])).split(",") if size]
    return _of_blocks(blob, topology.blocks, _sizes(blob, sizes, None), notes)


def _logical_lines(blob: Blob) -> Iterator[tuple[int, str]]:
    """Lines without comments and blanks; one that ends in a backslash goes on in the next."""
    first, kept = 0, ""
    for line, text in blob.lines():
        bare = text.partition("#")[0].rstrip()
        first = first or line
        if bare.endswith("\\"):
            kept += bare[:-1] + " "
            continue
        whole = kept + bare
        if whole.strip():
            yield first, whole
        first, kept = 0, ""
    if kept.strip():
        yield first, kept


def _text(value: Any) -> str:
    """A name, or a list of them as one node set; "" for anything else."""
    values = value[:MAX_NODES] if isinstance(value, list) else [value]
    return ",".join(str(value) for value in values if isinstance(value, str | int) and not isinstance(value, bool))


def _entries(blob: Blob, value: object, what: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise InputError(blob.name, f"{what} is no list of entries")
    return value


def _sizes(blob: Blob, words: list[str], line: int | None) -> list[int]:
    # int() takes fewer characters for blanks than strip().
    bare = [word.strip() for word in words]
    numbers = [int(word) if word.isascii() and word.isdigit() and len(word) < 8 else 0 for word in bare]
    if not all(numbers) or numbers != sorted(set(numbers)):
        raise InputError(blob.name, f"BlockSizes {short(','.join(words))!r} do not grow", line=line)
    return numbers


def _of_tree(tree: _Topology, notes: tuple[str, ...] = ()) -> ClusterFacts:
    blob, parent = tree.blob, _parents(tree)
    above = {name: _above(tree, parent, name) for name in tree.line}
    leaf_of: dict[str, str] = {}
    twice: dict[str, tuple[str, str]] = {}
    for name, nodes in tree.nodes.items():
        for node in nodes:
            if node in leaf_of and name not in above[leaf_of[node]] and leaf_of[node] not in above[name]:
                twice.setdefault(node, (leaf_of[node], name))
            # A node may be listed with the switches above its leaf too; the lowest one is its leaf.
            if node not in leaf_of or len(above[name]) > len(above[leaf_of[node]]):
                leaf_of[node] = name
    check_nodes(blob.name, list(leaf_of), "SwitchName=leaf1 Nodes=gpu[01-32]")
    depth = max(len(above[name]) for name in leaf_of.values()) + 1
    chains = [(leaf, *above[leaf]) for leaf in leaf_of.values()]
    # Levels count from the leaves: of a leaf that hangs higher than others, the missing ones are its own.
    labels = [[chain[min(number, len(chain) - 1)] for chain in chains] for number in range(depth)]
    kinds = [_KINDS[number] if number < len(_KINDS) else "fabric" for number in range(depth)]
    if twice:
        node, (one, other) = next(iter(twice.items()))
        more = f", and {len(twice) - 1} more nodes are so" if len(twice) > 1 else ""
        words = f"node {short(node)} is below {short(one)} and {short(other)}{more}"
        notes = (*notes, f"{words}: the lowest switch counts, else the first")
    return ClusterFacts(blob.name, "Slurm tree", tuple(leaf_of), nested(kinds, labels), notes=notes)


def _parents(tree: _Topology) -> dict[str, str]:
    """The switch above each. Raises InputError where that is no tree."""
    parent: dict[str, str] = {}
    for name, children in tree.children.items():
        for child in children:
            if child not in tree.line:
                why = f"switch {short(name)!r} has a child {short(child)!r} that nobody describes"
                raise InputError(tree.blob.name, why, line=tree.line[name])
            if child in parent and parent[child] != name:
                why = f"switch {short(child)!r} is below {short(parent[child])!r} and {short(name)!r}"
                raise InputError(tree.blob.name, f"{why}: no tree", line=tree.line[name])
            parent[child] = name
    return parent


def _above(tree: _Topology, parent: Mapping[str, str], name: str) -> tuple[str, ...]:
    """The switches above one, the nearest first. Raises InputError for a cycle."""
    texts: list[str] = []
    while name in parent:
        start, name = name, parent[name]
        if name in texts or name == start:
            raise InputError(tree.blob.name, f"the switches form a cycle through {short(name)!r}", line=tree.line[name])
        texts.append(name)
        if len(texts) > MAX_LEVELS:
            raise InputError(tree.blob.name, f"the switches are more than {MAX_LEVELS} levels", line=tree.line[name])
    return tuple(texts)


def _of_blocks(blob: Blob, blocks: _Blocks, sizes: list[int], notes: tuple[str, ...] = ()) -> ClusterFacts:
    names = [name for name, _ in blocks]
    if not all(names) or len(set(names)) < len(names):
        raise InputError(blob.name, "has a block without a name, or two of one")
    nodes = [node for _, members in blocks for node in members]
    check_nodes(blob.name, nodes, "BlockName=b1 Nodes=gpu[01-18]")
    labels = [[name for name, members in blocks for _ in members]]
    kinds = ["block"]
    base = sizes[0] if sizes else 0
    for size in sizes[1:]:
        # Larger blocks are so many base blocks in a row.
        joined = max(size // base, 1)
        labels.append([f"blocks of {size} #{number // joined + 1}" for number, (_, members) in enumerate(blocks)
                       for _ in members])  # fmt: skip
        kinds.append("group")
    return ClusterFacts(blob.name, "Slurm block", tuple(nodes), nested(kinds, labels), notes=notes)
