"""NIC004: MTU, link layer and firmware that differ, within a node and between nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.networks import ib_h100, roce_h100, with_netdev, with_nic, with_port, with_ports
from tests.checks.nodes import only, read, status
from topodiag.checks.nic.differ import NicsDiffer
from topodiag.model.devices import NicRole
from topodiag.model.finding import Confidence, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact


def differ(node: Node, *peers: Node) -> Any:
    return NicsDiffer().judge(node, peers)


def host(node: Node, name: str) -> Node:
    return replace(node, host=name)


def with_firmware(node: Node, version: str) -> Node:
    return replace(node, nics=tuple(replace(nic, firmware=read(version)) for nic in node.nics))


@pytest.mark.parametrize("build", [*nodes.HEALTHY, nodes.flat_vm, ib_h100, roce_h100, network.efa_vm])
def test_healthy_machines_have_no_finding(build: Any) -> None:
    assert status(differ(build())) in ("clean", "not_applicable")


def test_no_compute_nic_is_not_applicable() -> None:
    assert status(differ(nodes.t4_node())) == "not_applicable"


def test_a_single_nic_has_no_sibling() -> None:
    node = ib_h100()
    machine = replace(node, nics=node.nics[:1])
    assert status(differ(machine)) == "not_applicable"
    assert status(differ(machine, host(ib_h100(), "gpu-002"))) == "clean"


def test_older_firmware_on_one_nic_is_a_warning_that_names_it() -> None:
    finding = only(differ(with_nic(ib_h100(), 5, firmware=read("28.39.1002", "ibstat", 7))))
    assert (
        finding.message == "compute NICs of ConnectX-7 differ in firmware: 28.39.1002 on mlx5_5 instead of 28.41.1000"
    )
    assert finding.severity is Severity.WARNING
    assert finding.where.nics == ("mlx5_5",)
    assert finding.expected == "28.41.1000 on all 8"
    assert "no bandwidth by itself" in finding.cost.text
    assert [str(origin) for origin in finding.evidence] == ["ibstat:7"]


def test_without_a_majority_all_are_named() -> None:
    node = ib_h100()
    for at in range(4):
        node = with_nic(node, at, firmware=read("28.9.1"))
    finding = only(differ(node))
    assert len(finding.where.nics) == 8
    assert "28.9.1 on mlx5_0-3, 28.41.1000 on mlx5_4-7" in finding.message


def test_different_products_and_boards_rightly_differ() -> None:
    other = with_nic(ib_h100(), 0, part=read("ConnectX-6"), firmware=read("20.35.1"))
    assert status(differ(other)) == "clean"
    board = with_nic(ib_h100(), 0, board_id=read("HPE0000000023"), firmware=read("28.36.1"))
    assert status(differ(board)) == "clean"


def test_storage_nics_are_not_compared() -> None:
    assert status(differ(with_nic(ib_h100(), 0, firmware=read("28.1.1"), role=NicRole.STORAGE))) == "clean"


def test_an_active_port_with_a_smaller_mtu_is_found() -> None:
    finding = only(differ(with_port(ib_h100(), 2, active_mtu=read(2048))))
    assert finding.message == "compute NICs of ConnectX-7 differ in MTU: 2048 on mlx5_2 instead of 4096"


def test_the_mtu_of_a_port_that_is_down_does_not_count() -> None:
    assert status(differ(with_port(ib_h100(), 2, active_mtu=read(1024), **network.DOWN))) == "clean"


def test_the_interfaces_mtu_stands_in_on_ethernet() -> None:
    node = with_port(roce_h100(), None, active_mtu=Fact())
    finding = only(differ(with_netdev(node, 4, mtu=read(1500, "sys-net"))))
    assert "1024 on mlx5_4 instead of 4096" in finding.message
    assert finding.evidence[0].source == "sys-net"


def test_interface_mtus_with_the_same_room_are_alike() -> None:
    node = with_port(roce_h100(), None, active_mtu=Fact())
    assert status(differ(with_netdev(node, 4, mtu=read(4200)))) == "clean"


def test_a_small_mtu_everywhere_is_said_and_not_found() -> None:
    outcome = differ(with_port(roce_h100(), None, active_mtu=read(1024)))
    assert status(outcome) == "clean"
    assert outcome.why == "all active ports use an RDMA MTU of 1024 bytes; 4096 is possible"


def test_a_rail_of_the_wrong_link_layer_is_found() -> None:
    finding = only(differ(with_port(ib_h100(), 1, link_layer=read("Ethernet"))))
    assert (
        finding.message == "compute NICs of ConnectX-7 differ in link layer: Ethernet on mlx5_1 instead of InfiniBand"
    )
    assert finding.confidence is Confidence.MEDIUM


def test_an_extra_nic_of_another_link_layer_beside_a_gpu_serves_storage() -> None:
    node = with_port(ib_h100(), 1, link_layer=read("Ethernet"))
    both = nodes.with_words(node, lambda a, b: "PIX" if {a, b} == {"GPU1", "mlx5_0"} else None)
    assert status(differ(both)) == "clean"


def test_nothing_to_compare_is_unknown() -> None:
    bare = nodes.hgx_h100()
    labels = tuple(replace(nic, ports=()) for nic in bare.nics)
    assert status(differ(replace(bare, nics=labels))) == "unknown"


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
