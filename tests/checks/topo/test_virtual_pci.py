"""TOP003: PCI trees that a hypervisor made up."""

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import nodes
from tests.checks.bent import Built, machine
from tests.checks.nodes import read, status
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.topo.virtual_pci import VirtualPciTree
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.model.system import Process, Setting


def judge(node: Node) -> Any:
    return VirtualPciTree().judge(node, ())


@pytest.mark.parametrize("build", nodes.HEALTHY)
def test_bare_metal_is_not_judged(build: Any) -> None:
    assert status(judge(build())) == "not_applicable"


def unseen() -> Node:
    """A guest of which no tree, no matrix and no path was seen."""
    whole = nodes.hgx_h100()
    return replace(nodes.flat_vm(), pci={}, paths={}, smi_matrix={}, gpus=whole.gpus, nics=whole.nics)


def with_file() -> Node:
    setting = Setting("NCCL_TOPO_FILE", "/opt/topo.xml", "/etc/nccl.conf", Origin("nccl.conf", 1))
    return replace(nodes.flat_vm(), settings=(setting,))


def with_file_of_a_process() -> Node:
    process = Process(7, (0,), nccl_env=read({"NCCL_TOPO_FILE": "/x.xml"}))
    return replace(nodes.flat_vm(), processes=(process,))


BUILDERS: dict[str, Any] = {"unseen": unseen, "with_file": with_file, "with_file_of_a_process": with_file_of_a_process}


@examples("node", "changes", "wanted")
def test_guests_without_a_pci_tree(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(judge(machine(node, changes, **BUILDERS)), wanted) == wanted
