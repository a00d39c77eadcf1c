"""Which instance type a guest is, by what it or its topology file shows: its provider, its GPUs, its NICs."""

from __future__ import annotations

from collections import Counter, defaultdict

from topodiag.hardware import catalog
from topodiag.hardware.specs import InstanceSpec, SystemSpec
from topodiag.model.devices import NicRole
from topodiag.model.nccl_tree import Element
from topodiag.model.node import Node
from topodiag.nccl.topo.changes import bus_of
from topodiag.nccl.topo.detect import GT_PER_S
from topodiag.nccl.topo.devices_added import bare_gpus, bare_nics
from topodiag.nccl.topo.virtual import Guest, Place, Plan, Switch, VirtualError, link_of

_PROVIDERS = {"AWS": ("amazon", "ec2"), "Azure": ("microsoft",), "Google Cloud": ("google",)}
"""Words in DMI's names of a machine, by the vendor of the instance type."""


def _by_hyper_v(bus: str) -> bool:
    """Hyper-V gives each passed device a PCI domain of its own (Azure/azhpc-images, topology of NDv4 and NDv5)."""
    return bus[4:] == ":00:00.0" and bus[:4] != "0000"


def infer_instance(node: Node) -> InstanceSpec | None:
    """The one published layout that fits a guest. None where several fit, none fits, or the guest does not name its
    provider: the same parts stand in other clouds, too."""
    product = (node.system.value or "").lower()
    named = [spec for spec in catalog.instances() if any(name.lower() in product for name in (spec.name, *spec.names))]
    fitting = {spec.groups: spec for spec in named or catalog.instances() if _fits(node, spec, product)}
    return next(iter(fitting.values())) if len(fitting) == 1 else None


def instance_of_file(tree: Element) -> InstanceSpec | None:
    """The instance type of a file that leaves its GPUs to NCCL: the one layout of Azure's that its places have, with
    PCI domains as Hyper-V gives them to devices of a guest. None for others, whose bus ids say nothing of a provider.
    NUMA nodes are not compared: Azure's own files of one type differ there."""
    gpus, nics = (sorted(map(bus_of, elements)) for elements in (bare_gpus(tree), bare_nics(tree)))
    if not gpus or not all(map(_by_hyper_v, (*gpus, *nics))):
        return None
    layout: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    gen = ""
    for above in tree.walk():
        for pci in above.having("pci"):
            for kind, buses in enumerate((gpus, nics)):
                if bus_of(pci) in buses:
                    layout[bus_of(above)][kind].append(buses.index(bus_of(pci)))
            gen = (pci.get("link_speed") or "") if bus_of(pci) in gpus else gen
    pairs = {(tuple(sorted(own)), tuple(sorted(its))) for own, its in layout.values()}
    azure = {name for system in catalog.systems() if system.vendor == "Azure" for name in system.product_names}
    fitting = [
        spec
        for spec in catalog.instances()
        if azure & {spec.name, *spec.names}
        and gen.partition(" ")[0] in (GT_PER_S[spec.gpu_link[0]], GT_PER_S[spec.gpu_link[0]].removesuffix(".0"))
        and pairs == {(group.gpus, group.nics) for group in spec.groups}
    ]
    return fitting[0] if len(fitting) == 1 else None


def _fits(node: Node, spec: InstanceSpec, product: str) -> bool:
    nics = sum(nic.role is NicRole.COMPUTE for nic in node.nics)
    if len(node.gpus) != spec.gpus or nics != spec.nics:
        return False
    return any(_is_of(node, system, product) for system in catalog.systems() if system.name in (spec.name, *spec.names))


def _is_of(node: Node, system: SystemSpec, product: str) -> bool:
    """Whether the guest's provider and all its GPUs are those of this system."""
    products = [catalog.gpu_by_name(gpu.name.value or "") for gpu in node.gpus]
    names = (system.gpu, *system.other_gpus)
    return any(word in product for word in _PROVIDERS.get(system.vendor, ())) and all(
        product is not None and product.name in names for product in products
    )


def plan_by_instance(guest: Guest, spec: InstanceSpec) -> Plan:
    """The places of all GPUs and compute NICs of an instance type. Raises VirtualError where the guest has others."""
    gpus = list(guest.gpus)
    nics = _compute_nics(guest, spec)
    if len(gpus) != spec.gpus or len(nics) != spec.nics:
        have = f"{len(gpus)} GPUs and {len(nics)} compute NICs"
        raise VirtualError(
            f"{spec.name} has {spec.gpus} GPUs and {spec.nics} compute NICs, and this machine has {have}"
        )
    switch = (("link_speed", link_of(*spec.switch_link).speed), ("link_width", str(spec.switch_link[1])))
    places = {}
    for number, group in enumerate(spec.groups):
        above = (Switch(f"group {number}", switch),) if group.switch else ()
        for at in group.gpus:
            places[gpus[at]] = Place(group.numa, above, link_of(*spec.gpu_link))
        for at in group.nics:
            places[nics[at]] = Place(group.numa, above, link_of(*spec.nic_link))
    return Plan(places, (f"took the places of {spec.name} ({spec.source})",))


def _compute_nics(guest: Guest, spec: InstanceSpec) -> list[str]:
    """NICs in the order of their bus ids; where there are more than the type has, those of the most frequent kind."""
    nics = list(guest.nics) if spec.nics else []
    if len(nics) <= spec.nics:
        return nics
    kinds = Counter(_kind(pci) for pci in guest.nics.values())
    usual = next((kind for kind, count in kinds.most_common() if count == spec.nics), None)
    return [bus_id for bus_id in nics if _kind(guest.nics[bus_id]) == usual] if usual is not None else nics


def _kind(pci: Element) -> tuple[str, str, str]:
    net = pci.nets[0]
    return pci.get("device") or "", net.get("speed") or "", net.get("gdr") or ""
