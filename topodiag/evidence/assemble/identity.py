"""Names the machine: what DMI says, else the known system that its parts match."""

from __future__ import annotations

from collections import Counter

from topodiag.hardware import catalog
from topodiag.model.devices import NicRole
from topodiag.model.node import Node
from topodiag.model.provenance import Fact


def system_name(node: Node, said: Fact[str]) -> Fact[str]:
    """The product or instance type. A hypervisor's own product name yields to a match by parts."""
    if said.value is not None:
        spec = catalog.system_by_product(said.value)
        if spec is not None:
            return Fact(spec.name, said.origin)
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
    return said
