"""The PCI tree of sysfs: links, speeds, widths, NUMA, AER counters and configuration space.

Only files named here are read. Others in the same folders act when read or written (`rom`, `reset`, `remove`, `enable`)
or are the device's memory (`resource*`).
"""

from typing import List, Optional

from topodiag_probes.interface import Context, Outcome, Probe, TreeProbe
from topodiag_probes.tree import Tree

DEVICES = "sys/bus/pci/devices"
GROUPS = "sys/kernel/iommu_groups"

_AER = ("aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal")
_TEXTS = (
    "class",
    "vendor",
    "device",
    "subsystem_vendor",
    "subsystem_device",
    "revision",
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
    "numa_node",
    "local_cpulist",
    "sriov_numvfs",
    "sriov_totalvfs",
)
_LINKS = ("driver", "iommu_group", "physfn")

_CONFIG_CLASSES = ("0x02", "0x03", "0x0604", "0x0680", "0x0c06", "0x12")
"""Network, display, PCI bridge, NVSwitch, InfiniBand, accelerator: devices on a path whose configuration matters."""
CONFIG_BYTES = 4096
"""All of the extended configuration space; without root the kernel gives the first 64 bytes."""


class SysPci(TreeProbe):
    """Every PCI device."""

    id = "sys-pci"
    kind = "sys-pci"
    file = "trees/sys-pci.tree"
    about = "PCI devices: link speed and width, NUMA, AER, IOMMU group, configuration space"
    keeps = (
        "of each device: place, class, vendor, link, NUMA node, AER counters, driver, IOMMU group, configuration space",
    )
    needs = "/" + DEVICES
    root_adds = "configuration space beyond 64 bytes: ACS, link and AER registers"
    sampled = True
    absent = "no PCI devices in sysfs"

    def paths(self) -> Optional[List[str]]:
        return [DEVICES, GROUPS]

    def again(self) -> Optional[Probe]:
        return SysPciAer()

    def collect(self, tree: Tree, ctx: Context) -> None:
        for device in ctx.root.names(DEVICES):
            path = "%s/%s" % (DEVICES, device)
            tree.link(path)
            device_class = tree.text(path + "/class") or ""
            tree.texts(path, _TEXTS[1:])
            tree.texts(path, _AER)
            for name in _LINKS:
                tree.link("%s/%s" % (path, name))
            if device_class.startswith(_CONFIG_CLASSES):
                tree.binary(path + "/config", CONFIG_BYTES)
        for group in ctx.root.names(GROUPS):
            tree.text("%s/%s/type" % (GROUPS, group))

    def run(self, ctx: Context, end: float, out: Outcome) -> None:
        super().run(ctx, end, out)
        out.needs_root = out.data is not None and not ctx.is_root


class SysPciAer(TreeProbe):
    """The AER counters once more."""

    id = "sys-pci-aer"
    kind = "sys-pci"
    file = "trees/sys-pci-aer.tree"
    about = "AER counters once more, with --sample"
    keeps = ("AER counters",)
    needs = "/" + DEVICES
    absent = "no AER counters in sysfs"

    def paths(self) -> Optional[List[str]]:
        return [DEVICES]

    def collect(self, tree: Tree, ctx: Context) -> None:
        for device in ctx.root.names(DEVICES):
            tree.texts("%s/%s" % (DEVICES, device), _AER)


def probes() -> List[Probe]:
    return [SysPci()]
