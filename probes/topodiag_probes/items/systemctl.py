"""The states of the services that a GPU fabric needs."""

from typing import List

from topodiag_probes.interface import CommandProbe, Probe

UNITS = (
    "nvidia-fabricmanager",
    "nvidia-imex",
    "nvidia-persistenced",
    "nvidia-topologyd",
    "openibd",
    "opensm",
    "nv_peer_mem",
)


def probes() -> List[Probe]:
    argv = ["systemctl", "show", "-p", "Id,LoadState,ActiveState,SubState,Result", *UNITS]
    return [
        CommandProbe("systemctl", "systemctl", argv, about="states of Fabric Manager, IMEX, persistence, RDMA services")
    ]
