"""What costly settings cost a job, by what its logs show: one rule per variable. job_settings.py applies them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from topodiag.checks.shared.job.evidence import SystemPrint, multi_node, prints, ranks_per_node, said_by
from topodiag.checks.shared.setting_rules import (
    CHECKED_CALLS,
    CUMEM_OFF,
    FEW_CTAS,
    FEW_NCHANNELS,
    GROUP_LAUNCH,
    NVLS_OFF,
    ONE_PROTOCOL,
    P2P_LEVEL_LOC,
    PXN_OFF,
    SMALL_BUFFERS,
    TRACED,
    Rule,
    few_channels,
    level,
    number,
    off,
    on,
    small_buffer,
)
from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Confidence, Severity
from topodiag.model.job import Job
from topodiag.model.nccl_enums import PathType
from topodiag.model.nccl_view import GPU_LINKS

HOPPER_NVLINK_GBS = 300.0
"""NVLink path of a GPU, GB/s in NCCL's print, above which it is Hopper or later, which have NVLink SHARP: 18 links of
20.6 make 370 there, 12 of 20 make 240 on A100 (src/graph/topo.h v2.28)."""


@dataclass(frozen=True)
class LogMachines:
    """What a job's log shows of its machines, as far as the rules ask."""

    job: Job

    @cached_property
    def hosts(self) -> int:
        world = self.job.world
        return max(len(self.job.hosts), world.nodes if world is not None and multi_node(self.job) else 0)

    @cached_property
    def ranks_per_host(self) -> int:
        return ranks_per_node(self.job)

    @cached_property
    def nvlink_gbs(self) -> float:
        """The best path between two GPUs over NVLink, GB/s, or the widest NVLink; 0 if none was printed."""
        links = [link for each in self.prints for link in each.system.links]
        return max((link.gbs for link in links if link.kind in GPU_LINKS and "CPU" not in link.b), default=0.0)

    @cached_property
    def prints(self) -> tuple[SystemPrint, ...]:
        return tuple(prints(self.job))

    @cached_property
    def nvswitch(self) -> bool:
        switches = any(each.system.of_kind("NVS") for each in self.prints)
        return self.nvlink_gbs > 0 and self.ranks_per_host > 2 and switches

    @cached_property
    def unseen(self) -> bool:
        """Whether nothing tells what the machines are: no rank, no print, no connection."""
        return not self.job.ranks and not self.vias and not self.prints

    @cached_property
    def networks(self) -> frozenset[str]:
        return frozenset(process.network for process in self.job.processes if process.network)

    @cached_property
    def sockets(self) -> bool:
        """Whether processes that have others on further nodes to talk to do it over sockets."""
        return self.hosts > 1 and any(name.lower() == "socket" for name in self.networks)

    @cached_property
    def rdma(self) -> bool:
        """Whether some process lists an RDMA device."""
        listed = any(process.hcas for process in self.job.processes)
        return listed or any(net.guid.strip("0x") for each in self.prints for net in each.system.of_kind("NET"))

    @cached_property
    def vias(self) -> frozenset[str]:
        made = self.job.connections
        return frozenset(made.vias[at] for at in np.unique(made.flows.via).tolist())

    @cached_property
    def no_gdr(self) -> bool:
        """Whether data between nodes goes over RDMA NICs, and never by GPUDirect."""
        net = [via for via in self.vias if via.startswith("NET/") and not via.startswith("NET/Socket")]
        return bool(net) and not any("GDRDMA" in via for via in net)

    @cached_property
    def net_inside(self) -> bool:
        """Whether GPUs of one node talk over the network."""
        refused = self.hosts < 2 and any(True for _ in said_by(self.job, "p2p off"))
        if refused and any(via.startswith("NET/") for via in self.vias):
            return True
        net = [at for at, via in enumerate(self.job.connections.vias) if via.startswith("NET/")]
        made = self.job.connections.flows
        return bool(((made.host >= 0) & (made.host == made.peer_host) & np.isin(made.via, net)).any())


def _below_pxb(value: str) -> bool:
    said = level(value)
    return said is not None and said < PathType.PXB


E, W, I = Severity.ERROR, Severity.WARNING, Severity.INFO  # noqa: E741
LIKELY, LOW = Confidence.MEDIUM, Confidence.LOW
BOARD = 8
"""GPUs of the boards for which RCCL has known sets of rings (src/graph/rome_models.cc)."""
_NO_P2P = "GPUs of one node do not talk peer-to-peer, over NVLink neither, where a node has several"

JOB_RULES: tuple[Rule[LogMachines], ...] = (
    Rule("NCCL_P2P_DISABLE", lambda v, s: on(v) and s.ranks_per_host > 1 and s.nvlink_gbs > 0,
         "GPUs of one node talk through host memory or the network instead of NVLink", E, "unset NCCL_P2P_DISABLE"),
    Rule("NCCL_P2P_DISABLE", lambda v, s: on(v) and s.ranks_per_host > 1 and s.nvlink_gbs == 0,
         "GPUs of one node talk through host memory, also where they could reach each other", I,
         "unset NCCL_P2P_DISABLE, unless P2P is broken on this machine (then fix that: ACS, IOMMU)", LIKELY),
    P2P_LEVEL_LOC.when(lambda v, s: level(v) == PathType.LOC and s.ranks_per_host > 1 and s.nvlink_gbs > 0),
    Rule("NCCL_P2P_DISABLE", lambda v, s: on(v) and not s.ranks_per_host, _NO_P2P, I,
         "unset NCCL_P2P_DISABLE", LOW),
    Rule("NCCL_P2P_LEVEL", lambda v, s: level(v) == PathType.LOC and not s.ranks_per_host, _NO_P2P, I,
         "unset NCCL_P2P_LEVEL", LOW),
    Rule("NCCL_SHM_DISABLE", lambda v, s: on(v) and s.net_inside,
         "GPUs of one node without peer-to-peer access use the network instead of shared memory", W,
         "unset NCCL_SHM_DISABLE"),
    Rule("NCCL_IB_DISABLE", lambda v, s: on(v) and s.sockets and s.rdma,
         "traffic between nodes goes over TCP sockets although RDMA NICs are there", E, "unset NCCL_IB_DISABLE"),
    Rule("NCCL_IB_DISABLE", lambda v, s: on(v) and s.sockets and not s.rdma,
         "traffic between nodes goes over TCP sockets, and NCCL did not look for RDMA NICs", W,
         "unset NCCL_IB_DISABLE if the nodes have RDMA NICs", LIKELY),
    Rule("NCCL_NET", lambda v, s: v.strip().lower() == "socket" and s.hosts > 1 and s.rdma,
         "traffic between nodes goes over TCP sockets although RDMA NICs are there", E, "unset NCCL_NET"),
    Rule("NCCL_NET", lambda v, s: v.strip().lower() == "socket" and s.hosts > 1 and not s.rdma,
         "traffic between nodes goes over TCP sockets, and NCCL did not look for RDMA NICs", W,
         "unset NCCL_NET if the nodes have RDMA NICs", LIKELY),
    Rule("NCCL_NET_GDR_LEVEL", lambda v, s: _below_pxb(v) and s.hosts > 1 and s.no_gdr,
         "no connection uses GPUDirect RDMA: data between nodes is copied through host memory", E,
         "unset NCCL_NET_GDR_LEVEL (PXB is NCCL's own choice)", LIKELY),
    Rule("NCCL_DMABUF_ENABLE", lambda v, s: off(v) and s.hosts > 1 and s.no_gdr,
         "no connection uses GPUDirect RDMA, and DMA-BUF, one of its two ways, is off", W,
         "unset NCCL_DMABUF_ENABLE, or load nvidia-peermem", LIKELY),
    NVLS_OFF.when(lambda v, s: off(v) and s.nvswitch and s.nvlink_gbs > HOPPER_NVLINK_GBS),
    CUMEM_OFF.when(lambda v, s: off(v) and s.nvswitch and s.nvlink_gbs > HOPPER_NVLINK_GBS),
    Rule("NCCL_CUMEM_ENABLE", lambda v, s: off(v) and s.unseen,
         "cuMem is off, and NVLink SHARP and multi-node NVLink need it, where the machine has them", I,
         "unset NCCL_CUMEM_ENABLE", Confidence.LOW),
    Rule("NCCL_IBEXT_DISABLE", lambda v, s: on(v) and not s.sockets,
         "the IBext plugin goes without RDMA; NCCL's own IB then takes over, and has NCCL_IB_DISABLE of its own", I,
         "unset NCCL_IBEXT_DISABLE where the plugin is meant", LIKELY),
    PXN_OFF.when(lambda v, s: on(v) and s.hosts > 1 and s.nvswitch),
    Rule("NCCL_CROSS_NIC", lambda v, s: number(v) == 1 and s.hosts > 1 and s.rdma,
         "rings may use other NICs, and so other rails, from node to node", I,
         "unset NCCL_CROSS_NIC, unless all NICs share one switch"),
    FEW_NCHANNELS.when(lambda v, s: few_channels(v) and s.nvswitch),
    FEW_CTAS.when(lambda v, s: few_channels(v) and s.nvswitch),
    SMALL_BUFFERS.when(lambda v, s: small_buffer(v)),
    ONE_PROTOCOL.when(lambda v, s: v.strip().upper() in ("LL", "LL128")),
    Rule("NCCL_ALGO", lambda v, s: bool(v.strip()) and not v.strip().startswith("^") and ":" not in v,
         "the algorithm is forced for all collectives and sizes", I, "unset NCCL_ALGO outside of tests"),
    TRACED.when(lambda v, s: v.strip().upper() == "TRACE"),
    CHECKED_CALLS.when(lambda v, s: v.strip().upper().startswith("DEBUG")),
    Rule("RCCL_MODEL_MATCHING_DISABLE", lambda v, s: on(v) and s.nvlink_gbs > 0 and s.ranks_per_host >= BOARD,
         "RCCL searches for rings and does not take the known set of this board", I,
         "unset RCCL_MODEL_MATCHING_DISABLE, unless nodes take different sets"),
    GROUP_LAUNCH.when(lambda v, s: v.strip().upper() == "GROUP"),
)  # fmt: skip

OF_RCCL = (
    (regex(r'Missing "iommu=pt" from kernel command line'), "iommu=pt on the kernel's command line",
     "add iommu=pt to GRUB_CMDLINE_LINUX and start the node again; `cat /proc/cmdline` shows it"),
    (regex(r'Missing "amd_iommu=on" from kernel command line'), "amd_iommu=on on the kernel's command line",
     "add amd_iommu=on to GRUB_CMDLINE_LINUX and start the node again; `cat /proc/cmdline` shows it"),
    (regex(r'Missing "HSA_FORCE_FINE_GRAIN_PCIE=1" from environment'), "HSA_FORCE_FINE_GRAIN_PCIE=1",
     "export HSA_FORCE_FINE_GRAIN_PCIE=1 where GPUs talk over PCIe"),
)  # fmt: skip
"""RCCL src/init.cc (commAlloc and rcclInit), ROCm 4 to 6."""
