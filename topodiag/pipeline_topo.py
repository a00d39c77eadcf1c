"""The wiring of `topodiag topo`: from a path to a topology, to NCCL's decisions on it, and to what a change would do.

>>> from topodiag.pipeline_topo import open_topology, predict_topology
>>> made = predict_topology(open_topology("fixture:dgx-h100-healthy"), nodes=2)
>>> made.graphs[0].channels, made.graphs[0].bw_inter
(10, 24.0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from topodiag.cost.nccl.changes import Change, ChangeError, apply
from topodiag.cost.nccl.detect import LackingError, tree_of
from topodiag.cost.nccl.prediction import Prediction
from topodiag.cost.nccl.versions import UnknownVersionError, minor_of
from topodiag.evidence.bundle import open_evidence
from topodiag.evidence.reader import ReadNode, read_node
from topodiag.model.errors import InputError
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.model.node import Node
from topodiag.pipeline import resolve, stdin


@dataclass(frozen=True, slots=True)
class Topology:
    """A topology as given: the node, the tree that NCCL would work on, and what was assumed for it."""

    name: str
    node: Node
    tree: Element
    assumed: tuple[str, ...] = ()
    read: ReadNode | None = None

    @property
    def env(self) -> dict[str, str]:
        """NCCL settings that the node itself carries."""
        return {setting.name: setting.value for setting in self.node.settings if setting.name.startswith("NCCL_")}


def open_topology(path: str, env: Mapping[str, str] | None = None) -> Topology:
    """A topology file, a bundle, `lstopo` XML, pasted tool output, `fixture:NAME`, or `-`. Raises InputError.

    `env` adds to the settings that the node carries; those that choose NICs matter to a node without a file.
    """
    read = read_node(open_evidence(resolve(path), stdin() if path == "-" else None))
    node = read.node
    settings = {setting.name: setting.value for setting in node.settings} | dict(env or {})
    try:
        found = tree_of(node, settings)
    except LackingError as lacking:
        hint = "it takes a topology file (NCCL_TOPO_DUMP_FILE), or a bundle: topodiag scan --save node.tar.gz"
        raise InputError(path, f"is not enough for NCCL's topology: {lacking}", hint=hint) from None
    return Topology(path, node, found.tree, found.assumed, read)


def check_version(version: str) -> int:
    """The minor version, or InputError-like usage trouble as ValueError with a plain message."""
    try:
        return minor_of(version)
    except UnknownVersionError as unknown:
        raise ValueError(str(unknown)) from None


def predict_topology(
    topology: Topology,
    *,
    nodes: int = 1,
    version: str = "2.28",
    env: Mapping[str, str] | None = None,
    explain: bool = False,
    sizes: Sequence[int] = (),
) -> Prediction:
    """NCCL's decisions for so many nodes of this topology. `env` adds to the settings that the node carries; `sizes`
    are bytes to choose for, by default the sweep of nccl-tests."""
    from topodiag.cost.nccl.predict import predict  # noqa: PLC0415 - the searches are asked for here only

    node = _with_tree(topology.node, topology.tree, topology.name)
    settings = topology.env | dict(env or {})
    asked = {"sizes": tuple(sizes)} if sizes else {}
    return predict(node, nodes=nodes, version=version, env=settings, explain=explain, **asked)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A prediction before and after some changes, with the choice for an all-reduce of `size` bytes."""

    size: int
    changes: tuple[Change, ...]
    before: Prediction
    after: Prediction


def what_if(
    topology: Topology,
    changes: Sequence[Change],
    *,
    size: int = 1 << 30,
    nodes: int = 1,
    version: str = "2.28",
    env: Mapping[str, str] | None = None,
) -> WhatIf:
    """What the changes would do. Raises ChangeError where one names what is not there."""
    settings = topology.env | dict(env or {})
    changed = apply(topology.tree, changes, settings)
    before = predict_topology(topology, nodes=nodes, version=version, env=settings, sizes=(size,))
    other = replace(topology, tree=changed.tree)
    after = predict_topology(other, nodes=nodes, version=version, env=changed.env, sizes=(size,))
    return WhatIf(size, tuple(changes), before, after)


def _with_tree(node: Node, tree: Element, name: str) -> Node:
    """The node with this tree; the refusals of its file hold for the file alone, so they go with another tree."""
    if node.nccl_file is not None and node.nccl_file.tree is tree:
        return node
    return replace(node, nccl_file=NcclFile(name, tree))


__all__ = ["ChangeError", "Topology", "WhatIf", "check_version", "open_topology", "predict_topology", "what_if"]
