"""Where a guest's devices belong by its instance type, whose topology its provider has published.

Devices are told by their order on the PCI bus: the first GPU, the second NIC. That only holds where the guest has all
of them, so a guest with fewer NICs than its type is refused rather than guessed at.
"""

from __future__ import annotations

from collections import Counter

from topodiag.hardware.specs import InstanceSpec
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.virtual import Guest, Place, Plan, Switch, VirtualError, link_of


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
