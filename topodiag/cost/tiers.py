"""The tiers of a machine, from its datasheet: what two GPUs have between them in a domain, a node, a leaf, the fabric.

Rates are of one GPU and one direction. `gbs` is what transfers sustain: NVLink and PCIe as NCCL reckons them (they
have its packet overheads taken off), a NIC at its line rate or what its GPU's PCIe link carries, whichever is less.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from topodiag.cost.collectives import Link
from topodiag.cost.spread import Spread
from topodiag.hardware import catalog
from topodiag.hardware.specs import GpuSpec, SystemSpec
from topodiag.lazy import dataclass
from topodiag.words.units import in_gbps, in_gbs, spell_us

DOMAIN_72 = 72
"""GPUs in the NVLink domain of an NVL72 rack, four to a compute tray (NVIDIA GB200 and GB300 NVL72 datasheets)."""
_RACK_GPUS = ("GB200", "GB300")
_TRAY = 4
SWITCH_US = 0.3
"""Two further switches up to a spine and down, 130 ns each (NVIDIA QM8700 datasheet), and their cables."""
_MAX_NAME = 100


class UnknownSystemError(ValueError):
    """A name that no system has, or that several have; `near` are those that it may mean."""

    def __init__(self, name: str, near: tuple[str, ...], *, several: bool = False) -> None:
        super().__init__(f"{'several systems are' if several else 'no system is'} called {name[:_MAX_NAME]!r}")
        self.near = near


class LackingError(ValueError):
    """What the datasheet leaves to the integrator and the model needs."""


@dataclass(frozen=True, slots=True)
class Tier:
    """`kind`: `nvlink`, `pcie`, `network` or `spine`. `gpus` meet here; `line_gbs` is the wire's rate, 0 unknown."""

    kind: str
    link: Link
    gpus: int
    line_gbs: float = 0.0
    source: str = "as given"


@dataclass(frozen=True, slots=True)
class Machine:
    """Equal nodes on a fabric. `domain` GPUs reach each other by `inside`, the others by `network`, and beyond
    `leaf` GPUs by `spine`. `assumed` are sentences on what no evidence gave."""

    name: str
    nodes: int
    gpus_per_node: int
    domain: int
    inside: Tier
    network: Tier | None = None
    spine: Tier | None = None
    leaf: int = 0
    switch: bool = False
    gpu: GpuSpec | None = None
    tiers: tuple[Tier, ...] = ()
    assumed: tuple[str, ...] = ()

    @property
    def gpus(self) -> int:
        return self.nodes * self.gpus_per_node

    def outside(self, *, over_spine: bool = False) -> Link:
        """One GPU's way to GPUs of other domains. Raises LackingError."""
        if over_spine and self.spine is not None:
            return self.spine.link
        if self.network is None:
            raise LackingError(
                f"{self.name}: no NIC for the job is known; give --nics COUNTxGBPS, or --outside with --inside"
            )
        return self.network.link

    def spread(self, ranks: Sequence[int], *, split: int = 1) -> Spread:
        """A group of ranks, rank r on GPU r of the nodes in their order. `split` above 1 puts its members into so many
        times as many domains as they need (a misplacement). Raises LackingError."""
        size = len(ranks)
        per_node = max(min(Counter(rank // self.domain for rank in ranks).values()) // split, 1)
        while size % per_node:  # an uneven group is as slow as its smallest part
            per_node -= 1
        inside = self.inside.link
        over_spine = bool(self.leaf) and len({rank // self.leaf for rank in ranks}) > 1
        outside = self.outside(over_spine=over_spine) if per_node < size else inside
        return Spread(size // per_node, per_node, inside, outside, self.switch)


def key(name: str) -> str:
    """The name as one types it: `DGX H100` as `dgx-h100`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def system_names() -> tuple[str, ...]:
    """The names of all systems, easy to type."""
    return tuple(key(spec.name) for spec in catalog.systems())


def find_system(name: str) -> SystemSpec:
    """The system of a name, by its full name, a product name, or words of which one system alone has all. Raises
    UnknownSystemError with near names."""
    asked = key(name[:_MAX_NAME])
    for spec in catalog.systems():
        if asked in (key(spec.name), *map(key, spec.product_names)):
            return spec
    words = set(asked.split("-")) - {""}
    specs = [spec for spec in catalog.systems() if words and words <= _words(spec)]
    if len(specs) == 1:
        return specs[0]
    if specs:
        raise UnknownSystemError(name, tuple(key(spec.name) for spec in specs), several=True)
    raise UnknownSystemError(name, tuple(get_close_matches(asked, system_names(), n=3, cutoff=0.5)))


def _words(spec: SystemSpec) -> set[str]:
    return {word for name in (spec.name, *spec.product_names) for word in key(name).split("-")}


def machine(
    spec: SystemSpec,
    nodes: int,
    *,
    gpu: str = "",
    nics: tuple[int, float] | None = None,
) -> Machine:
    """The tiers of `nodes` such systems. `gpu` chooses where a system is sold with several, `nics` are (count, Gb/s
    each) where the datasheet leaves them open. Raises LackingError."""
    product = _gpu(spec, gpu)
    assumed: list[str] = []
    pcie = _pcie(product, spec.gpus)
    nvlink = _nvlink(spec, product)
    count, gbps = nics or (spec.compute_nics, spec.compute_nic_gbps)
    network = None
    if count and gbps:
        network = _network(spec, count, gbps, pcie, nodes * spec.gpus)
        if nics is None:
            assumed.append(f"all {count} NICs of {in_gbps(gbps)} carry the job, shared evenly by the GPUs of a node")
    inside = nvlink if nvlink is not None and nvlink.gpus >= spec.gpus else pcie
    if inside is None and spec.gpus == 1 and network is not None:
        inside = replace(network, gpus=1)  # one GPU has nobody inside: what is never asked for
    if inside is None:
        what = "has one GPU per node, and its datasheet names no NIC: give --nics COUNTxGBPS"
        raise LackingError(f"{spec.name}: " + (what if spec.gpus == 1 else "no data on the links of its GPUs"))
    domain = inside.gpus
    if nvlink is not None and spec.nvlink in ("mesh", "hybrid-mesh"):
        assumed.append("rings use all NVLinks of a GPU; one pair of GPUs alone has fewer")
    if inside.kind == "pcie" and spec.gpus > 1:
        assumed.append(
            "GPUs of a node reach each other peer to peer over PCIe, and not through a slower processor link"
        )
    return Machine(
        name=spec.name,
        nodes=nodes,
        gpus_per_node=spec.gpus,
        domain=domain,
        inside=inside,
        network=network,
        switch=spec.nvlink == "nvswitch" and product.sm >= 90,
        gpu=product,
        tiers=tuple(tier for tier in (nvlink, pcie, network) if tier is not None),
        assumed=tuple(assumed),
    )


def machine_of_links(inside: Link, outside: Link | None, per_node: int, nodes: int) -> Machine:
    """Nodes of `per_node` ranks that reach each other by `inside`, and other nodes by `outside`."""
    near = Tier("inside", inside, per_node)
    far = Tier("network", outside, per_node * nodes) if outside is not None else None
    tiers = (near,) if far is None else (near, far)
    return Machine("the links given", nodes, per_node, per_node, near, far, tiers=tiers)


def with_spine(flat: Machine, nodes_per_leaf: int, oversubscription: float = 1.0) -> Machine:
    """The machine on a fabric of leaves of so many nodes each, whose ways to the spine carry 1/oversubscription of what
    goes into a leaf; 0 nodes, or no more than one leaf holds: one switch for all."""
    network = flat.network
    if network is None or flat.nodes < 2:
        return flat
    if not nodes_per_leaf or flat.nodes <= nodes_per_leaf:
        return replace(flat, assumed=(*flat.assumed, "the fabric carries all nodes at once (no oversubscription)"))
    link = Link(network.link.alpha_us + SWITCH_US, network.link.gbs / oversubscription, "spine")
    source = f"the network over {oversubscription:g}, and {spell_us(SWITCH_US)} for two more switches"
    spine = Tier("spine", link, flat.gpus, network.line_gbs / oversubscription, source)
    near = replace(network, gpus=nodes_per_leaf * flat.gpus_per_node)
    tiers = (*(near if tier is network else tier for tier in flat.tiers), spine)
    return replace(flat, network=near, spine=spine, leaf=near.gpus, tiers=tiers)


def rack_domain(gpu: GpuSpec | None, gpus: int) -> int:
    """GPUs in the NVLink domain of a node with so many: 72 for a tray of an NVL72 rack, else the node's own."""
    return DOMAIN_72 if gpu is not None and gpu.name in _RACK_GPUS and gpus == _TRAY else gpus


def _gpu(spec: SystemSpec, asked: str) -> GpuSpec:
    names = (spec.gpu, *spec.other_gpus)
    chosen = names[0]
    if asked:
        words = set(key(asked).split("-"))
        fitting = [name for name in names if words <= set(key(name).split("-"))]
        if not fitting:
            raise LackingError(f"{spec.name} is not sold with {asked[:_MAX_NAME]!r}; it has {', '.join(names)}")
        chosen = min(fitting, key=len)
    return next(product for product in catalog.gpus() if product.name == chosen)


def _nvlink(spec: SystemSpec, gpu: GpuSpec) -> Tier | None:
    links = gpu.nvlinks if spec.nvlinks_per_gpu is None else spec.nvlinks_per_gpu
    if spec.nvlink == "none" or not links:
        return None
    gpus = rack_domain(gpu, spec.gpus) if spec.nvlink == "nvswitch" else 2 if spec.nvlink == "pairs" else spec.gpus
    link = Link(catalog.latency_us("nvlink") or 0.0, links * gpu.nvlink_nccl_gbs, "NVLink")
    source = f"{links} NVLinks x {in_gbs(gpu.nvlink_nccl_gbs)} as NCCL models them; {gpu.source}"
    return Tier("nvlink", link, gpus, links * gpu.nvlink_line_gbs, source)


def _pcie(gpu: GpuSpec, gpus: int) -> Tier | None:
    rate = catalog.pcie_nccl_gbs(gpu.pcie_gen, gpu.pcie_width)
    line = catalog.pcie_line_gbs(gpu.pcie_gen, gpu.pcie_width)
    if rate is None:
        return None
    link = Link(catalog.latency_us("pcie") or 0.0, rate, "PCIe")
    return Tier("pcie", link, gpus, line or 0.0, f"Gen{gpu.pcie_gen} x{gpu.pcie_width} as NCCL models it; {gpu.source}")


def _network(spec: SystemSpec, count: int, gbps: float, pcie: Tier | None, gpus: int) -> Tier:
    line = count * gbps / 8 / spec.gpus
    capped = pcie is not None and pcie.link.gbs < line
    rate = pcie.link.gbs if pcie is not None and capped else line
    words = f"{count} NICs x {in_gbps(gbps)} / 8 / {spec.gpus} GPUs"
    if capped:
        words += f", held to {in_gbs(rate)} by the GPU's PCIe link"
    link = Link(catalog.latency_us("network") or 0.0, rate, "network")
    return Tier("network", link, gpus, line, f"{words}; {spec.source}")
