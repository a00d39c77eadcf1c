"""NIC005: compute NICs that are missing by the datasheet, by the other nodes, or by the shape of the rails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.networks import ib_h100, with_nic
from tests.checks.nodes import only, read, status
from topodiag.checks.nic.count import MissingComputeNic
from topodiag.model.devices import Nic, NicRole, PciDevice
from topodiag.model.finding import Confidence, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.model.topics import Topic

LISTED = frozenset({Topic.RDMA_DEVICES})


def missing(node: Node, *peers: Node) -> Any:
    return MissingComputeNic().judge(node, peers)


def dgx(nics: int = 8) -> Node:
    """A DGX H100 by DMI, with so many of its NICs."""
    node = ib_h100()
    return replace(node, system=read("DGX H100", "os-state"), nics=node.nics[:nics], told=LISTED)


def plain(nics: int = 8) -> Node:
    """The same parts in a machine that nobody knows."""
    return replace(dgx(nics), system=Fact())


def far(node: Node) -> Node:
    """No NIC below a GPU's switch."""
    return nodes.with_words(
        node, lambda a, b: "NODE" if ("GPU" in a and "mlx" in b) or ("GPU" in b and "mlx" in a) else None
    )


@pytest.mark.parametrize("build", [*nodes.HEALTHY, nodes.flat_vm, ib_h100, dgx, network.efa_vm])
def test_healthy_machines_have_no_finding(build: Any) -> None:
    assert status(missing(build())) != "finding"


def test_a_known_machine_with_fewer_nics_is_an_error() -> None:
    finding = only(missing(dgx(7)))
    assert finding.message == "7 of 8 compute NICs present (GPU7 without one)"
    assert finding.expected == "8 compute NICs of 400 Gb/s in a DGX H100"
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.HIGH)
    assert finding.where.gpus == ("GPU7",)
    assert (finding.cost.gbs_lost, finding.cost.share) == (50.0, 0.125)
    assert "50 of 400 GB/s" in finding.cost.text
    assert finding.evidence[0].source == "os-state"
    assert "reseat" in " ".join(finding.fix)


def test_a_nic_that_is_down_is_present() -> None:
    assert status(missing(network.with_port(dgx(), 0, **network.DOWN))) == "clean"


def test_a_nic_of_the_kind_that_carries_the_default_route_is_present() -> None:
    assert status(missing(with_nic(dgx(), 7, role=NicRole.MANAGEMENT))) == "clean"


def test_storage_nics_do_not_make_up_for_compute_nics() -> None:
    assert status(missing(with_nic(dgx(), 7, role=NicRole.STORAGE))) == "finding"


def test_a_function_without_a_driver_is_named() -> None:
    bus_id = "0000:4a:00.0"
    node = network.with_pci(dgx(7), bus_id, class_code=read(0x020700))
    lost = Nic(bus_id, bus_id, part=read("ConnectX-7"), driver=Fact(why="no driver is bound"))
    finding = only(missing(replace(node, nics=(*node.nics, lost))))
    assert bus_id in finding.message
    assert finding.where.nics == (bus_id,)
    assert "no driver holds it" in finding.fix[0]


def test_a_function_that_was_given_away_names_its_holder() -> None:
    node = dgx(7)
    lost = Nic("0000:4a:00.0", "0000:4a:00.0", part=read("ConnectX-7"), driver=read("vfio-pci"))
    assert "held by vfio-pci" in only(missing(replace(node, nics=(*node.nics, lost)))).fix[0]


def test_a_machine_without_any_of_its_nics_is_found_only_where_they_were_looked_for() -> None:
    assert only(missing(dgx(0))).message == "0 of 8 compute NICs present"
    assert status(missing(replace(dgx(0), told=frozenset({Topic.GPUS})))) == "unknown"


def test_containers_may_hide_nics() -> None:
    outcome = missing(nodes.with_os(dgx(7), container=read("docker")))
    assert status(outcome) == "unknown"
    assert "docker" in outcome.why


def test_a_guest_with_the_hosts_name_holds_what_it_was_given() -> None:
    guest = nodes.with_os(dgx(4), virtualization=read("kvm"))
    assert status(missing(replace(guest, gpus=guest.gpus[:4]))) == "clean"


def test_an_instance_with_fewer_nics_than_its_type_has_is_a_warning() -> None:
    node = replace(network.efa_vm(), system=read("p5.48xlarge"))
    finding = only(missing(node))
    assert finding.message.startswith("8 of 32 compute NICs present")
    assert finding.severity is Severity.WARNING
    assert "Launch the instance" in finding.fix[0]


def test_instances_whose_few_nics_are_optional_are_left_alone() -> None:
    node = replace(nodes.t4_node(), system=read("g4dn.12xlarge"))
    assert status(missing(nodes.with_os(node, virtualization=read("amazon")))) == "not_applicable"


def test_a_node_with_fewer_nics_than_most_others_is_found() -> None:
    finding = only(missing(far(plain(6)), far(plain()), replace(far(plain()), host="gpu-003")))
    assert finding.expected == "8 compute NICs, as 2 other nodes with the same GPUs"
    assert finding.confidence is Confidence.MEDIUM
    assert finding.cost.gbs_lost == 100.0


def test_nodes_with_other_gpus_are_no_measure() -> None:
    assert status(missing(plain(), network.full(nodes.dgx_a100()), nodes.t4_node())) == "clean"
    assert status(missing(far(plain(4)), nodes.dgx_a100())) == "clean"


def test_a_node_with_more_nics_than_the_others_is_clean() -> None:
    assert status(missing(plain(), far(plain(6)), far(plain(6)))) == "clean"


def test_a_gpu_without_a_near_nic_among_gpus_with_one_each_lacks_its_rail() -> None:
    finding = only(missing(plain(7)))
    assert finding.message == "7 of 8 compute NICs present (GPU7 without one)"
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.MEDIUM)
    assert finding.where.gpus == ("GPU7",)
    assert any("GPU7" in origin.text for origin in finding.evidence)


def test_half_of_the_gpus_without_a_near_nic_is_a_design() -> None:
    assert status(missing(plain(4))) == "clean"


def test_two_gpus_for_each_nic_are_a_design() -> None:
    def word(a: str, b: str) -> str | None:
        names = sorted((a, b))
        if not (names[0].startswith("GPU") and names[1].startswith("mlx")):
            return None
        return "PXB" if int(names[0][3:]) // 2 == int(names[1][5:]) else "SYS"

    assert status(missing(nodes.with_words(plain(4), word))) == "clean"


def test_one_nic_near_most_gpus_is_no_rail() -> None:
    node = plain(1)
    shared = nodes.with_words(node, lambda a, b: "PXB" if {a, b} & {"mlx5_0"} and not {a, b} & {"GPU7"} else None)
    assert status(missing(shared)) == "clean"


def test_distances_that_were_not_seen_may_be_near() -> None:
    blind = nodes.with_words(plain(7), lambda a, b: "" if {a, b} == {"GPU7", "mlx5_0"} else None)
    assert status(missing(blind)) == "unknown"


def test_in_a_flattened_guest_a_missing_rail_is_unknown() -> None:
    node = replace(plain(7), pci={}, os=nodes.flat_vm().os)
    dark = {
        str(device.bus_id): PciDevice(str(device.bus_id), root="pci0000:00", numa=read(-1), width=read(0))
        for device in (*node.gpus, *node.nics)
    }
    outcome = missing(replace(node, pci=dark))
    assert status(outcome) == "unknown"
    assert "virtual" in outcome.why


def test_machines_without_gpus_or_without_any_sign_of_nics_are_not_applicable() -> None:
    assert status(missing(replace(dgx(), gpus=()))) == "not_applicable"
    assert status(missing(nodes.t4_node())) == "not_applicable"
