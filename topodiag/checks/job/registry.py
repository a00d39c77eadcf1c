"""The checks of jobs, one line each: module and class."""

from __future__ import annotations

CHECKS = {
    "NET001": "network:SocketsInsteadOfRdma",
    "NET002": "interface:WrongInterface",
    "NET003": "nics:FewerNicsUsed",
    "NET004": "rails:FarNic",
    "NET005": "plugin:PluginNotLoaded",
    "NET006": "channels:SearchCollapsed",
    "NET007": "nodes_differ:NodesDiffer",
    "NET008": "network_errors:RdmaErrors",
    "P2P001": "p2p:ShmInsteadOfP2p",
    "P2P002": "p2p_off:P2pSwitchedOff",
    "TOP004": "topology:GpuShortOfNvlinks",
    "TOP005": "topology:DeviceTwice",
    "PLC001": "placement:TensorGroupSplit",
    "PLC002": "placement:ExpertGroupSplit",
    "PLC004": "placement:PeersOnOtherRails",
    "PLC006": "order:RankOrder",
    "PLC007": "order:RingReturns",
    "JOB001": "init:InitNotFinished",
    "JOB002": "versions:VersionsDiffer",
    "JOB003": "settings_differ:SettingsDiffer",
    "JOB004": "shared_gpu:SharedGpu",
    "JOB005": "errors:FirstError",
    "JOB006": "hang:RankBehind",
    "JOB007": "library:KnownLibraryFault",
    "JOB008": "late:LateArriver",
    "JOB009": "died:ProcessDied",
    "JOB010": "uneven:RanksUneven",
}

COMPANIONS = {
    "GPU001": "device_faults:GpuLostInLog",
    "GPU002": "device_faults:GpuMemoryInLog",
    "GPU003": "device_faults:NvlinkErrorInLog",
    "HST001": "device_faults:LimitInLog",
    "PCI001": "narrow_link:NarrowLinkInLog",
    "PCI004": "hints:AcsHinted",
    "NVL005": "fabric:FabricInLog",
    "NIC005": "nics:FewerNicsThanSiblings",
    "GDR001": "gdr:GdrOffInLog",
    "GDR002": "gdr_distance:GdrTooFarInLog",
    "NUM001": "numa:NicOnOtherSocket",
    "NUM002": "numa:AwayFromGpuInLog",
    "TOP001": "refused_file:TopologyFileRefused",
    "TOP003": "topology:GuessedTopology",
    "ENV001": "settings:CostlySettingInLog",
    "ENV002": "settings:MisreadSettingInLog",
    "ENV003": "settings:UnknownSettingInLog",
}
"""Checks whose page stands with nodes or topology files: a job's logs show the same fault."""
