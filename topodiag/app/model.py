"""The wiring of `topodiag model`: from a system's name, a bundle or plain links to a machine, and its answers.

>>> from topodiag.app.model import ask_collective, machine_of
>>> made = ask_collective(machine_of("dgx-h100"), "all_reduce", 1 << 30, against=(8, 1)).placements
>>> [round(each.priced.time_us / 1000, 2) for each in made.placed]
[3.97, 39.18]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topodiag.cost.alpha_beta import Link
from topodiag.cost.questions import (
    Hierarchy,
    LinkPrice,
    ModelError,
    Placements,
    Reading,
    price_hierarchy,
    price_links,
    price_placements,
    read_measured,
)
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
from topodiag.cost.tiers import known as known_systems
from topodiag.hardware import catalog
from topodiag.lazy import dataclass
from topodiag.words.units import in_gbs

if TYPE_CHECKING:
    from topodiag.app.topo import Topology
    from topodiag.cost.step import Step, Work
    from topodiag.hardware.compute import Peak
    from topodiag.model.layout import Layout

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
    inside = Tier(kind, near, domain, 0.0, f"NCCL {alone.version}'s model of {path}")
    network = _network_of(topology, nodes, gpus, nics, alone=domain == gpus)
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


def _network_of(
    topology: Topology, nodes: int, gpus: int, nics: tuple[int, float] | None, *, alone: bool
) -> Tier | None:
    """The network of a GPU: by the NICs that are given, else by NCCL's ring over two such nodes where each is `alone`
    an NVLink domain. None where nothing says what it is."""
    from topodiag.app.topo import predict_topology  # noqa: PLC0415 - the searches, for this only

    latency_us = catalog.latency_us("network") or 0.0
    if nics is not None:
        far = nics[0] * nics[1] / 8 / gpus
        return Tier("network", Link(latency_us, far, "network"), nodes * gpus, far, GIVEN)
    several = predict_topology(topology, nodes=2)
    between = several.graph(0) if several.accepted else None
    if between is None or not between.channels or between.bw_inter <= 0 or not alone:
        return None
    far = between.channels * between.bw_inter / gpus
    words = f"{between.channels} channels x {in_gbs(between.bw_inter)} over {gpus} GPUs, NCCL {several.version}"
    return Tier("network", Link(latency_us, far, "network"), nodes * gpus, 0.0, words)


# --- links ----------------------------------------------------------------------------------------------------


def link_of(alpha_us: float, gbs: float, name: str) -> Link:
    """A link as a user gives it. Raises ValueError for a latency below 0 or a bandwidth that is not above 0."""
    return Link(alpha_us, gbs, name)


def ask_links(size: int, *, machine: Machine | None = None, links: Sequence[Link] = ()) -> tuple[LinkPrice, ...]:
    """One buffer of `size` bytes over all tiers of the machine, or over the links given."""
    if machine is not None:
        return price_links(machine.tiers, float(size))
    return price_links(tuple(Tier("given", link, 2, link.gbs, GIVEN) for link in links), float(size))


# --- collectives ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CollectiveAnswer:
    """A collective under one placement or two. `reading` is what a measured time speaks for, None without one."""

    placements: Placements
    reading: Reading | None


def ask_collective(
    machine: Machine,
    collective: str,
    size: int,
    *,
    placement: tuple[int, int] | None = None,
    against: tuple[int, int] | None = None,
    algorithm: str = "auto",
    measured_us: float | None = None,
) -> CollectiveAnswer:
    """A collective of `size` bytes under `placement` (nodes, ranks on each; by default one full node) and under
    `against` (by default one rank per node). Raises ModelError for what the model does not know."""
    first = placement or (1, machine.gpus_per_node)
    other = against or (first[0] * first[1], 1)
    # A reducing switch has nothing to do for one rank per node.
    alone = other == first or (against is None and algorithm in {"nvls", "nvls_tree"})
    made = price_placements(machine, collective, float(size), (first,) if alone else (first, other), algorithm)
    return CollectiveAnswer(made, read_measured(made, measured_us) if measured_us is not None else None)


def ask_hierarchy(machine: Machine) -> Hierarchy:
    """Flat against hierarchical all-reduce over all GPUs of the machine, grouped by its NVLink domains."""
    domains = max(machine.gpus // machine.domain, 1)
    return price_hierarchy(machine, domains, machine.gpus // domains)


# --- training -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """A priced training step, the work and the peak that it was priced with, and what was assumed."""

    step: Step
    layout: Layout
    work: Work
    peak: Peak
    assumed: tuple[str, ...]


def ask_step(
    machine: Machine, trained: Mapping[str, Any], sizes: Mapping[str, int], order: Sequence[str]
) -> StepAnswer:
    """A step of a model on all GPUs of the machine. `trained` are the options of `topodiag model step` by name, `sizes`
    those of its dimensions, `order` the fastest first. Raises ModelError where sizes do not divide."""
    from topodiag.cost.training import fitted_layout, peak_of, price_training, work_assumed  # noqa: PLC0415 - numpy

    layout = fitted_layout(machine, sizes, order)
    peak = peak_of(machine, trained["precision"], trained["peak_tflops"])
    work = work_of(trained, layout.dp, peak)
    made = price_training(work, layout, machine)
    return StepAnswer(made, layout, work, peak, work_assumed(made, peak))


def work_of(trained: Mapping[str, Any], dp: int, peak: Peak) -> Work:
    """The work of a step of `dp` replicas on GPUs of this peak; without a global batch it is 16 micro-batches each."""
    from topodiag.cost.step import Work  # noqa: PLC0415 - numpy from here on

    return Work(
        parameters=trained["params"], layers=trained["layers"], hidden=trained["hidden"], sequence=trained["seq"],
        micro_batch=trained["micro_batch"], global_batch=trained["global_batch"] or 16 * trained["micro_batch"] * dp,
        peak_tflops=peak.tflops, reached=trained["efficiency"], active_parameters=trained["active_params"],
        experts=trained["experts"], top_k=trained["top_k"], capacity=trained["capacity"], kv_share=trained["kv_share"],
        chunks=trained["chunks"], zero=3 if trained["shard"] else trained["zero"], shard=trained["shard"] or 0,
        sequence_parallel=trained["sequence_parallel"], ulysses=trained["ulysses"], recompute=trained["recompute"],
        overlap=trained["overlap"],
    )  # fmt: skip


__all__ = [
    "CollectiveAnswer",
    "Link",
    "ModelError",
    "StepAnswer",
    "ask_collective",
    "ask_hierarchy",
    "ask_links",
    "ask_step",
    "known_systems",
    "link_of",
    "machine_of",
    "machine_of_links",
    "work_of",
]
