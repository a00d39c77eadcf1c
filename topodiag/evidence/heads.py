"""Literals of the formats: a text that holds none of a source's is none of its texts, and the source is not loaded.

They stand apart from the sources, so that asking costs one pass over the bytes and no import. A source without a line
here is asked of every text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from topodiag.evidence.signatures.literals import Finder, finder

_GPUS = tuple(f"GPU{digit}" for digit in range(10))
_MODES = tuple(
    f"{mode}{' ' * blanks}|" for mode in ("On", "Off", "N/A", "WDDM", "TCC", "MCDM") for blanks in range(1, 5)
)
_CLASSES = ("controller", "bridge", "Bridge", "accelerators")
_RATES = (
    *(f"{unit}{per}" for unit in ("b", "B", "t", "T") for per in ("ps", "PS", "Ps", "pS", "/s", "/S")),
    *("bw", "BW", "Bw", "bW", "bandwidth", "Bandwidth", "BANDWIDTH", "BandWidth", "bandWidth"),
)
_LINKS = tuple(f"{v}{mark}{link}" for v in "Vv" for mark in ("", "_") for link in ("Link", "link"))
_CLOCKS = tuple(f"{c}l{rest}" for c in "Cc" for rest in ("k", "ok", "ck", "ock"))
_ABSENT = ("could not be found", "not found", "does not exist")

HEADS: Mapping[str, tuple[str, ...]] = {
    "nvml": ('"gpus"', '"error"'),
    "processes": ('"processes"',),
    "nvidia-smi-xml": ("<nvidia_smi_log",),
    "nccl-xml": ("<system",),
    "hwloc-xml": ("<topology",),
    "lstopo": ("Machine ",),
    "nvidia-smi-q": ("NVSMI LOG", "Attached GPUs", "GPU 0", "GPU 1", "Fabric", "Clocks Event Reasons",
                     "Clocks Throttle Reasons", "Remapped Rows", "ECC Errors", "GPU Link Info"),
    "nvidia-smi-query": ("--query-gpu", "--query-remapped-rows", ", "),
    "nvidia-smi": ("| NVIDIA-SMI ", "UUID: GPU-", "determine the device handle", *_MODES),
    "nvidia-smi-processes": ("Process name", "pid"),
    "nvidia-smi-dmon": ("gpu ",),
    "nvtop": ("PCIe GEN",),
    "rocm-smi": ("SCLK", '"card'),
    "amd-links": ("between two GPUs", "LINK TYPE TABLE:", "(Topology) Link type between", '"link_type"'),
    "amd-smi-xgmi": ("XGMI LINK STATUS:", "LINK METRIC TABLE:", '"link_metrics"'),
    "amd-smi-json": ('"gpu"', "GPU: "),
    "amd-copy-test": ("TransferBench v", "RocmBandwidthTest Version: "),
    "dcgm-dmon": ("Entity",),
    "dcgm": ("iagnostic", "iolation", "IOLATION", " - All", "Fail", "andwidth", "eplay", "emap", "memory elements",
             "PCI link", "ouble-bit", "etected XID", "etected Xid", "NvLink errors", "NVLink errors"),
    "dcgm-nvlink": ("NvLink Link Status", "gpuId ", "NVLINK Error Counts"),
    "dcgm-exporter": ("DCGM_",),
    "gpu-burn": ("proc'd: ",),
    "cuda-copy-test": ("P2P", "nvbandwidth Version", "pciBusID: ", "bandwidth"),
    "nvidia-smi-nvlink": ("Link ", "inks are inactive", "not supported", "NVML:"),
    "nvidia-smi-p2p": _GPUS,
    "nvidia-smi-topo": (*_GPUS, "opology matrix"),
    "sys-pci": ("sys/bus/pci/devices",),
    "sys-kfd": ("sys/class/kfd/kfd/topology/nodes",),
    "sys-infiniband": ("sys/class/infiniband",),
    "sys-net": ("sys/class/net",),
    "sys-cpu": ("proc/cpuinfo", "sys/devices/system/"),
    "os-state": ("proc/", "etc/os-release", "sys/class/dmi/", "sys/module/", "sys/kernel/", "sys/class/iommu",
                 "statvfs/", "dev/"),
    "nccl-params": ("Current value=",),
    "settings": ("NCCL_", "PATH=", "HOME=", "PWD=", "SHLVL=", "SHELL=", "USER=", "SLURM_", "KUBERNETES_", "environ",
                 "nccl.conf"),
    "lspci": (*_CLASSES, "(rev ", "LnkCap:", "LnkSta:", "ACSCtl:", ": 10de:", ": 15b3:", ": 1002:", ": 14e4:",
              ": 8086:", ": 1d0f:", ": 1022:", ": 1000:"),
    "ibstat": ("CA '", "CA: '"),
    "ibstatus": ("Infiniband device '",),
    "ibv-devinfo": ("hca_id:", "GID["),
    "rdma-link": ("physical_state",),
    "amd-smi-nic": ("RDMA_DEVICES:",),
    "ibdev2netdev": ("==>",),
    "rdma-statistic": ("rx_", "tx_", "out_of_", "active_", "resp_", "req_", "rnr_", "duplicate_", "packet_",
                       "local_ack"),
    "mlxlink": ("Operational Info", "Troubleshooting Info", "Module Info", "Physical Counters and BER", "Physical BER",
                "Symbol BER"),
    "rdma-gids": ("INDEX",),
    "rdma-perftest": ("BW Test", "Latency Test", "Test"),
    "qos": ("Priority trust state:", "PFC configuration:", "enabled", "prio-pfc "),
    "ib-counters": ("Errors for ", "GUID 0x", "counters: ", "SymbolErrorCounter", "LinkDownedCounter", "PortXmitData"),
    "node-exporter": ("node_",),
    "counter-lines": ("link_down", "link_error_recovery", "symbol_error", "port_rcv_errors", "local_link_integrity",
                      "excessive_buffer_overrun", "port_xmit_discards", "rx_crc_err", "rx_symbol_err", "rx_icrc",
                      "out_of_sequence", "packet_seq_err", "local_ack_timeout", "rx_discards_phy", "req_transport"),
    "ib-net": ('"S-', " ( '"),
    "ib-links": (")==>",),
    "ip-link": ("mtu ", '"ifname"', "UP", "DOWN", "UNKNOWN", "DORMANT", "NOTPRESENT", "inet", "link/"),
    "bonding": ("Slave Interface: ",),
    "ibdiagnet": ("-I- ", "-W- ", "-E- "),
    "hca-self-test": ("Performing Adapter Device Self Test", "Port State of Port #"),
    "ethtool-stats": ("NIC statistics:", "ethtool"),
    "ethtool-driver": ("firmware-version:",),
    "ethtool-module": ("optical power",),
    "ethtool": ("Settings for ", "ethtool "),
    "systemctl": ("State=", "Id=", ".service", *_ABSENT, "for nvidia-", "fabric", "is-active", "systemd[1]",
                  "Log initializing", "] [tid "),
    "kernel-log": ("Xid", "xid", "NVRM", "available PCIe", "PCIe Bus Error", "fallen off the bus", "iommu: ", "DMAR: ",
                   "AMD-Vi: ", "blocked for more than", "nfs: server", "Lustre: ", "LustreError: ", "I/O error",
                   "amdgpu ", "[amdgpu]] ", "mlx5_core ", "mlx4_core ", "bnxt_en ", "bnxt_re ", "ionic ", "irdma ",
                   "ice ", "hns3 ", "efa ", "infiniband ", "link status definitely", "NIC Link is ", "pcieport ",
                   "config space inaccessible", "EDAC ", "mce: ", "lockup", "rcu: ", "Kernel panic",
                   "NETDEV WATCHDOG: ", "tx_timeout ", " Unit Hang", "transmit timed out, ",
                   "TX timeout detected", "Detected insufficient power", "detected NVSwitch", "detected GPU NVLink",
                   "[ ", "] ", "oom-killer", "protection fault"),
    "switch-log": ("nterface ", "Port ", "SNMP_TRAP", "arrier", "ink", "atchdog"),
    "slurm-nodes": ("REASON", "NODELIST", "NodeName=", "Reason=", "eason", "not responding"),
    "bmc-events": (" | ",),
    "compute-domain": ("lique", "CLIQUE", '"nodes"', "nodes seen: ", "] [tid "),
    "kubectl-node": ("com/gpu:", "True", "kubernetes.io", "Gpu", "GPU", "/"),
    "numactl": ("node ",),
    "lsmod": ("Used by", "lsmod", "nvidia", "nv_peer_mem", "ib_core", "ib_uverbs", "mlx5_", "rdma_cm", "amdgpu",
              "gdrdrv"),
    "iperf": ("Interval",),
    "shell": ("ulimit", "ax locked memory", "MEMLOCK", "memlock", "dev/shm", "BOOT_IMAGE=", "root=", "ivhd", "dmar",
              "load average: ", "No such file or directory", "AX LOCKED"),
}  # fmt: skip
"""By kind of source. Every text that the source recognises holds one of them, which tests hold for all fixtures."""
AT_FRONT: Mapping[str, tuple[str, ...]] = {
    "pair-rates": (*_RATES, "BW Test", "Latency Test"),
    "rows": ("rank", "Rank", "RANK", ":", "| CHANGED", "| SUCCESS"),
    "table": ("rank", "Rank", "RANK", "GPU", "gpu", *_LINKS, "Stat", "stat", "STAT", "ecc", "ECC", "LnkC", "LnkS",
              "lnkC", "lnkS", *_CLOCKS, "NCCL_", "UCX_", "mtu", "MTU", "tclass", "trust", "pfc", "pkey", "gid_index",
              "Health", "health", "Fatal", "fatal", "Error", "error", ":"),
}  # fmt: skip
"""The same of sources that are asked of the front of a text alone: lines like theirs stand in the middle of many."""
_ALL = {**HEADS, **AT_FRONT}

_LITERALS = tuple(dict.fromkeys(literal for literals in _ALL.values() for literal in literals))


@cache
def _finder() -> Finder:
    return finder([literal.encode() for literal in _LITERALS], once=True)


@cache
def _kinds_of() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(kind for kind, literals in _ALL.items() if literal in literals) for literal in _LITERALS)


def possible(text: bytes) -> frozenset[str]:
    """The kinds of sources of which a literal stands in the text."""
    found: set[str] = set()
    for _, number in _finder().hits(text):
        found |= _kinds_of()[number]
    return frozenset(found)
