"""A topology as it is given, and NCCL's decisions on it.

>>> from topodiag.app.case.topology import open_topology, predict_topology
>>> made = predict_topology(open_topology("fixture:dgx-h100-healthy"), nodes=2)
>>> made.graphs[0].channels, made.graphs[0].bw_inter
(8, 48.0)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from topodiag.app.case.opening import one_node
from topodiag.checks.shared.topo_file import alone
from topodiag.lazy import dataclass
from topodiag.model.errors import InputError
from topodiag.model.finding import Input
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.model.nccl_versions import DEFAULT_VERSION, Feature, has, minor_of
from topodiag.model.node import Node
from topodiag.model.provenance import NotObserved
from topodiag.nccl.prediction import Prediction
from topodiag.nccl.topo.changes import by_hca_list
from topodiag.nccl.topo.detect import Detected, LackingError, tree_of
from topodiag.nccl.topo.devices_added import UnfitSystemError, bare_gpus, with_devices
from topodiag.nccl.topo.infer_instance import instance_of_file
from topodiag.nccl.topo.merge import loaded
from topodiag.nccl.topo.printed import device_names
from topodiag.words.units import plural


@dataclass(frozen=True, slots=True)
class Topology:
    """A topology as given: the node, the tree that NCCL would work on, and what was assumed for it."""

    name: str
    node: Node
    tree: Element
    assumed: tuple[str, ...] = ()
    inputs: tuple[Input, ...] = ()
    """The pieces of evidence that it was read from."""

    @property
    def env(self) -> dict[str, str]:
        """NCCL settings that the node itself carries."""
        return {setting.name: setting.value for setting in self.node.settings if setting.name.startswith("NCCL_")}

    @property
    def not_observed(self) -> tuple[NotObserved, ...]:
        """What the evidence of the node does not hold."""
        return self.node.not_observed

    @property
    def names(self) -> dict[str, str]:
        """The devices behind NCCL's labels."""
        return device_names(self.tree)


def open_topology(
    path: str, env: Mapping[str, str] | None = None, system: str | None = None, *, complete: bool = True
) -> Topology:
    """A topology file, a bundle, `lstopo` XML, pasted tool output, `fixture:NAME`, or `-`. Raises InputError.

    `env` adds to the settings that the node carries; those that choose NICs matter to a node without a file. `system`
    names the machine of a file that leaves its GPUs to NCCL; without it a file with the layout of an instance type is
    taken for that, unless not to be made `complete`.
    """
    read = one_node(path)
    node = read.node
    settings = {setting.name: setting.value for setting in node.settings} | dict(env or {})
    try:
        detected = _with_machine(node, settings) or tree_of(node, settings)
    except LackingError as lacking:
        hint = "it takes a topology file (NCCL_TOPO_DUMP_FILE), or a bundle: topodiag scan --save node.tar.gz"
        raise InputError(path, f"is not enough for NCCL's topology: {lacking}", hint=hint) from None
    if system is not None:
        detected = _of_system(path, detected, system)
    elif complete and (instance := instance_of_file(detected.tree)) is not None:
        detected = _of_system(path, detected, instance.name)
        detected = replace(detected, assumed=(*detected.assumed, f"the machine by the layout of {instance.source}"))
    return Topology(path, node, detected.tree, detected.assumed, tuple(read.inputs))


def _of_system(path: str, detected: Detected, name: str) -> Detected:
    """A file with the GPUs and NICs of a known system in the places that it leaves to NCCL. Raises InputError."""
    from topodiag.cost.tiers import UnknownSystemError, find_system  # noqa: PLC0415 - for such files only

    if not bare_gpus(detected.tree):
        raise InputError(path, "describes its GPUs itself", hint="leave --system out")
    try:
        filled = with_devices(detected.tree, find_system(name))
    except (UnknownSystemError, UnfitSystemError) as unfit:
        raise InputError(path, str(unfit)) from None
    return Detected(filled.tree, (*detected.assumed, *filled.assumed))


def _with_machine(node: Node, env: Mapping[str, str]) -> Detected | None:
    """For a capture that holds a topology file: the file as NCCL completes it by the machine. None without either."""
    if node.nccl_file is None or alone(node):
        return None
    try:
        machine = tree_of(replace(node, nccl_file=None), env)
    except LackingError:
        return None
    return Detected(loaded(node.nccl_file.tree, machine.tree), machine.assumed)


def predict_topology(
    topology: Topology,
    *,
    nodes: int = 1,
    version: str = DEFAULT_VERSION,
    env: Mapping[str, str] | None = None,
    explain: bool = False,
    sizes: Sequence[int] = (),
) -> Prediction:
    """NCCL's decisions for so many nodes of this topology. `env` adds to the settings that the node carries; `sizes`
    are bytes to choose for, by default the sweep of nccl-tests. Raises InputError for more ranks than any job has."""
    from topodiag.nccl.graph.attach import count_gpus  # noqa: PLC0415 - the searches are asked for here only
    from topodiag.nccl.predict import MOST_RANKS, SIZES, predict  # noqa: PLC0415

    if places := len(bare_gpus(topology.tree)):
        what = f"leaves its {plural(places, 'GPU')} (PCI class 0x03) to NCCL, which accepts that and asks the machine"
        hint = "say which machine it is, --system NAME (an instance type, dgx-h100, ...), or give a bundle of it"
        raise InputError(topology.name, what, hint=hint)
    ranks = count_gpus(topology.tree) * nodes
    if ranks > MOST_RANKS:
        raise InputError(topology.name, f"on {nodes} nodes makes {ranks} ranks", hint=f"at most {MOST_RANKS} ranks")
    settings = topology.env | dict(env or {})
    tree, asked = topology.tree, tuple(sizes) or SIZES
    ports = settings.get("NCCL_IB_HCA", "")
    listed = by_hca_list(tree, ports, rails=has(minor_of(version), Feature.RAILS_AND_PLANES)) if ports else tree
    node = _with_tree(topology.node, listed or tree, topology.name)
    prediction = predict(node, nodes=nodes, version=version, env=settings, sizes=asked, explain=explain)
    if listed is not None:
        return prediction
    sentence = f"NCCL_IB_HCA={ports} is not followed: it takes none of the NICs of {topology.name}"
    return replace(prediction, not_followed=(*prediction.not_followed, sentence))


def _with_tree(node: Node, tree: Element, name: str) -> Node:
    """The node with this tree; the refusals of its file hold for the file alone, so they go with another tree."""
    if node.nccl_file is not None and node.nccl_file.tree is tree:
        return node
    if node.nccl_file is not None and not alone(node):
        # Completed by the machine that it was captured on: what its reader refuses it refuses there, too.
        return replace(node, nccl_file=replace(node.nccl_file, tree=tree))
    return replace(node, nccl_file=NcclFile(name, tree))
