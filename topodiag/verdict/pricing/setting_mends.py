"""Causes that somebody set: variables of NCCL, and a topology file that is not of the machine."""

from __future__ import annotations

from dataclasses import replace

from topodiag.expect.settings import HCA
from topodiag.lazy import regex
from topodiag.model.devices import ports_of
from topodiag.model.finding import Finding
from topodiag.nccl.topo.hca_list import HcaFilter
from topodiag.verdict.pricing.edits import with_less
from topodiag.verdict.pricing.ground import HostGround, Machine
from topodiag.verdict.pricing.mend import CannotError, Mend
from topodiag.verdict.pricing.network_mends import over_sockets

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
        lost = {
            name
            for net in nets
            for name in ports_of(net.get("name") or "")
            if not taken.takes(name, int((net.get("port") or "1")[:3] or 1))
        }
        return replace(machine, tree=with_less(machine.tree, lost))
    if (name == "NCCL_IB_DISABLE" and value.strip() == "1") or (name == "NCCL_NET" and value.lower() == "socket"):
        return over_sockets(machine, host)
    if name == _FILE:
        return _by_file(machine, host)
    return machine.with_env(name, value)


def _by_file(machine: Machine, host: HostGround) -> Machine:
    if not host.views:
        raise CannotError("neither the topology file nor NCCL's print of it is in the evidence")
    return replace(machine, tree=host.views[0].tree)


class TopologyFile(Mend):
    """A topology file that is not of the machine: what NCCL makes of it, against the machine without it."""

    def claims_file(self, finding: Finding) -> bool:
        return True

    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        return _by_file(machine, host)
