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
    about = "states of Fabric Manager, IMEX, persistence, RDMA services"
    keeps = ("name and states of each service",)
    return [CommandProbe("systemctl", "systemctl", argv, about=about, keeps=keeps)]
