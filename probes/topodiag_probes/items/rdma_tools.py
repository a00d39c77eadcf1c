"""The RDMA tools: what they add to sysfs is MTU, capability words and the names they give to devices."""

from typing import List

from topodiag_probes.interface import CommandProbe, Probe


def probes() -> List[Probe]:
    keeps = ("devices and ports: names, GUIDs, GIDs, firmware, states, rates",)
    return [
        CommandProbe("ibstat", "ibstat", ["ibstat"], keeps=keeps),
        CommandProbe("ibv-devinfo", "ibv-devinfo", ["ibv_devinfo", "-v"], keeps=keeps),
        CommandProbe("rdma-link", "rdma-link", ["rdma", "link", "show"], keeps=keeps),
        CommandProbe("ibdev2netdev", "ibdev2netdev", ["ibdev2netdev"], keeps=keeps),
    ]
