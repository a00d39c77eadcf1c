"""NCCL's decisions on equal nodes of one topology, all in one answer: what it accepts, finds, sets up and would run.

Composes the path table and the searches of rank 0, the communicator of all GPUs of all nodes, its tuning table and the
choices over a sweep of sizes. Answers are kept, for what-if, checks and emitted files ask the same question often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from topodiag.model.nccl_enums import BY_WEIGHT
from topodiag.model.nccl_tree import Element, Refusal, of_rccl
from topodiag.model.nccl_versions import DEFAULT_VERSION, Feature, PathTypes, has, minor_of, path_types
from topodiag.model.node import Node
from topodiag.nccl.connect.communicator import Communicator, Member, communicator, communicator_of_files
from topodiag.nccl.graph.attach import count_gpus
from topodiag.nccl.graph.graph import CommShape, RejectedError, SearchGraph, System
from topodiag.nccl.graph.paths import path_table
from topodiag.nccl.prediction import PredictedGraph, Prediction, VirtualNic
from topodiag.nccl.rccl.decide import VERSION as RCCL
from topodiag.nccl.rccl.decide import predict_rccl
from topodiag.nccl.search.searched import describe, spelt
from topodiag.nccl.settings import Settings, not_followed, read_settings
from topodiag.nccl.topo.detect import tree_of
from topodiag.nccl.topo.numbered import numbered
from topodiag.nccl.tuning.choice import sweep
from topodiag.nccl.tuning.derivation import derive
from topodiag.nccl.tuning.tuning import tuning_table

SIZES = tuple(1 << power for power in range(3, 34))
"""nccl-tests' sweep with -b 8 -e 8G -f 2, in bytes."""
ALL = tuple(collective.value for collective in BY_WEIGHT)
"""The collectives whose choices are predicted."""
_CONNECTX_9 = ("0x15b3", "0x1025")
Asked = tuple[tuple[str, tuple[int, ...]], ...]
"""Sizes in bytes by collective."""
MOST_RANKS = 1 << 17
"""More ranks than any job has had; a greater question is refused rather than answered in an hour."""
_KEPT = 64
_DIGITS = 4


def predict(
    node: Node,
    *,
    nodes: int = 1,
    version: str = DEFAULT_VERSION,
    env: Mapping[str, str] | None = None,
    sizes: Sequence[int] = SIZES,
    explain: bool = False,
    whole: bool = False,
) -> Prediction:
    """NCCL's decisions for `nodes` nodes like this one under NCCL `version` with the NCCL_ variables of `env`.

    Nodes are joined by the network, and by NVLink (MNNVL) where `env` has NCCL_MNNVL_ENABLE=1.
    The node's topology file counts where it has one (with what NCCL's parser refuses of it), else the tree that NCCL
    would detect. A refusal is an answer: `accepted` False with NCCL's words and the line. `sizes` in bytes, as the
    first column of nccl-tests; `explain` adds the derivation as `terms`; `whole` reads the tree in one piece
    (attach.HostTree). A version newer than all known decides as the newest (`Prediction.assumed`). Raises
    UnknownVersionError for an older one, and detect.LackingError where the evidence of the node is too little to build
    a tree.
    """
    given = node.nccl_file
    minor = minor_of(RCCL if given is not None and of_rccl(given.tree) else version)
    refusal = given.refusal(minor) if given is not None else None
    tree = given.tree if given is not None else tree_of(node, env).tree
    return predict_tree(
        tree, nodes=nodes, version=version, env=env, sizes=sizes, explain=explain, refusal=refusal, whole=whole
    )


def predict_tree(
    tree: Element,
    *,
    nodes: int = 1,
    version: str = DEFAULT_VERSION,
    env: Mapping[str, str] | None = None,
    sizes: Sequence[int] = SIZES,
    explain: bool = False,
    refusal: Refusal | None = None,
    collectives: Sequence[str] = ALL,
    whole: bool = False,
) -> Prediction:
    """`predict` for the tree of a file. `refusal`: why NCCL's parser does not take the file. `collectives`: those whose
    choices are wanted. Raises UnknownVersionError, and ValueError for a number of nodes below 1."""
    minor_of(version)
    if nodes < 1:
        raise ValueError(f"{nodes} nodes: at least 1")
    if refusal is not None:
        return Prediction(version, nodes, accepted=False, why=refusal.words, line=refusal.line)
    if of_rccl(tree):
        return _by_rccl(tree, nodes=nodes, version=version, env=env or {})
    chosen = tuple(sorted((name, value) for name, value in (env or {}).items() if name.startswith("NCCL_")))
    try:
        (tree,) = numbered((tree,))
        asked = tuple((name, tuple(sizes)) for name in collectives)
        return _predicted(tree, nodes=nodes, version=version, env=chosen, asked=asked, explain=explain, whole=whole)
    except RejectedError as rejected:
        # Not kept: equal trees can stand on different lines.
        return Prediction(version, nodes, accepted=False, why=rejected.words, line=rejected.line)


def _by_rccl(tree: Element, *, nodes: int, version: str, env: Mapping[str, str]) -> Prediction:
    """RCCL's decisions, for which one version is followed; of another it is said."""
    chosen = tuple(sorted((name, value) for name, value in env.items() if name.startswith(("NCCL_", "RCCL_"))))
    try:
        prediction = predict_rccl(numbered((tree,))[0], nodes, chosen)
    except RejectedError as rejected:
        return Prediction(RCCL, nodes, accepted=False, why=rejected.words, line=rejected.line, library="RCCL")
    other = version != DEFAULT_VERSION and minor_of(version) != minor_of(RCCL)
    return replace(prediction, asked=version) if other else prediction


@lru_cache(maxsize=_KEPT)
def _predicted(
    tree: Element,
    *,
    nodes: int,
    version: str,
    env: tuple[tuple[str, str], ...],
    asked: Asked,
    explain: bool,
    whole: bool,
) -> Prediction:
    minor = minor_of(version)
    settings = read_settings(dict(env), minor)
    gpus = count_gpus(tree)
    if gpus * nodes > MOST_RANKS:
        raise RejectedError(f"{gpus * nodes} ranks are more than are worked out here ({MOST_RANKS})")
    comm = communicator_of_files(tree, nodes=nodes, minor=minor, settings=settings, whole=whole)
    first = comm.node(0).domain
    if not whole and _only_sockets(comm):
        return replace(_inside(comm, version, nodes, first.system), no_nic=True)
    prediction = _decided(_inside(comm, version, nodes, first.system), comm, comm.shape, settings, asked)
    return replace(
        prediction,
        graphs=tuple(describe(first.system, graph) for graph in first.graphs),
        terms=derive(comm, prediction.tuning, settings) if explain else (),
        virtual_nics=tuple(
            VirtualNic(net.label, net.name, round(net.bw, _DIGITS)) for net in first.system.nets if "+" in net.name
        ),
        not_followed=(*not_followed(settings.values), *_rails_of_adapters(tree, minor)),
    )


def _rails_of_adapters(tree: Element, minor: int) -> tuple[str, ...]:
    """A sentence where NCCL gives rails and planes of its own to ports that have none here."""
    ports = (
        net
        for pci in tree.walk()
        if pci.tag == "pci" and (pci.get("vendor"), pci.get("device")) == _CONNECTX_9
        for net in pci.nets
    )
    if not has(minor, Feature.RAILS_OF_ADAPTERS) or all(net.get("rail") is not None for net in ports):
        return ()
    how = "write them in NCCL_IB_HCA, =NAME:PORT:RAIL:PLANE for each port"
    return (f"rails and planes that NCCL 2.32 gives ports of ConnectX-9 are not followed: {how}",)


def _only_sockets(comm: Communicator) -> bool:
    """Whether NCCL must take sockets, as a node has no NIC: the search would count a channel that it did not find."""
    return comm.shape.nodes > 1 and not all(node.domain.system.nets for node in comm.nodes)


def _inside(comm: Communicator, version: str, nodes: int, system: System) -> Prediction:
    """What is known of the inside of a node, and how many ranks and nodes there are."""
    return Prediction(
        version=version,
        nodes=nodes,
        accepted=True,
        total_bw=round(system.total_bw, _DIGITS),
        paths=path_table(system),
        ranks=comm.shape.nranks,
        nccl_nodes=comm.shape.nodes,
    )


def _decided(inside: Prediction, comm: Communicator, shape: CommShape, settings: Settings, asked: Asked) -> Prediction:
    """With what the communicator decides: its channels, the tuning table, and what runs for each collective and size.
    `shape` is its own, or has other graphs."""
    first = comm.node(0).domain.system
    table = tuning_table(shape, settings)
    choices = tuple(choice for name, sizes in asked for choice in sweep(shape, table, settings, name, sizes))
    max_bw = round(first.max_bw, _DIGITS)
    return replace(inside, max_bw=max_bw, channels=comm.channels, tuning=table, choices=choices)


Host = tuple[Element, tuple[tuple[str, str], ...]]
"""A host as its ranks see it: its tree, and its NCCL_ variables by name."""


def predict_job(
    hosts: Sequence[Host],
    members: Sequence[Member],
    *,
    version: str = DEFAULT_VERSION,
    sizes: Sequence[int] = SIZES,
    collectives: Sequence[str] = ALL,
    agreed: Sequence[PredictedGraph] = (),
) -> Prediction:
    """`predict` for ranks on hosts that need not be alike: each host searches by itself, and all take the least of what
    was found. `graphs` are those that the ranks agreed on, without orders; `paths` and `total_bw` are those of the host
    whose GPUs are joined worst. The settings that decide after the search are those of the host of rank 0. `agreed` are
    graphs that a log shows, to be priced instead of those found. Raises UnknownVersionError."""
    minor_of(version)
    if len(members) > MOST_RANKS:
        words = f"{len(members)} ranks are more than are worked out here ({MOST_RANKS})"
        return Prediction(version, len(hosts), accepted=False, why=words)
    try:
        asked = tuple((name, tuple(sizes)) for name in collectives)
        return _of_job(tuple(hosts), tuple(members), version, asked, tuple(agreed))
    except RejectedError as rejected:
        return Prediction(version, len(hosts), accepted=False, why=rejected.words, line=rejected.line)


@lru_cache(maxsize=_KEPT)
def _of_job(
    hosts: tuple[Host, ...],
    members: tuple[Member, ...],
    version: str,
    asked: Asked,
    agreed: tuple[PredictedGraph, ...],
) -> Prediction:
    minor = minor_of(version)
    read = {env: read_settings(dict(env), minor) for env in {env for _, env in hosts}}
    first = read[hosts[min(members, key=lambda member: member.rank).host][1]]
    trees = {tree: tree for tree, _ in hosts}  # equal trees as one, so that each is searched once
    own = [read[env] for _, env in hosts]
    comm = communicator([trees[tree] for tree, _ in hosts], members, minor=minor, settings=first, own=own)
    if _only_sockets(comm):
        return replace(_inside(comm, version, len(hosts), comm.nodes[0].domain.system), no_nic=True)
    types = path_types(minor)
    shape = replace(comm.shape, graphs={graph.id: _of_log(graph, types) for graph in agreed}) if agreed else comm.shape
    worst = min((node.domain.system for node in comm.nodes), key=lambda system: system.total_bw)
    graphs = tuple(spelt(graph, types.names) for _, graph in sorted(shape.graphs.items()))
    return replace(_decided(_inside(comm, version, len(hosts), worst), comm, shape, first, asked), graphs=graphs)


def _of_log(graph: PredictedGraph, types: PathTypes) -> SearchGraph:
    """A graph of a log as ranks agree on it; a path type that this version does not have is the farthest."""
    near, far = (types.numbers.get(kind, types.dis) for kind in (graph.type_intra, graph.type_inter))
    return SearchGraph(
        graph.id, graph.pattern, cross_nic=graph.cross_nic, channels=graph.channels, bw_intra=graph.bw_intra,
        bw_inter=graph.bw_inter, type_intra=near, type_inter=far, same_channels=graph.same_channels,
    )  # fmt: skip
