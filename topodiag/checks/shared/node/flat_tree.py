"""Signs that a hypervisor made up the PCI tree of a node."""

from __future__ import annotations

from topodiag.checks.shared.devices import compute_nics, distance, gpu_spec, numa_of
from topodiag.model.devices import Gpu, Nic, PciDevice
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.units import plural

NO_WIDTH = (0, 255)
"""Lanes that the kernel reports where it cannot read the link (`current_link_width`)."""

NEEDS_ROOT = "needs root"
"""How the readers begin the reason when an unprivileged capture lacks a value."""

NEAR = PathType.PXB
"""On bare metal a GPU and its NIC meet at a PCIe switch, so at PXB or nearer."""

FLAT_PAIRS = 4
"""GPU-NIC pairs from which `all of them far` counts as a sign without knowing that this is a guest."""


def is_flat(node: Node) -> bool:
    """Whether distances between GPUs and NICs on this node are a hypervisor's invention."""
    return node.is_vm is not False and is_flat_by(node, flat_signs(node, compute_nics(node)))


def gpus_and_nics(node: Node, nics: tuple[Nic, ...]) -> list[Gpu | Nic]:
    return [*node.gpus, *nics]


NO_SWITCH, NO_SPEED = "no PCIe switch above them", "link speed or width unreadable"
NO_NUMA, ALL_FAR = "NUMA node -1", "far"


def flat_signs(node: Node, nics: tuple[Nic, ...]) -> dict[str, Fact[object]]:
    """What speaks for a made-up tree, in words, each with a fact that shows it."""
    signs: dict[str, Fact[object]] = {}
    devices = gpus_and_nics(node, nics)
    seen = [(device, pci) for device in devices if (pci := node.pci_of(device)) is not None]
    if seen and not any(_has_switch(node, pci) for _, pci in seen):
        first = seen[0][1]
        signs[f"{NO_SWITCH} ({plural(len(seen), 'device')})"] = Fact(first.bus_id, first.class_code.origin)
    dark = [pci for _, pci in seen if _is_dark(pci)]
    if dark:
        fact = dark[0].width if dark[0].width.origin is not None else dark[0].gen
        signs[f"{NO_SPEED} on {len(dark)} of {len(seen)}"] = Fact(dark[0].bus_id, fact.origin)
    homeless = [fact for device in devices if (fact := numa_of(node, device)).get(0) < 0]
    if homeless:
        signs[f"{NO_NUMA} on {len(homeless)} of {len(devices)}"] = Fact(homeless[0].value, homeless[0].origin)
    return signs | _distance_signs(node, nics)


def _distance_signs(node: Node, nics: tuple[Nic, ...]) -> dict[str, Fact[object]]:
    """That every GPU is far from every NIC, where all distances are known."""
    pairs = [distance(node, gpu.label, nic.name) for gpu in node.gpus for nic in nics]
    far = [fact for kind, fact in pairs if kind is not None and kind > NEAR and kind is not PathType.P2C]
    if not far or len(far) < len(pairs):
        return {}
    return {f"all {len(far)} GPU-NIC pairs are {ALL_FAR}ther than {NEAR.name}": Fact(far[0].value, far[0].origin)}


def is_flat_by(node: Node, signs: dict[str, Fact[object]]) -> bool:
    has = {sign: any(sign in text for text in signs) for sign in (NO_SWITCH, NO_SPEED, NO_NUMA, ALL_FAR)}
    if has[NO_SWITCH] and (has[NO_SPEED] or has[NO_NUMA]):
        return True
    specs = [gpu_spec(gpu) for gpu in node.gpus]
    behind_switches = all(spec is not None and spec.nvswitch and spec.form == "sxm" for spec in specs)
    if not behind_switches or not has[ALL_FAR]:
        return False
    pairs = len(node.gpus) * len(compute_nics(node))
    return bool(node.is_vm) or (pairs >= FLAT_PAIRS and len(node.gpus) > FLAT_PAIRS)


def _has_switch(node: Node, pci: PciDevice) -> bool:
    """Whether a PCIe switch stands above a function: a port that says so, or two bridges between it and the root."""
    above = node.ancestors(pci.bus_id)
    return len(above) > 1 or any(bridge.port_type.value in ("upstream", "downstream") for bridge in above)


def _is_dark(pci: PciDevice) -> bool:
    if pci.width.value in NO_WIDTH:
        return True
    if any(NEEDS_ROOT in fact.why for fact in (pci.gen, pci.width)):
        return False  # lspci without root hides every link, on bare metal too
    looked = pci.gen.origin is not None or pci.width.origin is not None
    return looked and pci.gen.value is None and pci.max_gen.value is None
