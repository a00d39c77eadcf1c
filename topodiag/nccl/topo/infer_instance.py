"""Which instance type a guest is, by what it shows of itself: its provider, its GPUs, its NICs."""

from __future__ import annotations

from topodiag.hardware import catalog
from topodiag.hardware.specs import InstanceSpec, SystemSpec
from topodiag.model.devices import NicRole
from topodiag.model.node import Node

_PROVIDERS = {"AWS": ("amazon", "ec2"), "Azure": ("microsoft",), "Google Cloud": ("google",)}
"""Words in DMI's names of a machine, by the vendor of the instance type."""


def infer_instance(node: Node) -> InstanceSpec | None:
    """The one published layout that fits a guest. None where several fit, none fits, or the guest does not name its
    provider: the same parts stand in other clouds, too."""
    said = (node.system.value or "").lower()
    named = [spec for spec in catalog.instances() if any(name.lower() in said for name in (spec.name, *spec.names))]
    fitting = {spec.groups: spec for spec in named or catalog.instances() if _fits(node, spec, said)}
    return next(iter(fitting.values())) if len(fitting) == 1 else None


def _fits(node: Node, spec: InstanceSpec, said: str) -> bool:
    nics = sum(nic.role is NicRole.COMPUTE for nic in node.nics)
    if len(node.gpus) != spec.gpus or nics != spec.nics:
        return False
    return any(_is_of(node, system, said) for system in catalog.systems() if system.name in (spec.name, *spec.names))


def _is_of(node: Node, system: SystemSpec, said: str) -> bool:
    """Whether the guest's provider and all its GPUs are those of this system."""
    products = [catalog.gpu_by_name(gpu.name.value or "") for gpu in node.gpus]
    names = (system.gpu, *system.other_gpus)
    return any(word in said for word in _PROVIDERS.get(system.vendor, ())) and all(
        product is not None and product.name in names for product in products
    )
