"""Every probe, one line per file, in the order in which they are started: the slow ones first."""

from typing import List

from topodiag_probes.interface import Probe
from topodiag_probes.items import (
    amd,
    cpu,
    ethtool,
    infiniband,
    kernel_log,
    lspci,
    net,
    nvidia_smi,
    nvml,
    os_state,
    pci,
    processes,
    rdma_tools,
    service_logs,
    settings,
    systemctl,
    topo_files,
)

_MODULES = (
    nvml,
    processes,
    nvidia_smi,
    amd,
    kernel_log,
    ethtool,
    lspci,
    pci,
    infiniband,
    rdma_tools,
    net,
    os_state,
    cpu,
    systemctl,
    settings,
    topo_files,
    service_logs,
)


def probes() -> List[Probe]:
    """A new list of all probes."""
    found: List[Probe] = []
    for module in _MODULES:
        found.extend(module.probes())
    return found
