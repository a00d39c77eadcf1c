"""Causes inside a node: NVLinks that are down or slow, PCIe links that trained narrow, peer-to-peer that is refused."""

from __future__ import annotations

from dataclasses import replace

from topodiag.expect.hypothesis_causes import HOST_MEMORY
from topodiag.model.finding import Finding
from topodiag.model.nccl_tree import Element
from topodiag.nccl.topo.changes import bus_of, gpus_of
from topodiag.verdict.pricing.edits import (
    buses_of_labels,
    nvlinks_by_gpu,
    pcie_by_function,
    ports_by_bus,
    with_nvlinks,
    with_pcie,
)
from topodiag.verdict.pricing.ground import HostGround, Machine
from topodiag.verdict.pricing.mend import CannotError, Mend


class NvLinks(Mend):
    """NVLinks of some GPUs as the source shows them, against those of their peers."""

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        mine = buses_of_labels(finding.where.gpus, host.built.tree)
        whole = nvlinks_by_gpu(host.built.tree)
        for view in host.views:
            shown = {bus: links for bus, links in nvlinks_by_gpu(view.tree).items() if bus in whole}
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
            shown = pcie_by_function(view.tree)
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
