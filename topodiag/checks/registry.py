"""Every check, one line each: the class that carries its page, then, where logs show the same fault, that for jobs."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from topodiag.checks.interface import Check

_CHECKS = {
    "NVL001": "nvlink:FewerNvlinks",
    "NVL002": "nvlink:SlowNvlinks",
    "NVL003": "nvlink_errors:NvlinkErrors",
    "NVL004": "nvlink:PairWithoutNvlink",
    "NVL005": "fabric:FabricNotReady",
    "PCI001": "pcie:NarrowPcieLink",
    "PCI002": "pcie:SlowPcieLink",
    "PCI003": "pcie_errors:PcieErrors",
    "PCI004": "acs:AcsBetweenPeers",
    "NIC001": "nic:NicPortDown",
    "NIC002": "nic:NicPortSlow",
    "NIC003": "nic_errors:NicPortErrors",
    "NIC004": "nics_differ:NicsDiffer",
    "NIC005": "nic_count:MissingComputeNic",
    "GDR001": "gdr:GdrModuleMissing",
    "GDR002": "gdr:GdrTooFar",
    "NUM001": "numa:GpuNicOnDifferentSockets",
    "NUM002": "numa:ProcessAwayFromGpu",
    "TOP003": "virtual_pci:VirtualPciTree",
    "ENV001": "settings:CostlySetting",
    "ENV002": "conf_file:ConfLineNotRead",
    "ENV003": "settings:UnknownSetting",
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


def _load(check_id: str, place: str) -> type[Check]:
    module, _, name = place.partition(":")
    made = getattr(import_module(f"topodiag.checks.{module}"), name)
    if not (isinstance(made, type) and issubclass(made, Check) and made.id == check_id):
        raise TypeError(f"{place} is registered as {check_id} and is not that check")
    return made
