"""NIC001, NIC002, NIC004 and NIC005: ports that are down or slow, NICs that differ or are missing."""

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.bent import Built, machine
from tests.checks.networks import DOWN, ib_h100, roce_h100, with_nic, with_port, with_ports
from tests.checks.nodes import only, read, status
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.nic.count import MissingComputeNic
from topodiag.checks.nic.differ import NicsDiffer
from topodiag.checks.nic.rate import NicPortSlow
from topodiag.checks.nic.state import NicPortDown
from topodiag.checks.registry import Subject, check_of
from topodiag.model.devices import Nic, NicRole, PciDevice
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Topic


def down(node: Node) -> Any:
    return NicPortDown().judge(node, ())


def slow(node: Node, *peers: Node) -> Any:
    return NicPortSlow().judge(node, peers)


@pytest.mark.parametrize("check", [NicPortDown, NicPortSlow])
@pytest.mark.parametrize("role", [NicRole.STORAGE, NicRole.MANAGEMENT, NicRole.UNKNOWN])
def test_nics_that_do_not_carry_the_job_are_not_judged(check: Any, role: NicRole) -> None:
    node = with_nic(with_port(ib_h100(), 3, **DOWN), 3, role=role)
    assert status(check().judge(node, ())) == "clean"
    none = replace(node, nics=tuple(replace(nic, role=role) for nic in node.nics))
    assert status(check().judge(none, ())) == "not_applicable"


# --- NIC001 ---------------------------------------------------------------------------------------------------


def second_ports() -> Node:
    """Each device with a second port, which is down on the first device."""
    node = ib_h100()
    nics = tuple(replace(nic, ports=(nic.ports[0], network.port(400.0, "InfiniBand", 2))) for nic in node.nics)
    return machine("made", {"nics/0/ports/1": DOWN_NOW}, made=lambda: replace(node, nics=nics))


DOWN_NOW = {"state": "DOWN", "phys_state": "Polling", "rate_gbps": 10.0}


@examples("state", "phys", "kind", "remedy")
def test_the_remedy_fits_the_state(state: str, phys: str | None, kind: str, remedy: str) -> None:
    facts = {"state": read(state), "phys_state": read(phys) if phys else Fact()}
    finding = expect(down(with_port(ib_h100(), 0, **facts)), severity="ERROR")
    assert finding.message.endswith(kind)
    assert remedy in " ".join(finding.fix)


def test_different_faults_are_different_findings() -> None:
    node = with_port(with_port(ib_h100(), 1, **DOWN), 2, state=read("INIT"))
    assert [finding.where.nics for finding in down(node).findings] == [("mlx5_1",), ("mlx5_2",)]


# --- NIC002 ---------------------------------------------------------------------------------------------------


def test_a_node_slower_than_the_same_nics_elsewhere_is_a_warning() -> None:
    node = with_port(ib_h100(), None, rate_gbps=read(200.0))
    outcome = slow(node, ib_h100(), replace(ib_h100(), host="gpu-002"))
    expect(outcome, severity="WARNING", expected="*16 ports of the same product on other nodes*")


# --- NIC004: MTU, link layer and firmware that differ, within a node and between nodes


def differ(node: Node, *peers: Node) -> Any:
    return NicsDiffer().judge(node, peers)


def host(node: Node, name: str) -> Node:
    return replace(node, host=name)


def with_firmware(node: Node, version: str) -> Node:
    return replace(node, nics=tuple(replace(nic, firmware=read(version)) for nic in node.nics))


def test_a_single_nic_has_no_sibling_but_those_of_other_nodes() -> None:
    node = machine("ib_h100", {"nics": 1})
    assert status(differ(node, host(ib_h100(), "gpu-002"))) == "clean"


def test_a_node_that_differs_from_most_others_is_found_and_the_others_are_not() -> None:
    old = with_firmware(ib_h100(), "28.36.1010")
    two, three = host(ib_h100(), "gpu-002"), host(ib_h100(), "gpu-003")
    finding = only(differ(old, two, three))
    assert finding.message == "firmware of ConnectX-7 is 28.36.1010, on 2 other nodes 28.41.1000"
    assert finding.expected == "28.41.1000, as on gpu-002, gpu-003"
    assert status(differ(two, old, three)) == "clean"


def test_of_two_nodes_that_differ_the_older_firmware_is_named() -> None:
    old, new = with_firmware(ib_h100(), "28.9.1"), host(ib_h100(), "gpu-002")
    assert status(differ(new, old)) == "clean"
    assert only(differ(old, new)).where.nodes == ("gpu-001",)


def test_other_products_on_other_nodes_do_not_count() -> None:
    elsewhere = network.full(nodes.dgx_a100(), part="ConnectX-6", firmware="20.1.1")
    assert status(differ(ib_h100(), elsewhere)) == "clean"


def test_other_nodes_link_layer_and_mtu_count() -> None:
    roce, ib = host(roce_h100(), "gpu-002"), ib_h100()
    assert "link layer" in only(differ(roce, ib, host(ib, "gpu-003"))).message
    small = with_ports(ib, lambda at, nic: {"active_mtu": read(2048)})
    assert "MTU of ConnectX-7 is 2048" in only(differ(small, host(ib, "gpu-002"), host(ib, "gpu-003"))).message


# --- NIC005: compute NICs that are missing by the datasheet, by the other nodes, or by the shape of the rails


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
    "flattened": flattened, "second_ports": second_ports,
}  # fmt: skip


def test_a_node_with_fewer_nics_than_most_others_is_found() -> None:
    outcome = missing(far(plain(6)), far(plain()), replace(far(plain()), host="gpu-003"))
    finding = expect(outcome, expected="8 compute NICs, as 2 other nodes with the same GPUs", confidence="MEDIUM")
    assert finding.cost.gbs_lost == 100.0


def test_nodes_with_other_gpus_are_no_measure() -> None:
    assert status(missing(plain(), network.full(nodes.dgx_a100()), nodes.t4_node())) == "clean"
    assert status(missing(far(plain(4)), nodes.dgx_a100())) == "clean"


def test_a_node_with_more_nics_than_the_others_is_clean() -> None:
    assert status(missing(plain(), far(plain(6)), far(plain(6)))) == "clean"


@examples("check", "node", "changes", "wanted")
def test_nics_of_a_machine(check: str, node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    """Healthy machines with something changed."""
    outcome = check_of(Subject.NODE, check)().judge(machine(node, changes, **BUILDERS), ())
    assert shown(outcome, wanted) == wanted
