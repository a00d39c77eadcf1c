"""Causes inside a node: NVLinks that are down or slow, PCIe links that trained narrow, peer-to-peer that is refused."""

from __future__ import annotations

from topodiag.model.finding import Finding
from topodiag.nccl.topo.changes import gpus_of
from topodiag.verdict.pricing.edits import buses_of_labels, nvlinks_by_gpu, with_nvlinks
from topodiag.verdict.pricing.ground import HostGround, Machine
from topodiag.verdict.pricing.mend import CannotError, Mend


class NvLinks(Mend):
    """NVLinks of some GPUs as the source shows them, against those of their siblings."""

    checks = ("NVL001", "NVL002", "NVL004", "TOP004")

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        mine = buses_of_labels(finding.where.gpus, host.built.tree)
        whole = nvlinks_by_gpu(host.built.tree)
        for view in host.views:
            shown = {bus: links for bus, links in nvlinks_by_gpu(view.tree).items() if bus in whole}
            less = {bus: links for bus, links in shown.items() if bus in mine and links != whole[bus]}
            if less:
                # The far ends of a mesh count the same links.
                ends = {bus: links for bus, links in shown.items() if links != whole[bus]}
                return Machine(with_nvlinks(machine.tree, ends), machine.env, machine.network, machine.pace)
        if finding.id == "NVL002" and finding.cost.share:
            return _slower(machine, mine, 1 - finding.cost.share)
        raise CannotError("no capture and no print of NCCL shows how many links are left")


def _slower(machine: Machine, buses: frozenset[str], share: float) -> Machine:
    """Links that are all there and run slow: NCCL counts links, so all that passes them takes longer."""
    links = nvlinks_by_gpu(machine.tree)
    there = any(links.get(bus) for bus in buses)
    return Machine(machine.tree, machine.env, machine.network, machine.pace * share) if there else machine


class NoFabric(Mend):
    """A node whose NVSwitch fabric is not ready: its GPUs have no NVLink at all."""

    checks = ("NVL005",)

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        gone: dict[str, tuple[()]] = dict.fromkeys(nvlinks_by_gpu(machine.tree), ())
        return Machine(with_nvlinks(machine.tree, gone), machine.env, machine.network, machine.pace)


class NarrowPcie(Mend):
    """A PCIe link that trained narrow or slow. NCCL plans with what the link is able to do (before 2.30), so that what
    passes the link sets the pace of all."""

    checks = ("PCI001", "PCI002")

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        share = finding.cost.share
        if share is None:
            raise CannotError("the speed of the link is not known")
        if not finding.where.nics and self._only_nvlink(machine, host):
            return machine
        return Machine(machine.tree, machine.env, machine.network, machine.pace * (1 - share))

    @staticmethod
    def _only_nvlink(machine: Machine, host: HostGround) -> bool:
        """Whether the collective never leaves the NVLinks of the node: one node whose GPUs all have some."""
        links = nvlinks_by_gpu(machine.tree)
        alone = host.job is None or len(host.job.hosts) < 2
        return alone and len(gpus_of(machine.tree)) > 1 and all(links.values())


class NoPeerToPeer(Mend):
    """GPUs of a node that cannot reach each other directly: the driver refuses it, a redirect or a setting is in the
    way. NCCL goes through host memory."""

    checks = ("P2P001",)

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        return machine.with_env("NCCL_P2P_DISABLE", "1")
