"""The wiring of `topodiag model`: from a system's name, a bundle or plain links to a machine.

>>> from topodiag.cost.questions import price_placements
>>> from topodiag.app.model import machine_of
>>> made = price_placements(machine_of("dgx-h100"), "all_reduce", 1 << 30, ((1, 8), (8, 1)))
>>> [round(each.priced.time_us / 1000, 2) for each in made.placed]
[3.97, 39.18]
"""

from __future__ import annotations

from pathlib import Path

from topodiag.cost.alpha_beta import Link
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

GIVEN = "as given"


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
            return with_spine(_found(system, nodes, nics), nodes_per_leaf, oversubscription)
        return with_spine(machine(find_system(system), nodes, gpu=gpu, nics=nics), nodes_per_leaf, oversubscription)
    except UnknownSystemError as unknown:
        near = f"did you mean {' or '.join(unknown.near)}?" if unknown.near else ""
        hint = near or "a name like dgx-h100 or p5, a bundle, a topology file, or --inside and --outside"
        raise ModelError(f"{unknown}", hint=hint) from None
    except LackingError as lacking:
        raise ModelError(str(lacking)) from None


def _is_path(text: str) -> bool:
    return text == "-" or text.startswith("fixture:") or "/" in text or Path(text).exists()


def machine_of_links(inside: Link, outside: Link | None, per_node: int, nodes: int) -> Machine:
    """Nodes of `per_node` ranks that reach each other by `inside`, and other nodes by `outside`."""
    near = Tier("inside", inside, per_node, 0.0, GIVEN)
    far = Tier("network", outside, per_node * nodes, 0.0, GIVEN) if outside is not None else None
    tiers = (near,) if far is None else (near, far)
    return Machine("the links given", nodes, per_node, per_node, near, far, tiers=tiers)


def _found(path: str, nodes: int, nics: tuple[int, float] | None) -> Machine:
    """What NCCL would drive on the machine that was found: its reckoning of NVLink and of the ring between nodes."""
    from topodiag.app.topo import open_topology, predict_topology  # noqa: PLC0415 - the searches, for this only

    topology = open_topology(path)
    alone = predict_topology(topology, nodes=1)
    if not alone.accepted:
        raise ModelError(f"{path}: NCCL {alone.version} refuses it: {alone.why}")
    gpus = alone.ranks
    ring = alone.graph(0)
    names = [gpu.name.value for gpu in topology.node.gpus if gpu.name.value]
    product = catalog.gpu_by_name(str(names[0])) if names else None
    linked = any(way[2].startswith("NV") for row in alone.paths.values() for way in row.values())
    rate = alone.total_bw if linked else (ring.channels * ring.bw_intra if ring else 0.0)
    if gpus < 1 or rate <= 0:
        raise ModelError(f"{path}: NCCL finds no GPUs to join on it")
    kind = "nvlink" if linked else "pcie"
    near = Link(catalog.latency_us(kind) or 0.0, rate, "NVLink" if linked else "PCIe")
    domain = rack_domain(product, gpus) if linked else gpus
    inside = Tier(kind, near, domain, 0.0, f"NCCL {alone.version}'s reckoning of {path}")
    network = None
    if nics is not None:
        far = nics[0] * nics[1] / 8 / gpus
        network = Tier("network", Link(catalog.latency_us("network") or 0.0, far, "network"), nodes * gpus, far, GIVEN)
    else:
        several = predict_topology(topology, nodes=2)
        between = several.graph(0) if several.accepted else None
        if between is not None and between.channels and between.bw_inter > 0 and domain == gpus:
            far = between.channels * between.bw_inter / gpus
            words = f"{between.channels} channels x {between.bw_inter:g} GB/s over {gpus} GPUs, NCCL {several.version}"
            link = Link(catalog.latency_us("network") or 0.0, far, "network")
            network = Tier("network", link, nodes * gpus, 0.0, words)
    return Machine(
        name=path,
        nodes=nodes,
        gpus_per_node=gpus,
        domain=domain,
        inside=inside,
        network=network,
        switch=linked and alone.graph(3) is not None,
        gpu=product,
        tiers=(inside,) if network is None else (inside, network),
        assumed=(*topology.assumed, "all nodes are like this one"),
    )
