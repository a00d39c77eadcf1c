"""A cluster from bundles: `topodiag scan --save` of each node, read as hosts with their GPUs, NICs and NVLink domains.

A bundle shows one machine. What lies above is known only where the machine says it: the NVLink domain by the cluster
UUID and the clique of its GPUs (NVML's GpuFabricInfo), switches and blocks by the address that Slurm gives a task
(`SLURM_TOPOLOGY_ADDR`, srun's page: from the top level down to the leaf, ending with the node). Where it does not, all
nodes count as equally near, and it is said. A bundle that cannot be read costs its node.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from topodiag.evidence.intake.bundle import MANIFEST, open_evidence
from topodiag.evidence.intake.reader import read_node
from topodiag.fleet.workers import FEW, by_all_cores
from topodiag.hardware import catalog
from topodiag.hardware.specs import GpuSpec
from topodiag.lazy import dataclass, regex
from topodiag.model.cluster_facts import ClusterFacts, nested, partition_of, some_of
from topodiag.model.devices import Gpu, NicRole
from topodiag.model.errors import InputError
from topodiag.model.node import Node
from topodiag.words.hosts import natural
from topodiag.words.node_sets import MAX_GPUS, MAX_NODES, short
from topodiag.words.units import first_of, in_gbps, most_of, plural

DEPTH = 3
"""Folders below the one that is given in which bundles are looked for: a folder per rack, or per day."""
_ARCHIVES = (".tar.gz", ".tgz")
_NOT_NEEDED = frozenset(
    {"nvidia-smi-nvlink", "nvidia-smi-p2p", "kernel-log", "ethtool-stats", "systemctl", "processes", "nccl-xml"}
)
"""A fifth of the time to read a bundle, and nothing of what a node is."""
_NO_DOMAIN = "00000000-0000-0000-0000-000000000000"
_TREE = ("leaf", "spine", "core")
_ADDRESS, _PATTERN = "SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN"
_REDACTED = regex(r"host-[0-9a-f]{6,64}\.[0-9a-f]{6,64}\.example")
"""What redaction makes of any dotted name: it no longer tells one switch from another."""
MAX_TIERS = 8


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """What one bundle says of its node. `nics` are the ports that are up on NICs for the job, as (count, Gb/s of most);
    `tiers` the components above it, innermost first, each as (Slurm's word for it, name)."""

    host: str
    path: str
    time: str
    gpus: int
    out: tuple[int, ...]
    domain: str
    system: str
    gpu: str
    nics: tuple[int, float]
    tiers: tuple[tuple[str, str], ...] = ()


def read_bundles(paths: Sequence[str]) -> ClusterFacts:
    """The cluster of all bundles at these paths: bundles, or folders that hold some. Raises InputError where there is
    none with a GPU, TopodiagError when a worker dies."""
    seen: dict[str, NodeSeen] = {}
    notes: list[str] = []
    texts = list(dict.fromkeys(bundle for path in paths for bundle in find_bundles(path)))
    if len(texts) > MAX_NODES:
        raise InputError(paths[0], f"holds more than {MAX_NODES} bundles")
    broken: list[str] = []
    empty: list[str] = []
    for bundle in [read_one(texts[0])] if len(texts) == 1 else by_all_cores(read_or_why, texts, worth=len(texts) > FEW):
        if isinstance(bundle, str):
            broken.append(bundle)
        elif not bundle.gpus:
            empty.append(bundle.host)
        elif bundle.host not in seen or seen[bundle.host].time < bundle.time:
            seen[bundle.host] = bundle
    if not seen:
        why = broken[0] if broken else f"{empty[0]} shows no GPU"
        raise InputError(paths[0], f"holds no node with GPUs: {why}")
    twice = len(texts) - len(broken) - len(empty) - len(seen)
    for many, why in (
        (len(broken), f"unreadable: {broken[0]}" if broken else ""),
        (len(empty), f"without a GPU: {some_of(empty)}"),
        (twice, "older than another of the same host"),
    ):
        if many:
            notes.append(f"{many} of {len(texts)} bundles left out, {why}")
    return _facts(paths[0], sorted(seen.values(), key=lambda node: natural(node.host)), notes)


def read_or_why(path: str) -> NodeSeen | str:
    """What is needed of one bundle, or why it cannot be read."""
    try:
        return read_one(path)
    except InputError as error:
        return str(error)


def find_bundles(path: str) -> Iterator[str]:
    """The bundles at a path: itself, or those in a folder and the folders below it. Raises InputError for none."""
    if not path:
        raise InputError("''", "names no file", hint="give a bundle, or a folder of them")
    place = Path(path)
    if not os.path.exists(path):
        raise InputError(path.replace("\0", "?"), "no such file or folder")
    if not os.path.isdir(path) or (place / MANIFEST).is_file():
        yield path
        return
    some = False
    for at, names, files in os.walk(place):
        depth = len(Path(at).relative_to(place).parts)
        inside = sorted(name for name in names if not name.startswith("."))
        here = [name for name in inside if Path(at, name, MANIFEST).is_file()]
        names[:] = [name for name in inside if name not in here] if depth < DEPTH else []
        for name in (*here, *sorted(name for name in files if name.endswith(_ARCHIVES))):
            some = True
            yield str(Path(at, name))
    if not some:
        raise InputError(path, "holds no bundle", hint="topodiag scan --save FOLDER/$(hostname).tar.gz on each node")


def read_one(path: str) -> NodeSeen:
    """What is needed of one bundle. Raises InputError for what cannot be read."""
    evidence = open_evidence(path)
    evidence.blobs = [
        blob for blob in evidence.blobs if blob.item is None or not (blob.item.sample or blob.item.kind in _NOT_NEEDED)
    ]
    return rank_nodes_of(read_node(evidence).node, path)


def rank_nodes_of(node: Node, path: str) -> NodeSeen:
    """A node as one of a cluster."""
    product = catalog.gpu_by_name(most_of((gpu.name.value for gpu in node.gpus if gpu.name.value), ""))
    rates = [
        port.rate_gbps.value
        for nic in node.nics
        if nic.role is NicRole.COMPUTE
        for port in nic.ports
        if port.state.value == "ACTIVE" and port.rate_gbps.value
    ]
    domain = _domain(node.gpus)
    slots = [gpu.index for gpu in node.gpus if 0 <= gpu.index < MAX_GPUS]
    return NodeSeen(
        host=node.host,
        path=path,
        time=node.time.value or "",
        gpus=max(slots, default=-1) + 1,
        out=tuple(gpu.index for gpu in node.gpus if gpu.lost.value),
        domain=domain,
        system=_system(node, product, domain),
        gpu=product.name if product is not None else "",
        nics=(len(rates), most_of(rates, 0.0)),
        tiers=_tiers(node),
    )


def _system(node: Node, product: GpuSpec | None, domain: str) -> str:
    """The machine's name; a tray by its parts, since DMI calls all boards of a maker one name."""
    product_name = node.system.value or ""
    if product is None or not domain or catalog.system_by_product(product_name) is not None:
        return product_name
    matches = catalog.match_system(product.name, len(node.gpus))
    fitting = [match for match in matches if match.nvlink == "nvswitch" and match.vendor == "NVIDIA"]
    return fitting[0].name if len(fitting) == 1 else product_name


def _domain(gpus: Sequence[Gpu]) -> str:
    """Cluster UUID and clique of a node's GPUs that are part of a fabric beyond it, "" where none is."""
    domains = (
        f"{gpu.fabric.cluster_uuid.value}.{gpu.fabric.clique_id.value or 0}"
        for gpu in gpus
        if gpu.fabric.cluster_uuid.value not in (None, "", _NO_DOMAIN) and gpu.fabric.state.value in (None, "completed")
    )
    return most_of(domains, "")


def _tiers(node: Node) -> tuple[tuple[str, str], ...]:
    address, pattern = (node.scheduler[name].value if name in node.scheduler else None for name in (_ADDRESS, _PATTERN))
    words = pattern.split(".") if pattern else []
    if not address or len(words) < 2 or words[-1] != "node" or len(words) > MAX_TIERS:
        return ()
    names = address.split(".", len(words) - 1)  # the node's own name may have dots
    if len(names) != len(words) or _REDACTED.fullmatch(address):
        return ()
    return tuple((word, name) for word, name in zip(words[-2::-1], names[-2::-1], strict=True))


def _facts(name: str, nodes: Sequence[NodeSeen], notes: list[str]) -> ClusterFacts:
    usual, system = most_of((node.nics for node in nodes), (0, 0.0)), most_of((node.system for node in nodes), "")
    out = {number: node for number, node in enumerate(nodes) if node.out}
    kinds, labels = _levels(nodes)
    notes += (*_mixed(nodes, usual, system), *_lacking(nodes, kinds))
    domain = [node.domain or None for node in nodes]
    return ClusterFacts(
        name=name,
        format=plural(len(nodes), "bundle"),
        nodes=tuple(node.host for node in nodes),
        partitions=nested(kinds, labels),
        domain=partition_of("nvlink", domain) if any(domain) else None,
        gpus=np.asarray([node.gpus for node in nodes], np.int64),
        free={at: tuple(gpu for gpu in range(node.gpus) if gpu not in node.out) for at, node in out.items()},
        rails=usual[0] if usual[0] > 1 else 0,
        system=system,
        gpu=most_of((node.gpu for node in nodes), ""),
        notes=tuple(notes),
        nics=usual if usual[0] else None,
        sample=next(node.path for node in nodes if node.system == system),
    )


def _mixed(nodes: Sequence[NodeSeen], usual: tuple[int, float], system: str) -> Iterator[str]:
    """Which nodes are priced like the most although they have other NICs or are another system."""
    other = [node.host for node in nodes if node.nics != usual]
    if other and usual[0]:
        yield (f"{len(other)} of {len(nodes)} nodes have other NICs up than {usual[0]} of {in_gbps(usual[1])}, as"
               f" most have, and are priced like them: {some_of(other)}")  # fmt: skip
    mixed = [node.host for node in nodes if node.system != system]
    if mixed:
        yield (f"{len(mixed)} of {len(nodes)} nodes are another system than {short(system) or 'most'}, and are"
               f" priced like it: {some_of(mixed)}")  # fmt: skip


def _lacking(nodes: Sequence[NodeSeen], kinds: Sequence[str]) -> Iterator[str]:
    """GPUs and switches that do not show."""
    out = [f"{node.host}:{','.join(map(str, node.out))}" for node in nodes if node.out]
    if out:
        yield f"GPUs that do not answer are left out: {first_of(out, 4)}"
    lacking = sum(not node.tiers for node in nodes)
    if not kinds:
        yield "bundles show no switches: all nodes count as equally near (--topology FILE, or scan with srun)"
    elif lacking:
        yield f"{lacking} bundles name no switch: each of these nodes counts as alone below its spine"


def _levels(nodes: Sequence[NodeSeen]) -> tuple[list[str], list[list[str | None]]]:
    """Kinds and names of the switches or blocks above the nodes, innermost first."""
    deepest = max((node.tiers for node in nodes), key=len, default=())
    kinds = []
    for number, (word, _) in enumerate(deepest):
        tree = _TREE[number] if number < len(_TREE) else "fabric"
        kinds.append(tree if word == "switch" else word if word.isalnum() else "group")
    labels: list[list[str | None]] = [
        [node.tiers[number][1] or None if len(node.tiers) > number else None for node in nodes]
        for number in range(len(deepest))
    ]
    return kinds, labels
