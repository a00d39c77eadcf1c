"""The machine that is priced: a system by its name, or what a bundle or a topology file shows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from topodiag.cost.collectives import Link
from topodiag.cost.questions import ModelError
from topodiag.cost.tiers import (
    LackingError,
    Machine,
    Tier,
    UnknownSystemError,
    find_system,
    machine,
    rack_domain,
    with_spine,
)
from topodiag.hardware import catalog
from topodiag.words.units import in_gbs

if TYPE_CHECKING:
    from topodiag.app.case.topology import Topology
    from topodiag.model.node import Node

SYSTEMS = "topodiag explain systems lists the names"


def machine_of(
    system: str,
    nodes: int = 1,
    *,
    gpu: str = "",
    nics: tuple[int, float] | None = None,
    nodes_per_leaf: int = 0,
    oversubscription: float = 1.0,
) -> Machine:
    """So many nodes of a known system, or of what a bundle, a topology file or `fixture:NAME` shows. Raises ModelError
    for a name that is neither, with near names, and InputError for a path that cannot be read."""
    try:
        if _is_path(system):
            return with_spine(_captured(system, nodes, nics), nodes_per_leaf, oversubscription)
        return with_spine(machine(find_system(system), nodes, gpu=gpu, nics=nics), nodes_per_leaf, oversubscription)
    except UnknownSystemError as unknown:
        near = f"did you mean {' or '.join(unknown.near)}?" if unknown.near else ""
        hint = near or f"{SYSTEMS}; or a bundle, a topology file, --inside and --outside"
        raise ModelError(f"{unknown}", hint=hint) from None
    except LackingError as lacking:
        raise ModelError(str(lacking)) from None


def _is_path(text: str) -> bool:
    if text in {spec.name for spec in catalog.systems()}:
        return False  # names of systems have slashes, too
    return text == "-" or text.startswith("fixture:") or "/" in text or Path(text).exists()


def _captured(path: str, nodes: int, nics: tuple[int, float] | None) -> Machine:
    """What NCCL would drive on the machine that was found: its reckoning of NVLink and of the ring between nodes."""
    from topodiag.app.case.topology import open_topology, predict_topology  # noqa: PLC0415 - the searches, for this only

    topology = open_topology(path)
    prediction = predict_topology(topology, nodes=1)
    if not prediction.accepted:
        raise ModelError(f"{path}: NCCL {prediction.version} refuses it: {prediction.why}")
    gpus = prediction.ranks
    ring = prediction.graph(0)
    names = [gpu.name.value for gpu in topology.node.gpus if gpu.name.value]
    product = catalog.gpu_by_name(str(names[0])) if names else None
    linked = any(way[2].startswith("NV") for row in prediction.paths.values() for way in row.values())
    rate = prediction.total_bw if linked else (ring.channels * ring.bw_intra if ring else 0.0)
    if gpus < 1 or rate <= 0:
        raise ModelError(f"{path}: NCCL finds no GPUs to join on it")
    kind = "nvlink" if linked else "pcie"
    near = Link(catalog.latency_us(kind) or 0.0, rate, "NVLink" if linked else "PCIe")
    domain = rack_domain(product, gpus) if linked else gpus
    inside = Tier(kind, near, domain, 0.0, f"NCCL {prediction.version}'s model of {path}")
    network = _network_of(topology, nodes, gpus, nics, is_domain=domain == gpus)
    tiers = (inside,) if network is None else (inside, network)
    assumed = (*topology.assumed, "all nodes are like this one")
    switch = linked and prediction.graph(3) is not None
    return Machine(path, nodes, gpus, domain, inside, network, switch=switch, gpu=product, tiers=tiers, assumed=assumed)


def _network_of(
    topology: Topology, nodes: int, gpus: int, nics: tuple[int, float] | None, *, is_domain: bool
) -> Tier | None:
    """The network of a GPU: by the NICs that are given, else by NCCL's ring over two such nodes where each is `alone`
    an NVLink domain. None where nothing says what it is."""
    from topodiag.app.case.topology import predict_topology  # noqa: PLC0415 - the searches, for this only

    latency_us = catalog.latency_us("network") or 0.0
    if nics is not None:
        far = nics[0] * nics[1] / 8 / gpus
        return Tier("network", Link(latency_us, far, "network"), nodes * gpus, far)
    several = predict_topology(topology, nodes=2)
    between = several.graph(0) if several.accepted else None
    if between is None or not between.channels or between.bw_inter <= 0 or not is_domain:
        return None
    far = between.channels * between.bw_inter / gpus
    words = f"{between.channels} channels x {in_gbs(between.bw_inter)} over {gpus} GPUs, NCCL {several.version}"
    return Tier("network", Link(latency_us, far, "network"), nodes * gpus, 0.0, words)


def system_of(nodes: Sequence[Node]) -> str:
    """The system that captures show: by its name, else one that has their GPUs; "" where nothing tells it."""
    for node in nodes:
        with suppress(UnknownSystemError):  # the cost model knows fewer systems than the readers of nodes
            if node.system.value:
                return find_system(str(node.system.value)).name
    names = {str(gpu.name.value) for node in nodes for gpu in node.gpus if gpu.name.value}
    product = catalog.gpu_by_name(names.pop()) if len(names) == 1 else None
    return next((spec.name for spec in catalog.systems() if product is not None and spec.gpu == product.name), "")
