"""NIC003: what grows between two samples, and what totals since boot may say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.networks import (
    counter,
    efa_vm,
    ib_h100,
    roce_h100,
    with_counters,
    with_netdev,
    with_nic,
    with_ports,
)
from tests.checks.nodes import HOUR, only, read, status
from tests.tables import examples
from topodiag.checks.nic.errors import NicPortErrors
from topodiag.checks.shared.node.nic_counters import LIMITS
from topodiag.model.devices import NicRole
from topodiag.model.finding import Confidence, Severity
from topodiag.model.node import Node


def errors(node: Node) -> Any:
    return NicPortErrors().judge(node, ())


@pytest.mark.parametrize("build", [ib_h100, roce_h100, efa_vm])
def test_healthy_machines_are_clean(build: Any) -> None:
    outcome = errors(build())
    assert status(outcome) == "clean"
    assert "one sample" in outcome.why


def test_two_samples_without_growth_are_clean_whatever_the_totals() -> None:
    node = with_counters(ib_h100(), None, counter("link_downed", 200, 200), counter("port_rcv_errors", 9999, 9999))
    assert (status(errors(node)), errors(node).why) == ("clean", "")


def test_a_link_that_went_down_between_the_samples_is_an_error() -> None:
    node = with_counters(ib_h100(), 1, counter("link_downed", 6, 7, 5.0), counter("port_rcv_errors", 19, 61, 5.0))
    finding = only(errors(node))
    assert finding.message == "mlx5_1: the link went down in 5 s (link_downed +1, port_rcv_errors +42)"
    assert finding.severity is Severity.ERROR
    assert finding.where.nics == ("mlx5_1",)
    assert "stands still" in finding.cost.text
    assert [origin.text for origin in finding.evidence] == ["link_downed 7", "port_rcv_errors 61"]


@examples("name")
def test_integrity_counters_that_grow_are_a_warning(name: str) -> None:
    finding = only(errors(with_counters(ib_h100(), 0, counter(name, 0, 1))))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.HIGH)
    assert "cable" in " ".join(finding.fix)


def test_discards_before_sending_are_congestion() -> None:
    finding = only(errors(with_counters(ib_h100(), 0, counter("port_xmit_discards", 10, 400))))
    assert finding.severity is Severity.WARNING
    assert "congested" in " ".join(finding.fix)


@examples("first", "later", "seconds", "found")
def test_symbol_errors_count_above_ten_and_above_the_specified_rate(
    first: int, later: int, seconds: float, found: bool
) -> None:
    node = with_counters(ib_h100(), 0, counter("symbol_error", first, later, seconds))
    assert status(errors(node)) == ("finding" if found else "clean")


def test_symbol_errors_of_links_with_error_correction_are_a_hint() -> None:
    symbols = counter("symbol_error", 0, 500)
    ndr = only(errors(with_counters(ib_h100(), 0, symbols)))
    assert (ndr.severity, ndr.confidence) == (Severity.WARNING, Confidence.LOW)
    edr = network.with_port(with_counters(ib_h100(), 0, symbols), 0, rate_gbps=read(100.0))
    assert only(errors(edr)).confidence is Confidence.MEDIUM


@examples("name")
def test_loss_counters_are_judged_on_roce_and_not_on_infiniband(name: str) -> None:
    grown = counter(name, 5, 900)
    finding = only(errors(with_counters(roce_h100(), 2, grown)))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)
    assert "PFC" in " ".join(finding.fix)
    assert status(errors(with_counters(ib_h100(), 2, grown, counter("link_downed", 0, 0)))) == "clean"


@pytest.mark.parametrize("name", ["local_ack_timeout_err", "req_transport_retries_exceeded"])
def test_peers_that_do_not_answer_are_a_warning_on_any_layer(name: str) -> None:
    for build in (ib_h100, roce_h100):
        finding = only(errors(with_counters(build(), 2, counter(name, 0, 3))))
        assert finding.severity is Severity.WARNING
        assert "peer" in finding.fix[0]


@examples("name")
def test_congestion_notifications_flushes_and_traffic_are_no_errors(name: str) -> None:
    node = with_counters(roce_h100(), None, counter(name, 0, 10**9), counter("link_downed", 0, 0))
    assert status(errors(node)) == "clean"


@examples("name")
def test_efa_counters_that_grow_are_a_warning(name: str) -> None:
    finding = only(errors(with_counters(efa_vm(), 3, counter(name, 0, 12))))
    assert (finding.severity, finding.where.nics) == (Severity.WARNING, ("rdmap3s0",))


@pytest.mark.parametrize("name", ["rx_crc_errors_phy", "rx_crc_errors", "rx_fcs_err_frames"])
def test_crc_errors_of_the_interface_count_for_its_nic(name: str) -> None:
    finding = only(errors(with_netdev(roce_h100(), 4, counters={name: counter(name, 0, 7)})))
    assert finding.where.nics == ("mlx5_4",)
    assert "CRC" in finding.message


def test_a_carrier_that_went_and_came_is_a_flap_on_ethernet_and_a_doubt_on_infiniband() -> None:
    flap = {"carrier_changes": counter("carrier_changes", 2, 4)}
    roce = only(errors(with_netdev(roce_h100(), 0, counters=flap)))
    assert roce.severity is Severity.ERROR
    ib = only(errors(with_netdev(ib_h100(), 0, counters=flap)))
    assert (ib.severity, ib.confidence) == (Severity.WARNING, Confidence.MEDIUM)


def test_device_counters_count_as_well() -> None:
    node = with_nic(ib_h100(), 0, counters={"link_downed": counter("link_downed", 0, 2)})
    assert only(errors(node)).where.nics == ("mlx5_0",)


def test_nics_with_the_same_counters_are_one_finding_with_the_sum() -> None:
    finding = only(errors(with_counters(ib_h100(), None, counter("port_xmit_discards", 0, 10))))
    assert finding.where.nics == tuple(f"mlx5_{at}" for at in range(8))
    assert finding.observed == "port_xmit_discards +80 in 60 s, 8 NICs together"


def test_many_counters_are_cut_in_the_message() -> None:
    grown = [counter(name, 0, 50) for name in list(LIMITS)[:10]]
    assert "and 4 other counters" in only(errors(with_counters(roce_h100(), 0, *grown))).message


@examples("total", "days", "found")
def test_one_sample_judges_flaps_by_the_day(total: int, days: float, found: bool) -> None:
    node = nodes.with_os(with_counters(ib_h100(), None, counter("link_downed", total)), uptime_s=read(days * 24 * HOUR))
    outcome = errors(node)
    assert status(outcome) == ("finding" if found else "clean")
    if found:
        assert (only(outcome).severity, only(outcome).confidence) == (Severity.WARNING, Confidence.MEDIUM)
        assert "at most 5 flaps a day" in only(outcome).expected
        assert "--sample" in only(outcome).fix[0]


def flapped(totals: dict[int, int], days: float) -> Node:
    node = with_counters(ib_h100(), None, counter("link_downed", 0))
    for index, total in totals.items():
        node = with_counters(node, index, counter("link_downed", total))
    return nodes.with_os(node, uptime_s=read(days * 24 * HOUR))


def test_a_port_that_flapped_while_its_siblings_did_not_is_a_warning() -> None:
    finding = only(errors(flapped({3: 23, 5: 1}, 6.0)))
    assert (finding.severity, finding.confidence, finding.where.nics) == (
        Severity.WARNING,
        Confidence.MEDIUM,
        ("mlx5_3",),
    )
    assert "and on no other port, in 6 days since boot" in finding.message


@pytest.mark.parametrize(
    ("totals", "days"),
    [
        (dict.fromkeys(range(8), 23), 6.0),  # all went down together: work on a switch, or boots
        ({3: 23, 4: 20}, 6.0),  # two ports: the two ends of other people's work
        ({3: 10}, 6.0),  # at the threshold
        ({3: 23}, 40.0),  # less than once a day: it may all be long ago
    ],
)
def test_flaps_that_siblings_share_or_that_are_few_are_no_finding(totals: dict[int, int], days: float) -> None:
    assert status(errors(flapped(totals, days))) == "clean"


def test_up_and_down_are_one_flap_of_a_carrier() -> None:
    def with_changes(count: int) -> Node:
        changed = with_netdev(roce_h100(), 0, counters={"carrier_changes": counter("carrier_changes", count)})
        return nodes.with_os(changed, uptime_s=read(20 * HOUR))

    assert status(errors(with_changes(10))) == "clean"
    assert status(errors(with_changes(11))) == "finding"


def test_totals_of_all_ports_accuse_none_and_clear_none() -> None:
    node = with_counters(ib_h100(), None, counter("symbol_error", 65000), counter("port_rcv_errors", 10**6))
    assert status(errors(node)) == "unknown"
    assert "port_rcv_errors 8000000 since boot" in errors(node).why
    assert status(errors(with_counters(ib_h100(), None, counter("symbol_error", 65000)))) == "clean"
    assert status(errors(with_counters(ib_h100(), None, counter("port_rcv_errors", 99)))) == "clean"


def test_errors_since_boot_on_one_port_alone_are_a_warning() -> None:
    node = with_counters(roce_h100(), None, counter("out_of_sequence", 12))
    finding = only(errors(with_counters(node, 3, counter("out_of_sequence", 1829132))))
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)
    assert finding.message.startswith("mlx5_3: packets arrived out of sequence, and on no other port,")


def test_flaps_without_an_uptime_say_nothing() -> None:
    node = nodes.with_os(with_counters(ib_h100(), 2, counter("link_downed", 99)), uptime_s=nodes.Fact())
    assert status(errors(node)) == "clean"


@pytest.mark.parametrize("later", [None, 65535])
def test_a_counter_at_its_end_counts_no_more(later: int | None) -> None:
    finding = only(errors(with_counters(ib_h100(), 2, counter("symbol_error", 65535, later))))
    assert finding.severity is Severity.INFO
    assert "perfquery" in finding.fix[0]


def test_counters_that_went_back_are_no_reading() -> None:
    back = [replace(counter(name, 9, 3)) for name in network.IB_COUNTERS]
    node = with_ports(ib_h100(), lambda at, nic: {"counters": {sample.name: sample for sample in back}})
    node = with_netdev(node, None, counters={})
    outcome = errors(node)
    assert status(outcome) == "unknown"
    assert "reset" in outcome.why


def test_a_counter_that_went_back_costs_itself_only() -> None:
    node = with_counters(ib_h100(), 1, counter("link_downed", 9, 3), counter("port_rcv_errors", 0, 1))
    assert only(errors(node)).observed == "port_rcv_errors +1 in 60 s"


def test_without_counters_nothing_is_known() -> None:
    node = with_netdev(with_ports(ib_h100(), lambda at, nic: {"counters": {}}), None, counters={})
    assert status(errors(node)) == "unknown"


def test_nics_without_counters_lower_the_coverage() -> None:
    node = with_ports(ib_h100(), lambda at, nic: {"counters": {}} if at == 0 else {})
    node = with_netdev(node, 0, counters={})
    assert str(errors(node).coverage) == "7 of 8 compute NICs with counters"


def test_storage_nics_are_not_judged() -> None:
    node = with_counters(ib_h100(), 1, counter("link_downed", 6, 7))
    assert status(errors(with_nic(node, 1, role=NicRole.STORAGE))) == "clean"
    assert status(errors(nodes.t4_node())) == "not_applicable"


NAMES = st.sampled_from([*(name for name in LIMITS if "*" not in name), "rx_prio0_discards", "unheard_of"])
READING = st.one_of(st.none(), st.integers(0, 2**64))


@given(st.lists(st.tuples(NAMES, READING, READING, st.floats(0, 1e9)), max_size=8), st.booleans())
def test_no_counters_make_it_raise(drawn: list[tuple[str, int | None, int | None, float]], roce: bool) -> None:
    counters = [counter(name, first, later, seconds) for name, first, later, seconds in drawn]
    outcome = errors(with_counters(roce_h100() if roce else ib_h100(), None, *counters))
    assert all(finding.message and finding.fix and finding.expected for finding in outcome.findings)
