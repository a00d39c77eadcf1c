"""NIC001 and NIC002: ports that are down, ports that are slow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.networks import DOWN, ib_h100, roce_h100, with_nic, with_port, with_ports
from tests.checks.nodes import only, read, status
from tests.tables import examples
from topodiag.checks.nic.rate import NicPortSlow
from topodiag.checks.nic.state import NicPortDown
from topodiag.model.devices import NicRole
from topodiag.model.finding import Confidence, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact


def down(node: Node) -> Any:
    return NicPortDown().judge(node, ())


def slow(node: Node, *peers: Node) -> Any:
    return NicPortSlow().judge(node, peers)


@pytest.mark.parametrize("check", [NicPortDown, NicPortSlow])
@pytest.mark.parametrize("build", [*nodes.HEALTHY, nodes.flat_vm, ib_h100, roce_h100, network.efa_vm])
def test_healthy_machines_have_no_finding(check: Any, build: Any) -> None:
    assert status(check().judge(build(), ())) in ("clean", "not_applicable")


@pytest.mark.parametrize("check", [NicPortDown, NicPortSlow])
@pytest.mark.parametrize("role", [NicRole.STORAGE, NicRole.MANAGEMENT, NicRole.UNKNOWN])
def test_nics_that_do_not_carry_the_job_are_not_judged(check: Any, role: NicRole) -> None:
    node = with_nic(with_port(ib_h100(), 3, **DOWN), 3, role=role)
    assert status(check().judge(node, ())) == "clean"
    none = replace(node, nics=tuple(replace(nic, role=role) for nic in node.nics))
    assert status(check().judge(none, ())) == "not_applicable"


# --- NIC001 ---------------------------------------------------------------------------------------------------


def test_a_port_without_link_partner_is_an_error_with_what_is_left() -> None:
    finding = only(down(with_port(ib_h100(), 3, **DOWN)))
    assert finding.message == "mlx5_3 is DOWN/Polling: no link partner"
    assert finding.severity is Severity.ERROR
    assert finding.where.nics == ("mlx5_3",)
    assert finding.expected == "ACTIVE/LinkUp, as 7 other ports"
    assert finding.cost.gbs_lost == 50.0
    assert finding.cost.share == 0.125
    assert "350 of 400 GB/s" in finding.cost.text
    assert "GPU3 must take another NIC" in finding.cost.text
    assert [origin.text for origin in finding.evidence] == ["DOWN", "Polling"]
    assert str(finding.coverage) == "8 of 8 compute NICs"


def test_the_cost_is_what_the_siblings_run_at_and_not_what_the_product_could() -> None:
    node = with_port(with_port(ib_h100(), None, rate_gbps=read(200.0)), 0, **DOWN)
    assert only(down(node)).cost.gbs_lost == 25.0


def test_without_active_siblings_the_cost_is_the_datasheets() -> None:
    finding = only(down(with_port(ib_h100(), None, **DOWN)))
    assert finding.cost.gbs_lost == 400.0
    assert "the most that ConnectX-7 can do" in finding.cost.text
    assert "no other compute NIC is active" in finding.message


def test_an_unknown_product_without_siblings_has_no_figure() -> None:
    bare = nodes.hgx_h100()
    finding = only(down(with_port(replace(bare, nics=bare.nics[:1]), None, state=read("DOWN"))))
    assert finding.cost.gbs_lost is None
    assert finding.cost.text


@examples("state", "phys", "kind", "remedy")
def test_the_remedy_fits_the_state(state: str, phys: str | None, kind: str, remedy: str) -> None:
    facts = {"state": read(state), "phys_state": read(phys) if phys else Fact()}
    finding = only(down(with_port(ib_h100(), 0, **facts)))
    assert finding.severity is Severity.ERROR
    assert finding.message.endswith(kind)
    assert remedy in " ".join(finding.fix)


def test_an_active_port_in_error_recovery_is_a_warning() -> None:
    finding = only(down(with_port(ib_h100(), 0, phys_state=read("LinkErrorRecovery"))))
    assert finding.severity is Severity.WARNING
    assert "link error recovery" in finding.message


def test_the_physical_state_alone_is_enough() -> None:
    assert only(down(with_port(ib_h100(), 0, state=Fact(), phys_state=read("Polling")))).where.nics == ("mlx5_0",)
    assert status(down(with_port(ib_h100(), 0, state=Fact()))) == "clean"


def test_ports_with_the_same_fault_are_one_finding() -> None:
    node = with_port(ib_h100(), None, state=read("INIT"), sm_lid=read(0))
    finding = only(down(node))
    assert finding.where.nics == tuple(f"mlx5_{at}" for at in range(8))
    assert finding.message.startswith("mlx5_0-7 are INIT/LinkUp: no subnet manager")
    assert "0" in [origin.text for origin in finding.evidence]


def test_different_faults_are_different_findings() -> None:
    node = with_port(with_port(ib_h100(), 1, **DOWN), 2, state=read("INIT"))
    assert [finding.where.nics for finding in down(node).findings] == [("mlx5_1",), ("mlx5_2",)]


def test_second_ports_that_no_card_uses_are_by_design() -> None:
    outcome = down(network.dual_port(ib_h100(), {**DOWN, "phys_state": read("Disabled")}))
    assert status(outcome) == "clean"
    assert "second ports that no card uses" in outcome.why


def test_a_second_port_that_is_down_on_one_card_only_is_a_fault() -> None:
    node = network.dual_port(ib_h100(), {})
    assert only(down(with_port(node, 5, **DOWN))).where.nics == ("mlx5_2_b",)


def test_a_card_with_both_ports_down_is_a_fault_even_where_second_ports_are_unused() -> None:
    node = network.dual_port(ib_h100(), DOWN)
    finding = only(down(with_port(node, 4, **DOWN)))
    assert finding.where.nics == ("mlx5_2", "mlx5_2_b")


def test_ports_of_one_device_are_told_apart() -> None:
    node = ib_h100()
    nics = tuple(replace(nic, ports=(nic.ports[0], network.port(400.0, "InfiniBand", 2))) for nic in node.nics)
    two = replace(node, nics=nics)
    bad = replace(nics[0], ports=(nics[0].ports[0], replace(nics[0].ports[1], **DOWN)))
    assert only(down(replace(two, nics=(bad, *nics[1:])))).message.startswith("mlx5_0/2 is DOWN")


@pytest.mark.parametrize(
    ("carrier", "kind"),
    [
        (read(False), "no link partner"),
        (Fact(why="EINVAL Invalid argument"), "switched off"),
        (Fact(), "down"),
    ],
)
def test_on_ethernet_the_carrier_says_why_a_port_is_called_disabled(carrier: Fact[bool], kind: str) -> None:
    node = with_port(roce_h100(), 2, state=read("DOWN"), phys_state=read("Disabled"))
    finding = only(down(network.with_netdev(node, 2, carrier=carrier)))
    assert finding.message == f"mlx5_2 is DOWN/Disabled: {kind}"
    assert finding.severity is Severity.ERROR


def test_an_ethernet_machine_with_all_ports_down_may_be_meant_to_work_alone() -> None:
    finding = only(down(with_port(roce_h100(), None, state=read("DOWN"), phys_state=read("Disabled"))))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)


@pytest.mark.parametrize("phys", ["Polling", "PortConfigurationTraining"])
def test_minutes_after_boot_a_port_may_still_train(phys: str) -> None:
    node = nodes.with_os(with_port(ib_h100(), 0, state=read("DOWN"), phys_state=read(phys)), uptime_s=read(90.0))
    finding = only(down(node))
    assert finding.severity is Severity.INFO
    assert "transient" in finding.message


def test_a_port_that_was_switched_off_is_no_matter_of_minutes() -> None:
    node = nodes.with_os(with_port(ib_h100(), 0, **{**DOWN, "phys_state": read("Disabled")}), uptime_s=read(90.0))
    assert only(down(node)).severity is Severity.ERROR


def test_without_port_states_nothing_is_known() -> None:
    outcome = down(with_port(ib_h100(), None, state=Fact(why="EINVAL"), phys_state=Fact()))
    assert (status(outcome), outcome.why) == ("unknown", "EINVAL")
    labels = tuple(replace(nic, ports=()) for nic in ib_h100().nics)
    assert status(down(replace(ib_h100(), nics=labels))) == "unknown"


def test_ports_that_are_not_seen_lower_the_coverage() -> None:
    assert str(down(with_port(ib_h100(), 0, state=Fact(), phys_state=Fact())).coverage) == "7 of 8 compute NICs"


# --- NIC002 ---------------------------------------------------------------------------------------------------


def test_one_port_at_half_of_its_siblings_rate_is_an_error() -> None:
    finding = only(slow(with_port(ib_h100(), 6, rate_gbps=read(200.0, "sys-infiniband"), lanes=read(2))))
    assert finding.message == "mlx5_6 runs at 200 Gb/s on 2 lanes instead of 400 Gb/s"
    assert finding.severity is Severity.ERROR
    assert finding.expected == "400 Gb/s (50 GB/s), as 7 peers of the same product; ConnectX-7 can do 400 Gb/s"
    assert (finding.cost.gbs_lost, finding.cost.share) == (25.0, 0.5)
    assert finding.where.nics == ("mlx5_6",)
    assert finding.evidence[0].source == "sys-infiniband"


def test_equal_faults_are_one_finding() -> None:
    node = with_ports(ib_h100(), lambda at, _: {"rate_gbps": read(100.0)} if at in (1, 2) else {})
    finding = only(slow(node))
    assert finding.where.nics == ("mlx5_1", "mlx5_2")
    assert finding.cost.gbs_lost == 75.0


def test_a_whole_node_below_its_ability_is_a_fabric_that_is_built_so() -> None:
    outcome = slow(with_port(ib_h100(), None, rate_gbps=read(200.0)))
    assert (status(outcome), outcome.why) == (
        "clean",
        "all ConnectX-7 ports run at 200 of 400 Gb/s: the fabric is built so",
    )


def test_a_single_port_below_its_products_ability_is_no_fault() -> None:
    node = ib_h100()
    assert status(slow(with_port(replace(node, nics=node.nics[:1]), 0, rate_gbps=read(200.0)))) == "clean"


def test_of_two_ports_the_slower_one_is_found() -> None:
    node = ib_h100()
    finding = only(slow(with_port(replace(node, nics=node.nics[:2]), 0, rate_gbps=read(200.0))))
    assert (finding.where.nics, finding.severity) == (("mlx5_0",), Severity.ERROR)


def test_half_and_half_is_a_warning() -> None:
    node = with_ports(ib_h100(), lambda at, _: {"rate_gbps": read(200.0)} if at < 4 else {})
    finding = only(slow(node))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)


def test_one_fast_port_among_slow_ones_does_not_make_the_others_slow() -> None:
    node = with_ports(ib_h100(), lambda at, _: {"rate_gbps": read(200.0)} if at else {})
    assert status(slow(node)) == "clean"


def test_the_rate_of_a_port_that_is_down_means_nothing() -> None:
    assert status(slow(with_port(ib_h100(), 3, **DOWN))) == "clean"
    outcome = slow(with_port(ib_h100(), None, **DOWN))
    assert status(outcome) == "not_applicable"
    assert "NIC001" in outcome.why


def test_ports_of_other_products_layers_or_places_are_no_siblings() -> None:
    other = with_nic(with_port(ib_h100(), 0, rate_gbps=read(100.0)), 0, part=read("ConnectX-5"))
    assert status(slow(other)) == "clean"
    assert status(slow(with_port(ib_h100(), 0, rate_gbps=read(100.0), link_layer=read("Ethernet")))) == "clean"
    assert status(slow(network.dual_port(ib_h100(), {"rate_gbps": read(100.0)}))) == "clean"


def test_elastic_fabric_adapters_are_compared_with_each_other() -> None:
    node = with_port(network.efa_vm(), None, rate_gbps=read(100.0))
    assert status(slow(node)) == "clean"
    assert only(slow(with_port(node, 2, rate_gbps=read(50.0)))).where.nics == ("rdmap2s0",)


def test_a_node_slower_than_the_same_nics_elsewhere_is_a_warning() -> None:
    node = with_port(ib_h100(), None, rate_gbps=read(200.0))
    finding = only(slow(node, ib_h100(), replace(ib_h100(), host="gpu-002")))
    assert finding.severity is Severity.WARNING
    assert "16 ports of the same product on other nodes" in finding.expected


def test_without_rates_nothing_is_known() -> None:
    outcome = slow(with_port(ib_h100(), None, rate_gbps=Fact(why="unreadable")))
    assert (status(outcome), outcome.why) == ("unknown", "unreadable")
