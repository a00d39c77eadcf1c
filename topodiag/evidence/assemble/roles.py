"""Tells compute NICs from storage and management ones: only compute NICs carry the job's collectives.

No single sign is enough (a storage ConnectX-7 looks like a compute one), so the signs are taken together: the default
route, RDMA, nearness to a GPU, link layer and product. Every role keeps its reason.

Names the machine: what DMI says, else the known system that its parts match.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from topodiag.evidence.assemble.graph import chain
from topodiag.hardware import catalog
from topodiag.model.devices import Nic, NicRole
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.model.topics import Topic


def system_name(node: Node, fact: Fact[str]) -> Fact[str]:
    """The product or instance type. A hypervisor's own product name yields to a match by parts."""
    if fact.value is not None:
        spec = catalog.system_by_product(fact.value)
        if spec is not None:
            return Fact(spec.name, fact.origin)
    names = Counter(gpu.name.value for gpu in node.gpus if gpu.name.value)
    if len(names) == 1:
        gpu = catalog.gpu_by_name(next(iter(names)))
        compute = sum(nic.role is NicRole.COMPUTE for nic in node.nics)
        if gpu is not None:
            switches = len(node.nvswitches) or None
            matches = catalog.match_system(gpu.name, len(node.gpus), compute or None, switches, node.is_vm)
            # The board that integrators build around is the honest name where a maker's own machine fits as well.
            named = [match for match in matches if match.name.startswith("HGX")] or list(matches)
            if len(named) == 1:
                return Fact(named[0].name, node.gpus[0].name.origin)
    return fact


Family = tuple[str, str]
"""Product and link layer: NICs of one family were bought for one purpose."""


def with_roles(node: Node) -> tuple[Nic, ...]:
    """The node's NICs, each with its role and why."""
    routed = {device.name for device in node.netdevs if device.default_route.get(False)}
    routed |= {device.master.value for device in node.netdevs if device.name in routed and device.master.value}
    enslaved = {device.name for device in node.netdevs if device.master.value in routed}
    candidates = [nic for nic in node.nics if _is_candidate(nic, routed | enslaved)]
    near = {nic.name for nic in candidates if _near_gpu(node, nic)}
    chosen = _chosen_families(candidates, near)
    nics = []
    for nic in node.nics:
        role, why = _judge(nic, node, routed | enslaved, near, chosen)
        nics.append(replace(nic, role=role, role_why=why))
    return tuple(nics)


def _judge(nic: Nic, node: Node, routed: set[str], near: set[str], chosen: set[Family]) -> tuple[NicRole, str]:
    through = sorted(set(nic.netdevs) & routed)
    if through and not nic.name.startswith("rdmap"):
        return NicRole.MANAGEMENT, f"carries the default route ({through[0]})"
    if nic.rdma_name is None and nic.smi_label is None:
        if not nic.ports:
            return NicRole.UNKNOWN, "no driver runs it"
        return NicRole.MANAGEMENT, "Ethernet without RDMA"
    if not node.gpus and Topic.GPUS in node.told:
        return NicRole.UNKNOWN, "no GPU to serve"
    family = _family(nic)
    if nic.name in near:
        return NicRole.COMPUTE, "under one PCIe switch with a GPU"
    if family not in chosen:
        return NicRole.STORAGE, "another product or link layer than the NICs that serve the GPUs"
    if near:
        return NicRole.STORAGE, "no GPU within PXB, while NICs of the same kind have one"
    if not node.gpus:
        return NicRole.COMPUTE, "the largest group of RDMA NICs of one kind; nothing in the evidence speaks of GPUs"
    return NicRole.COMPUTE, "the largest group of RDMA NICs of one kind"


def _is_candidate(nic: Nic, routed: set[str]) -> bool:
    return (nic.rdma_name is not None or nic.smi_label is not None) and not set(nic.netdevs) & routed


def _family(nic: Nic) -> Family:
    layer = next((port.link_layer.value for port in nic.ports if port.link_layer.value), "")
    return nic.part.value or nic.hca_type.value or "", layer


def _near_gpu(node: Node, nic: Nic) -> bool:
    """Whether a GPU is below the same PCIe switch: any on the bus, for a job or a guest may hold a part of them."""
    mine = set(chain(node, nic.bus_id)) if nic.bus_id else set()
    if mine and any(mine & set(chain(node, bus_id)) for bus_id in _gpu_functions(node)):
        return True
    for gpu in node.gpus:
        path = node.paths.get((gpu.label, nic.name))
        if path is not None and PathType.PIX <= path.type <= PathType.PXB:
            return True
    return False


def _gpu_functions(node: Node) -> set[str]:
    seen = {gpu.bus_id for gpu in node.gpus if gpu.bus_id}
    return seen | {bus_id for bus_id, fn in node.pci.items() if fn.is_accelerator}


def _chosen_families(candidates: list[Nic], near: set[str]) -> set[Family]:
    """The families that serve the GPUs: those with a near NIC; without any, InfiniBand first, then the largest group,
    then the faster product. DPUs yield to plain NICs."""
    if near:
        return {_family(nic) for nic in candidates if nic.name in near}
    sizes = Counter(_family(nic) for nic in candidates)
    if not sizes:
        return set()

    def merit(family: Family) -> tuple[bool, bool, int, float]:
        member = next(nic for nic in candidates if _family(nic) == family)
        spec = catalog.nic_by_hca_type(member.hca_type.value) if member.hca_type.value else None
        rate = spec.rate_gbps if spec else 0.0
        return not (spec is not None and spec.dpu), family[1] == "InfiniBand", sizes[family], rate

    return {max(sizes, key=merit)}
