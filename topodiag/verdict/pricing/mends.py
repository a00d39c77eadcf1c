"""How links, networks and settings that are a cause change a machine."""

from __future__ import annotations

from dataclasses import replace

from topodiag.expect.hypothesis_causes import HOST_MEMORY
from topodiag.expect.settings import HCA
from topodiag.lazy import regex
from topodiag.model.devices import ports_of
from topodiag.model.finding import Finding
from topodiag.model.job_wires import UNKNOWN_INTERFACE_GBPS, interface_gbps
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.changes import bus_of, gpus_of, with_nvlinks, with_pcie
from topodiag.nccl.topo.hca_list import HcaFilter
from topodiag.verdict.pricing.edits import (
    buses_of_labels,
    nvlinks_by_gpu,
    pcie_by_function,
    ports_by_bus,
    rates,
    with_less,
    with_socket,
    without_gdr,
)
from topodiag.verdict.pricing.mend import CannotError, HostGround, Machine, Mend


class NvLinks(Mend):
    """NVLinks of some GPUs as the source shows them, against those of their peers."""

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        mine = buses_of_labels(finding.where.gpus, host.built.tree)
        whole = nvlinks_by_gpu(host.built.tree)
        for view in host.views:
            shown = {bus: links for bus, links in nvlinks_by_gpu(view).items() if bus in whole}
            less = {bus: links for bus, links in shown.items() if bus in mine and links != whole[bus]}
            if less:
                # The far ends of a mesh count the same links.
                ends = {bus: links for bus, links in shown.items() if links != whole[bus]}
                return replace(machine, tree=with_nvlinks(machine.tree, ends))
        if finding.id == "NVL002" and finding.cost.share:
            return _slower(machine, mine, 1 - finding.cost.share)
        raise CannotError("no capture and no print of NCCL shows how many links are left")


def _slower(machine: Machine, buses: frozenset[str], share: float) -> Machine:
    """Links that are all there and run slow: NCCL counts links, so all that passes them takes longer."""
    links = nvlinks_by_gpu(machine.tree)
    there = any(links.get(bus) for bus in buses)
    return replace(machine, pace=min(machine.pace, share)) if there else machine


class NoFabric(Mend):
    """A node whose NVSwitch fabric is not ready: its GPUs have no NVLink at all."""

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        if "NVLink domain" in finding.message:  # the links inside the tray carry data all the same
            raise CannotError("what NVLink between trays would bring is measured only")
        links: dict[str, tuple[()]] = dict.fromkeys(nvlinks_by_gpu(machine.tree), ())
        return replace(machine, tree=with_nvlinks(machine.tree, links))


class NarrowPcie(Mend):
    """A PCIe link that trained narrow or slow. Where NCCL itself sees it (a topology file, its print, 2.30 and later),
    it plans with it. Else it plans with what the link is able to do, and what passes the link sets the pace of all."""

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        whole = pcie_by_function(host.built.tree)
        mine = _functions_of(finding, host.built.tree)
        for view in host.views:
            shown = pcie_by_function(view)
            less = {bus: values for bus, values in shown.items() if bus in mine and values != whole.get(bus, values)}
            if less:
                return replace(machine, tree=with_pcie(machine.tree, less))
        share = finding.cost.share
        if share is None:
            raise CannotError("the speed of the link is not known")
        if not finding.where.nics and self._only_nvlink(machine, host):
            return machine
        return replace(machine, pace=min(machine.pace, 1 - share))

    @staticmethod
    def _only_nvlink(machine: Machine, host: HostGround) -> bool:
        """Whether the collective never leaves the NVLinks of the node: one node whose GPUs all have some."""
        links = nvlinks_by_gpu(machine.tree)
        single_node = host.job is None or len(host.job.hosts) < 2
        return single_node and len(gpus_of(machine.tree)) > 1 and all(links.values())


def _functions_of(finding: Finding, tree: Element) -> frozenset[str]:
    """Bus ids of the devices that a finding names, with all bridges above them."""
    wanted = set(buses_of_labels(finding.where.gpus, tree)) if finding.where.gpus else set()
    wanted |= {bus for bus, ports in ports_by_bus(tree).items() if {bus, *ports} & set(finding.where.nics)}
    texts: set[str] = set()

    def walk(element: Element, above: tuple[str, ...]) -> None:
        here = (*above, bus_of(element)) if element.tag == "pci" else above
        if element.tag == "pci" and bus_of(element) in wanted:
            texts.update(here)
        for child in element.children:
            walk(child, here)

    walk(tree, ())
    return frozenset(texts)


class NoPeerToPeer(Mend):
    """GPUs of a node that cannot reach each other directly: the driver refuses it, a redirect or a setting is in the
    way. NCCL goes through host memory."""

    least = HOST_MEMORY
    unreckoned = "copies through host memory"

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        return machine.with_env("NCCL_P2P_DISABLE", "1")


class FewerNics(Mend):
    """NICs that NCCL does not have or that run below their rate, as a source shows them. NICs that a finding names and
    that no source shows at all are gone."""

    lacks_nics = True

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        names = frozenset(finding.where.nics)
        whole = rates(host.built.tree)
        by_bus = {port for bus, ports in ports_by_bus(host.built.tree).items() if bus in names for port in ports}
        mine = (names & set(whole)) | by_bus
        for view in host.views:
            shown = rates(view)
            if not shown:
                continue
            lost = [name for name in mine or whole if name not in shown]
            slow = {name: shown[name] for name in mine or whole if 0 < shown.get(name, 0) < whole[name]}
            if lost or slow:
                return replace(machine, tree=with_less(machine.tree, lost, slow))
        # A port may be down now: what NCCL printed is of a time when it was up.
        if mine and (not host.views or finding.id == "NIC001"):
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


_NAME = regex(r"NCCL_[A-Z0-9_]{2,48}")
_FILE = "NCCL_TOPO_FILE"


class Setting(Mend):
    """A variable in force, against the machine without it."""

    def claimed_settings(self, finding: Finding) -> frozenset[str]:
        texts = {name for name, value in finding.settings if value is None}
        return frozenset(texts or _NAME.findall(finding.message))

    def claims_file(self, finding: Finding) -> bool:
        return _FILE in self.claimed_settings(finding)

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        for name in sorted(self.claimed_settings(finding)):
            if name in host.given:
                machine = _set(machine, host, name, host.given[name])
        return machine


def _set(machine: Machine, host: HostGround, name: str, value: str) -> Machine:
    """The machine with a variable in force: those that choose NICs and files change what NCCL sees."""
    if name == HCA:
        taken, nets = HcaFilter(value), (node for node in machine.tree.walk() if node.tag == "net")
        numbered = ((ports_of(net.get("name") or ""), int((net.get("port") or "1")[:3] or 1)) for net in nets)
        lost = {name for names, port in numbered for name in names if not taken.takes(name, port)}
        return replace(machine, tree=with_less(machine.tree, lost))
    if (name == "NCCL_IB_DISABLE" and value.strip() == "1") or (name == "NCCL_NET" and value.lower() == "socket"):
        return over_sockets(machine, host)
    if name == _FILE:
        return _by_file(machine, host)
    return machine.with_env(name, value)


def _by_file(machine: Machine, host: HostGround) -> Machine:
    if not host.views:
        raise CannotError("neither the topology file nor NCCL's print of it is in the evidence")
    return replace(machine, tree=host.views[0])


class TopologyFile(Mend):
    """A topology file that is not of the machine: what NCCL makes of it, against the machine without it."""

    def claims_file(self, finding: Finding) -> bool:
        return True

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        return _by_file(machine, host)
