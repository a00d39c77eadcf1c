"""Every check, one line each: the class that carries its page, then, where logs or layouts show the same fault, those
for jobs and for layouts."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from topodiag.checks.interface import Check

_CHECKS = {
    "NVL001": "nvlink:FewerNvlinks",
    "NVL002": "nvlink:SlowNvlinks",
    "NVL003": "nvlink_errors:NvlinkErrors",
    "NVL004": "nvlink:PairWithoutNvlink",
    "NVL005": "fabric:FabricNotReady job_fabric:FabricInLog",
    "PCI001": "pcie:NarrowPcieLink",
    "PCI002": "pcie:SlowPcieLink",
    "PCI003": "pcie_errors:PcieErrors",
    "PCI004": "acs:AcsBetweenPeers",
    "NIC001": "nic:NicPortDown",
    "NIC002": "nic:NicPortSlow",
    "NIC003": "nic_errors:NicPortErrors",
    "NIC004": "nics_differ:NicsDiffer",
    "NIC005": "nic_count:MissingComputeNic job_nics:FewerNicsThanSiblings",
    "NET001": "job_network:SocketsInsteadOfRdma",
    "NET002": "job_interface:WrongInterface",
    "NET003": "job_nics:FewerNicsUsed",
    "NET004": "job_rails:FarNic",
    "NET005": "job_network_errors:PluginNotLoaded",
    "NET006": "job_channels:SearchCollapsed topo_search:TreesLostInFile",
    "NET007": "job_nodes_differ:NodesDiffer",
    "NET008": "job_network_errors:RdmaErrors",
    "GDR001": "gdr:GdrModuleMissing job_gdr:GdrOffInLog",
    "GDR002": "gdr:GdrTooFar job_gdr:GdrTooFarInLog",
    "P2P001": "job_p2p:ShmInsteadOfP2p",
    "P2P002": "job_p2p:P2pSwitchedOff",
    "NUM001": "numa:GpuNicOnDifferentSockets job_numa:NicOnOtherSocket",
    "NUM002": "numa:ProcessAwayFromGpu job_numa:AwayFromGpuInLog",
    "TOP001": "topo_file:FileRefused job_topology:TopologyFileRefused",
    "TOP002": "topo_file:FileOfAnotherMachine",
    "TOP003": "virtual_pci:VirtualPciTree job_topology:GuessedTopology",
    "TOP004": "job_topology:GpuShortOfNvlinks topo_devices:GpuShortInFile",
    "TOP005": "job_topology:DeviceTwice topo_devices:DeviceTwiceInFile",
    "TOP006": "topo_file:FileOfARack",
    "PLC001": "job_placement:TensorGroupSplit place_groups:TensorGroupSplitInLayout",
    "PLC002": "job_placement:ExpertGroupSplit place_groups:ExpertGroupSplitInLayout",
    "PLC003": "place_order:StagesApart",
    "PLC004": "job_placement:PeersOnOtherRails place_order:PeersOnOtherRailsInLayout",
    "PLC005": "place_groups:Fragmented",
    "PLC006": "job_order:RankOrder place_order:RankOrderInLayout",
    "PLC007": "job_order:RingReturns place_order:RingReturnsInLayout",
    "JOB001": "job_init:InitNotFinished",
    "JOB002": "job_versions:VersionsDiffer",
    "JOB003": "job_settings:SettingsDiffer",
    "JOB004": "job_init:SharedGpu",
    "JOB005": "job_errors:FirstError",
    "JOB006": "job_hang:RankBehind",
    "ENV001": "settings:CostlySetting job_settings:CostlySettingInLog",
    "ENV002": "conf_file:ConfLineNotRead job_settings:MisreadSettingInLog",
    "ENV003": "settings:UnknownSetting job_settings:UnknownSettingInLog",
    "BEN001": "bench_low:BandwidthLow",
    "BEN002": "bench_latency:LatencyFloorHigh",
    "BEN003": "bench_dip:SweepDips",
    "BEN004": "bench_wrong:WrongResults",
    "BEN005": "bench_placement:PlacementsApart",
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
    """Those of a check for jobs, which modules named `job_*` hold. The others, and what predicts and places for them,
    are not imported: that takes as long as reading a small log."""
    return tuple(_load(check_id, place) for place in _CHECKS.get(check_id, "").split() if place.startswith("job_"))


def _load(check_id: str, place: str) -> type[Check]:
    module, _, name = place.partition(":")
    made = getattr(import_module(f"topodiag.checks.{module}"), name)
    if not (isinstance(made, type) and issubclass(made, Check) and made.id == check_id):
        raise TypeError(f"{place} is registered as {check_id} and is not that check")
    return made
