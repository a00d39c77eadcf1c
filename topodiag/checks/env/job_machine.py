"""What rules on settings ask of the machines that a job's log shows (the conditions of rules.toml under `job`)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from topodiag.checks.env.node_machine import BOARD
from topodiag.checks.shared.job.logs import multi_node, prints, ranks_per_node, said_by
from topodiag.model.job import Job
from topodiag.model.nccl_view import GPU_LINKS

HOPPER_NVLINK_GBS = 300.0
"""NVLink path of a GPU, GB/s in NCCL's print, above which it is Hopper or later, which have NVLink SHARP: 18 links of
20.6 make 370 there, 12 of 20 make 240 on A100 (src/graph/topo.h v2.28)."""


class LogMachines:
    """What a job's log shows of its machines, as far as the rules ask."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._prints = tuple(prints(job))
        nodes = job.world.nodes if job.world is not None and multi_node(job) else 0
        self.several_nodes = max(len(job.hosts), nodes) > 1
        self._ranks_per_host = ranks_per_node(job)
        self.unknown_ranks = not self._ranks_per_host
        self.several_gpus = self._ranks_per_host > 1
        self.whole_board = self._ranks_per_host >= BOARD

    def lacks(self, condition: str) -> bool:
        """Whether the log does not show what a condition is about: machines, networks, connections, or NVLinks."""
        name = condition.removeprefix("not ")
        if name == "sockets" and self.several_nodes:
            return not any(process.network for process in self.job.processes)
        if name in ("no_gdr", "network_inside"):
            return not self._vias
        if name in ("nvlink", "nvswitch", "nvls"):
            return not self._prints and self._ranks_per_host != 1
        return self.unseen

    @cached_property
    def _nvlink_gbs(self) -> float:
        """The best path between two GPUs over NVLink, GB/s, or the widest NVLink; 0 if none was printed."""
        links = [link for system_print in self._prints for link in system_print.system.links]
        return max((link.gbs for link in links if link.kind in GPU_LINKS and "CPU" not in link.b), default=0.0)

    @cached_property
    def nvlink(self) -> bool:
        return self._nvlink_gbs > 0

    @cached_property
    def nvls(self) -> bool:
        return self.nvswitch and self._nvlink_gbs > HOPPER_NVLINK_GBS

    @cached_property
    def nvswitch(self) -> bool:
        switches = any(system_print.system.of_kind("NVS") for system_print in self._prints)
        return self.nvlink and self._ranks_per_host > 2 and switches

    @cached_property
    def unseen(self) -> bool:
        """Whether nothing tells what the machines are: no rank, no print, no connection."""
        return not self.job.ranks and not self._vias and not self._prints

    @cached_property
    def sockets(self) -> bool:
        """Whether processes that have others on further nodes to talk to do it over sockets."""
        return self.several_nodes and any(process.network.lower() == "socket" for process in self.job.processes)

    @cached_property
    def rdma(self) -> bool:
        """Whether some process lists an RDMA device."""
        nets = (net for system_print in self._prints for net in system_print.system.of_kind("NET"))
        return any(process.hcas for process in self.job.processes) or any(net.guid.strip("0x") for net in nets)

    @cached_property
    def _vias(self) -> frozenset[str]:
        connections = self.job.connections
        return frozenset(connections.vias[at] for at in np.unique(connections.flows.via).tolist())

    @cached_property
    def no_gdr(self) -> bool:
        """Whether data between nodes goes over RDMA NICs, and never by GPUDirect."""
        net = [via for via in self._vias if via.startswith("NET/") and not via.startswith("NET/Socket")]
        return bool(net) and not any("GDRDMA" in via for via in net)

    @cached_property
    def network_inside(self) -> bool:
        """Whether GPUs of one node talk over the network."""
        refused = not self.several_nodes and any(True for _ in said_by(self.job, "p2p off"))
        if refused and any(via.startswith("NET/") for via in self._vias):
            return True
        net = [at for at, via in enumerate(self.job.connections.vias) if via.startswith("NET/")]
        flows = self.job.connections.flows
        return bool(((flows.host >= 0) & (flows.host == flows.peer_host) & np.isin(flows.via, net)).any())
