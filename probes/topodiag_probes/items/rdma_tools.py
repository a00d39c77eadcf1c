"""The RDMA tools: what they add to sysfs is MTU, capability words and the names they give to devices."""

from typing import List

from topodiag_probes.interface import CommandProbe, Probe


def probes() -> List[Probe]:
    return [
        CommandProbe("ibstat", "ibstat", ["ibstat"]),
        CommandProbe("ibv-devinfo", "ibv-devinfo", ["ibv_devinfo", "-v"]),
        CommandProbe("rdma-link", "rdma-link", ["rdma", "link", "show"]),
        CommandProbe("ibdev2netdev", "ibdev2netdev", ["ibdev2netdev"]),
    ]
