"""Every check, one line each: the class that carries its page, then, where logs or layouts show the same fault, those
for jobs and for layouts."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from topodiag.checks.interface import Check

_CHECKS = {
    "NVL001": "node.nvlink:FewerNvlinks",
    "NVL002": "node.nvlink:SlowNvlinks",
    "NVL003": "node.nvlink_errors:NvlinkErrors",
    "NVL004": "node.nvlink:PairWithoutNvlink",
    "NVL005": "node.fabric:FabricNotReady job.fabric:FabricInLog",
    "PCI001": "node.pcie:NarrowPcieLink",
    "PCI002": "node.pcie:SlowPcieLink",
    "PCI003": "node.pcie_errors:PcieErrors",
    "PCI004": "node.acs:AcsBetweenPeers",
    "NIC001": "node.nic:NicPortDown",
    "NIC002": "node.nic:NicPortSlow",
    "NIC003": "node.nic_errors:NicPortErrors",
    "NIC004": "node.nics_differ:NicsDiffer",
    "NIC005": "node.nic_count:MissingComputeNic job.nics:FewerNicsThanSiblings",
    "NET001": "job.network:SocketsInsteadOfRdma",
    "NET002": "job.interface:WrongInterface",
    "NET003": "job.nics:FewerNicsUsed",
    "NET004": "job.rails:FarNic",
    "NET005": "job.network_errors:PluginNotLoaded",
    "NET006": "job.channels:SearchCollapsed topo.search:TreesLostInFile",
    "NET007": "job.nodes_differ:NodesDiffer",
    "NET008": "job.network_errors:RdmaErrors",
    "GDR001": "node.gdr:GdrModuleMissing job.gdr:GdrOffInLog",
    "GDR002": "node.gdr:GdrTooFar job.gdr:GdrTooFarInLog",
    "P2P001": "job.p2p:ShmInsteadOfP2p",
    "P2P002": "job.p2p:P2pSwitchedOff",
    "NUM001": "node.numa:GpuNicOnDifferentSockets job.numa:NicOnOtherSocket",
    "NUM002": "node.numa:ProcessAwayFromGpu job.numa:AwayFromGpuInLog",
    "TOP001": "topo.file:FileRefused job.topology:TopologyFileRefused",
    "TOP002": "topo.file:FileOfAnotherMachine",
    "TOP003": "node.virtual_pci:VirtualPciTree job.topology:GuessedTopology",
    "TOP004": "job.topology:GpuShortOfNvlinks topo.devices:GpuShortInFile",
    "TOP005": "job.topology:DeviceTwice topo.devices:DeviceTwiceInFile",
    "TOP006": "topo.file:FileOfARack",
    "PLC001": "job.placement:TensorGroupSplit layout.groups:TensorGroupSplitInLayout",
    "PLC002": "job.placement:ExpertGroupSplit layout.groups:ExpertGroupSplitInLayout",
    "PLC003": "layout.order:StagesApart",
    "PLC004": "job.placement:PeersOnOtherRails layout.order:PeersOnOtherRailsInLayout",
    "PLC005": "layout.groups:Fragmented",
    "PLC006": "job.order:RankOrder layout.order:RankOrderInLayout",
    "PLC007": "job.order:RingReturns layout.order:RingReturnsInLayout",
    "JOB001": "job.init:InitNotFinished",
    "JOB002": "job.versions:VersionsDiffer",
    "JOB003": "job.settings:SettingsDiffer",
    "JOB004": "job.init:SharedGpu",
    "JOB005": "job.errors:FirstError",
    "JOB006": "job.hang:RankBehind",
    "ENV001": "node.settings:CostlySetting job.settings:CostlySettingInLog",
    "ENV002": "node.conf_file:ConfLineNotRead job.settings:MisreadSettingInLog",
    "ENV003": "node.settings:UnknownSetting job.settings:UnknownSettingInLog",
    "BEN001": "bench.low:BandwidthLow",
    "BEN002": "bench.latency:LatencyFloorHigh",
    "BEN003": "bench.dip:SweepDips",
    "BEN004": "bench.wrong:WrongResults",
    "BEN005": "bench.placement:PlacementsApart",
}


def ids() -> tuple[str, ...]:
    return tuple(_CHECKS)


def check_class(check_id: str) -> type[Check] | None:
    """The class that carries the page of a check, or None when there is no check of that id."""
    made = check_classes(check_id)
    return made[0] if made else None


@cache
def check_classes(check_id: str) -> tuple[type[Check], ...]:
    """All classes of a check: for nodes, for jobs, or one of the two."""
    return tuple(_load(check_id, place) for place in _CHECKS.get(check_id, "").split())


@cache
def job_classes(check_id: str) -> tuple[type[Check], ...]:
    """Those of a check for jobs, which the folder `job` holds. The others, and what predicts and places for them,
    are not imported: that takes as long as reading a small log."""
    return tuple(_load(check_id, place) for place in _CHECKS.get(check_id, "").split() if place.startswith("job."))


def _load(check_id: str, place: str) -> type[Check]:
    module, _, name = place.partition(":")
    made = getattr(import_module(f"topodiag.checks.{module}"), name)
    if not (isinstance(made, type) and issubclass(made, Check) and made.id == check_id):
        raise TypeError(f"{place} is registered as {check_id} and is not that check")
    return made
