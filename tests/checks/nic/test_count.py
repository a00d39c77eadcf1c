"""NIC005: compute NICs that are missing by the datasheet, by the other nodes, or by the shape of the rails."""

from dataclasses import replace
from typing import Any

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.bent import Built, machine
from tests.checks.networks import ib_h100
from tests.checks.nodes import read, status
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.nic.count import MissingComputeNic
from topodiag.model.devices import Nic, PciDevice
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Topic

LISTED = frozenset({Topic.RDMA_DEVICES})


def missing(node: Node, *peers: Node) -> Any:
    return MissingComputeNic().judge(node, peers)


def dgx(nics: int = 8) -> Node:
    """A DGX H100 by DMI, with so many of its NICs."""
    node = ib_h100()
    return replace(node, system=read("DGX H100", "os-state"), nics=node.nics[:nics], topics=LISTED)


def plain(nics: int = 8) -> Node:
    """The same parts in a machine that nobody knows."""
    return replace(dgx(nics), system=Fact())


def far(node: Node) -> Node:
    """No NIC below a GPU's switch."""
    return nodes.with_words(
        node, lambda a, b: "NODE" if ("GPU" in a and "mlx" in b) or ("GPU" in b and "mlx" in a) else None
    )


def one_lost(driver: str = "") -> Node:
    """A DGX H100 one of whose NICs has no driver, or another one."""
    bus_id = "0000:4a:00.0"
    held: Fact[str] = read(driver) if driver else Fact(why="no driver is bound")
    node = network.with_pci(dgx(7), bus_id, class_code=read(0x020700))
    return replace(node, nics=(*node.nics, Nic(bus_id, bus_id, part=read("ConnectX-7"), driver=held)))


def two_for_each() -> Node:
    """Two GPUs below the switch of each NIC."""

    def word(a: str, b: str) -> str | None:
        names = sorted((a, b))
        if not (names[0].startswith("GPU") and names[1].startswith("mlx")):
            return None
        return "PXB" if int(names[0][3:]) // 2 == int(names[1][5:]) else "SYS"

    return nodes.with_words(plain(4), word)


def one_for_most() -> Node:
    """One NIC near all GPUs but one."""
    return nodes.with_words(plain(1), lambda a, b: "PXB" if "mlx5_0" in (a, b) and "GPU7" not in (a, b) else None)


def flattened() -> Node:
    """A guest whose PCI tree lost its switches."""
    node = replace(plain(7), pci={}, os=nodes.flat_vm().os)
    tree = {
        str(device.bus_id): PciDevice(str(device.bus_id), root="pci0000:00", numa=read(-1), width=read(0))
        for device in (*node.gpus, *node.nics)
    }
    return replace(node, pci=tree)


BUILDERS: dict[str, Any] = {
    "dgx": dgx, "plain": plain, "one_lost": one_lost, "two_for_each": two_for_each, "one_for_most": one_for_most,
    "flattened": flattened,
}  # fmt: skip


@examples("node", "changes", "wanted")
def test_how_many_compute_nics_there_are(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(missing(machine(node, changes, **BUILDERS)), wanted) == wanted


def test_a_node_with_fewer_nics_than_most_others_is_found() -> None:
    outcome = missing(far(plain(6)), far(plain()), replace(far(plain()), host="gpu-003"))
    finding = expect(outcome, expected="8 compute NICs, as 2 other nodes with the same GPUs", confidence="MEDIUM")
    assert finding.cost.gbs_lost == 100.0


def test_nodes_with_other_gpus_are_no_measure() -> None:
    assert status(missing(plain(), network.full(nodes.dgx_a100()), nodes.t4_node())) == "clean"
    assert status(missing(far(plain(4)), nodes.dgx_a100())) == "clean"


def test_a_node_with_more_nics_than_the_others_is_clean() -> None:
    assert status(missing(plain(), far(plain(6)), far(plain(6)))) == "clean"
