"""NVL005: Fabric Manager, fabric registration, NVLink domains."""

from dataclasses import replace
from typing import Any

from tests.checks import nodes
from tests.checks.bent import Built, machine
from tests.checks.nodes import read
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.nvlink.fabric import FabricNotReady
from topodiag.evidence.host.kernel_log import KernelLog
from topodiag.evidence.interface import Blob
from topodiag.model.devices import GpuFabric
from topodiag.model.node import Node
from topodiag.model.provenance import Fact


def judge(node: Node) -> Any:
    return FabricNotReady().judge(node, ())


def waiting(base: str) -> Node:
    return nodes.with_gpus(machine(base), fabric=GpuFabric(state=read("in_progress")))


REFUSED = "nvidia-nvswitch: Version mismatch, kernel version 450.80.02 user version 450.51.06"


def refused(*base: str) -> Node:
    """A machine, or no more than a kernel log, with the line of the NVSwitch driver."""
    node = machine(*base) if base else Node(host="n1")
    return replace(node, events=tuple(KernelLog().parse(Blob("dmesg.txt", REFUSED.encode())).records))


def unnamed(base: str) -> Node:
    """Two cards without names, links and a PCI tree."""
    node = machine(base)
    cards = tuple(replace(gpu, name=Fact(), fabric=GpuFabric(), nvlinks=()) for gpu in node.gpus[:2])
    return replace(node, gpus=cards, pci={})


def silent(base: str) -> Node:
    """The machine without a word of its fabric."""
    return nodes.with_gpus(machine(base), fabric=GpuFabric())


BUILDERS = {"waiting": waiting, "refused": refused, "unnamed": unnamed, "silent": silent}


@examples("node", "changes", "wanted")
def test_the_state_of_the_fabric(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(judge(machine(node, changes, **BUILDERS)), wanted) == wanted
