"""Every source, one line each, in the order in which bare text is tried (the more particular first)."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from topodiag.evidence.interface import Source

_SOURCES = {
    "nvml": "nvml:Nvml",
    "processes": "processes:Processes",
    "nvidia-smi-xml": "nvidia_smi_xml:NvidiaSmiXml",
    "nccl-xml": "nccl_xml.source:NcclXml",
    "hwloc-xml": "hwloc_xml:HwlocXml",
    "nvidia-smi-q": "nvidia_smi_q_text:NvidiaSmiQText",
    "nvidia-smi": "nvidia_smi_table:NvidiaSmiTable",
    "nvidia-smi-nvlink": "nvidia_smi_nvlink:NvidiaSmiNvlink",
    "nvidia-smi-p2p": "nvidia_smi_p2p:NvidiaSmiP2p",
    "nvidia-smi-topo": "nvidia_smi_topo:NvidiaSmiTopo",
    "sys-pci": "sys_pci:SysPci",
    "sys-infiniband": "sys_infiniband:SysInfiniband",
    "sys-net": "sys_net:SysNet",
    "sys-cpu": "sys_cpu:SysCpu",
    "os-state": "os_state:OsState",
    "settings": "settings:Settings",
    "lspci": "lspci:Lspci",
    "ibstat": "ibstat:Ibstat",
    "ibstatus": "ibstatus:Ibstatus",
    "ibv-devinfo": "ibv_devinfo:IbvDevinfo",
    "rdma-link": "rdma_link:RdmaLink",
    "ibdev2netdev": "ibdev2netdev:Ibdev2netdev",
    "ethtool-stats": "ethtool_stats:EthtoolStats",
    "ethtool-driver": "ethtool_driver:EthtoolDriver",
    "ethtool": "ethtool:Ethtool",
    "systemctl": "systemctl:Systemctl",
    "kernel-log": "kernel_log:KernelLog",
}

HEAD_CHARS = 65536


def kinds() -> tuple[str, ...]:
    return tuple(_SOURCES)


@cache
def source(kind: str) -> Source[Any] | None:
    """The source that reads this kind, or None when no source does."""
    place = _SOURCES.get(kind)
    if place is None:
        return None
    module, _, name = place.partition(":")
    made = getattr(import_module(f"topodiag.evidence.{module}"), name)()
    if not isinstance(made, Source) or made.kind != kind:
        raise TypeError(f"{place} is registered as {kind} and is not that source")
    return made


def recognise(text: str) -> tuple[str, ...]:
    """The kinds of a text without a manifest, from its content: none, one, or several in a terminal transcript."""
    head = text[:HEAD_CHARS]
    return tuple(kind for kind in _SOURCES if (made := source(kind)) is not None and made.recognises(head))
