"""Every source, one line each, in the order in which bare text is tried (the more particular first)."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from topodiag.evidence.heads import AT_FRONT, HEADS, possible
from topodiag.evidence.interface import Source

_SOURCES = {
    "nvml": "nvidia.nvml:Nvml",
    "processes": "host.processes:Processes",
    "nvidia-smi-xml": "nvidia.nvidia_smi_xml:NvidiaSmiXml",
    "nccl-xml": "nccl_xml.file:NcclXml",
    "hwloc-xml": "hwloc.hwloc_xml:HwlocXml",
    "lstopo": "hwloc.hwloc_xml:LstopoText",
    "nvidia-smi-q": "nvidia.nvidia_smi_q_text:NvidiaSmiQText",
    "nvidia-smi-query": "nvidia.nvidia_smi_query:NvidiaSmiQuery",
    "nvidia-smi": "nvidia.nvidia_smi_table:NvidiaSmiTable",
    "nvidia-smi-processes": "nvidia.nvidia_smi_table:SmiProcesses",
    "nvidia-smi-dmon": "nvidia.nvidia_smi_dmon:NvidiaSmiDmon",
    "rocm-smi": "amd.rocm_smi:RocmSmi",
    "amd-links": "amd.links:AmdLinks",
    "amd-smi-xgmi": "amd.links:XgmiStatus",
    "amd-smi-json": "amd.gpu_json:AmdSmiJson",
    "amd-copy-test": "amd.copy_tests:AmdCopyTests",
    "dcgm-dmon": "nvidia.dcgm_fields:DcgmDmon",
    "dcgm": "nvidia.dcgm:Dcgm",
    "dcgm-nvlink": "nvidia.dcgm:DcgmNvlink",
    "dcgm-exporter": "nvidia.dcgm_fields:DcgmExporter",
    "gpu-burn": "nvidia.copy_tests:GpuBurn",
    "cuda-copy-test": "nvidia.copy_tests:CopyTests",
    "nvidia-smi-nvlink": "nvidia.nvidia_smi_nvlink:NvidiaSmiNvlink",
    "nvidia-smi-p2p": "nvidia.nvidia_smi_topo:NvidiaSmiP2p",
    "nvidia-smi-topo": "nvidia.nvidia_smi_topo:NvidiaSmiTopo",
    "sys-pci": "host.sys_pci:SysPci",
    "sys-kfd": "amd.kfd:Kfd",
    "sys-infiniband": "network.sys_infiniband:SysInfiniband",
    "sys-net": "network.sys_net:SysNet",
    "sys-cpu": "host.numactl:SysCpu",
    "os-state": "host.os_state:OsState",
    "nccl-params": "host.lsmod:NcclParams",
    "settings": "host.settings:Settings",
    "lspci": "host.lspci:Lspci",
    "ibstat": "network.ibstat:Ibstat",
    "ibstatus": "network.ibstat:Ibstatus",
    "ibv-devinfo": "network.ibv_devinfo:IbvDevinfo",
    "rdma-link": "network.rdma_link:RdmaLink",
    "ibdev2netdev": "network.ibv_devinfo:Ibdev2netdev",
    "mlxlink": "network.mlxlink:Mlxlink",
    "rdma-gids": "network.ibv_devinfo:ShowGids",
    "rdma-perftest": "network.perftest:Perftest",
    "qos": "network.qos:Qos",
    "ib-counters": "network.fabric_counters:FabricCounters",
    "node-exporter": "network.node_exporter:NodeExporter",
    "counter-lines": "network.node_exporter:CounterLines",
    "ib-net": "network.fabric_counters:IbNet",
    "ib-links": "network.fabric_counters:FabricLinks",
    "ip-link": "network.ip_link:IpLink",
    "ethtool-stats": "network.ethtool:EthtoolStats",
    "ethtool-driver": "network.ethtool:EthtoolDriver",
    "ethtool": "network.ethtool:Ethtool",
    "systemctl": "host.systemctl:Systemctl",
    "kernel-log": "host.kernel_log:KernelLog",
    "switch-log": "network.switch_log:SwitchLog",
    "slurm-nodes": "host.slurm_nodes:SlurmNodes",
    "bmc-events": "host.bmc_events:BmcEvents",
    "compute-domain": "host.compute_domain:ComputeDomain",
    "kubectl-node": "host.kubectl_node:KubectlNode",
    "numactl": "host.numactl:Numactl",
    "lsmod": "host.lsmod:Lsmod",
    "pair-rates": "network.perftest:PairRates",
    "sentences": "sentence_source:SentenceSource",
    "shell": "host.shell_facts:ShellFacts",
    "rows": "table:Rows",
    "table": "table:Tables",
}
ASKED_LAST = "table"
"""Asked of a text that no other reader of anything takes: every tool prints tables."""

HEAD_CHARS = 65536
BY_LINE = ("kernel-log",)
"""Sources whose lines speak for themselves, so that they are looked for in all of a text."""


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
    held = possible(text.encode("utf-8", "replace"))
    return tuple(
        kind
        for kind in _SOURCES
        if kind != ASKED_LAST
        and (kind in held or (kind not in HEADS and kind not in AT_FRONT))
        and (made := source(kind)) is not None
        and made.recognises(text if kind in BY_LINE else head)
    )


def as_table(text: str) -> tuple[str, ...]:
    """The reader of tables, where a text has one. To be asked where all others were."""
    head = text[:HEAD_CHARS]
    made = source(ASKED_LAST) if ASKED_LAST in possible(head.encode("utf-8", "replace")) else None
    return (ASKED_LAST,) if made is not None and made.recognises(head) else ()
