"""NIC004: MTU, link layer and firmware that differ, within a node and between nodes."""

from dataclasses import replace
from typing import Any

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.bent import Built, machine
from tests.checks.networks import ib_h100, roce_h100, with_ports
from tests.checks.nodes import only, read, status
from tests.checks.wanted import Wanted, shown
from tests.tables import examples
from topodiag.checks.nic.differ import NicsDiffer
from topodiag.model.node import Node


def differ(node: Node, *peers: Node) -> Any:
    return NicsDiffer().judge(node, peers)


def host(node: Node, name: str) -> Node:
    return replace(node, host=name)


def with_firmware(node: Node, version: str) -> Node:
    return replace(node, nics=tuple(replace(nic, firmware=read(version)) for nic in node.nics))


@examples("node", "changes", "wanted")
def test_nics_of_one_node_that_differ(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(differ(machine(node, changes)), wanted) == wanted


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
