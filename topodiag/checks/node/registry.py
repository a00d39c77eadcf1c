"""The checks of nodes, one line each: module and class."""

from __future__ import annotations

CHECKS = {
    "GPU001": "gpu_lost:GpuLost",
    "GPU002": "gpu_memory:GpuMemory",
    "GPU003": "xid:XidInLog",
    "GPU004": "gpu_clocks:ClocksHeldDown",
    "GPU005": "gpu_recovery:GpuRecovery",
    "GPU006": "gpu_tests:SlowGpuInTest",
    "HST001": "limits:HostLimits",
    "HST002": "devices_given:DevicesNotGiven",
    "HST003": "host_settings:HostSettings",
    "HST004": "driver_mismatch:DriverMismatch",
    "HST005": "hung_probes:ProbeHangs",
    "HST006": "storage_stalls:StorageStalls",
    "NVL001": "nvlink:FewerNvlinks",
    "NVL002": "nvlink_rate:SlowNvlinks",
    "NVL003": "nvlink_errors:NvlinkErrors",
    "NVL004": "nvlink:PairWithoutNvlink",
    "NVL005": "fabric:FabricNotReady",
    "PCI001": "pcie:NarrowPcieLink",
    "PCI002": "pcie:SlowPcieLink",
    "PCI003": "pcie_errors:PcieErrors",
    "PCI004": "acs:AcsBetweenPeers",
    "NIC001": "nic:NicPortDown",
    "NIC002": "nic_rate:NicPortSlow",
    "NIC003": "nic_errors:NicPortErrors",
    "NIC004": "nics_differ:NicsDiffer",
    "NIC005": "nic_count:MissingComputeNic",
    "NET009": "lossy_class:LossyClass",
    "NET010": "rdma_unused:RdmaUnused",
    "GDR001": "gdr:GdrModuleMissing",
    "GDR002": "gdr:GdrTooFar",
    "NUM001": "numa:GpuNicOnDifferentSockets",
    "NUM002": "process_cores:ProcessAwayFromGpu",
    "TOP003": "virtual_pci:VirtualPciTree",
    "ENV001": "settings:CostlySetting",
    "ENV002": "conf_file:ConfLineNotRead",
    "ENV003": "settings:UnknownSetting",
}

COMPANIONS = {
    "BEN001": "rdma_test:RdmaTestLow",
    "JOB004": "second_program:SecondProgram",
}
"""Checks whose page stands with another subject: the same fault, shown by other evidence."""
