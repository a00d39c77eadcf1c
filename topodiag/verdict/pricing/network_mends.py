"""Causes between nodes: NICs that are gone, down or slow, sockets in place of RDMA, GPUDirect RDMA that is off."""

from __future__ import annotations

from dataclasses import replace

from topodiag.expect.hypothesis_causes import HOST_MEMORY
from topodiag.model.finding import Finding
from topodiag.model.job_wires import UNKNOWN_INTERFACE_GBPS, interface_gbps
from topodiag.verdict.pricing.edits import ports_by_bus, rates, with_less, with_socket, without_gdr
from topodiag.verdict.pricing.ground import HostGround, Machine
from topodiag.verdict.pricing.mend import CannotError, Mend


class FewerNics(Mend):
    """NICs that NCCL does not have or that run below their rate, as a source shows them. NICs that a finding names and
    that no source shows at all are gone."""

    def claims_nics(self, finding: Finding) -> bool:
        return True

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        names = frozenset(finding.where.nics)
        whole = rates(host.built.tree)
        by_bus = {port for bus, ports in ports_by_bus(host.built.tree).items() if bus in names for port in ports}
        mine = (names & set(whole)) | by_bus
        for view in host.views:
            shown = rates(view.tree)
            if not shown:
                continue
            lost = [name for name in mine or whole if name not in shown]
            slow = {name: shown[name] for name in mine or whole if 0 < shown.get(name, 0) < whole[name]}
            if lost or slow:
                return replace(machine, tree=with_less(machine.tree, lost, slow))
        if mine and not host.views:
            return replace(machine, tree=with_less(machine.tree, mine))
        if mine and finding.id == "NIC001":  # the port is down now; what NCCL printed is of a time when it was up
            return replace(machine, tree=with_less(machine.tree, mine))
        raise CannotError("no capture and no print of NCCL shows which NICs are left")


TCP = 0.1
"""What a TCP stack may bring of the interface that NCCL assumes: 1 of 12.5 GB/s with one thread and one socket (NCCL
user guide, NCCL_SOCKET_NTHREADS; nccl issues 229, 489).

NCCL's figure is an upper bound by its source: of sockets its model knows the rate of the interface alone
(src/transport/net_socket.cc v2.29.7, ncclNetSocketGetProperties: `speed` of sysfs, `latency` not set). But for AWS (2
threads of 8 sockets) and GCP (4 of 1) a connection has one socket and no thread (ncclNetSocketGetNsockNthread): the
rank's proxy thread copies all that it sends and receives. Tree counts a node's interface once in each direction
(src/graph/tuning.cc: two nodes take bwIntra, twice that of a ring), which one thread hardly fills both ways."""


def over_sockets(machine: Machine, host: HostGround) -> Machine:
    """The machine with NCCL's socket transport in place of its RDMA NICs."""
    gbps = interface_gbps(host.job) if host.job is not None else UNKNOWN_INTERFACE_GBPS
    return replace(machine, tree=with_socket(machine.tree, "sockets", round(gbps * 1000)), network="sockets")


class Sockets(Mend):
    """TCP in place of RDMA. NCCL uses one kind of network for a job, so one node's fall-back is that of all."""

    least = TCP
    unreckoned = "the costs of TCP"

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        return over_sockets(machine, host)


class NoGpuDirect(Mend):
    """GPUDirect RDMA off: what leaves a node goes through host memory first."""

    least = HOST_MEMORY
    unreckoned = "copies through host memory"

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        return replace(machine, tree=without_gdr(machine.tree))
