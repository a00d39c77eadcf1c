"""NIC003: what grows between two samples, and what totals since boot may say."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.bent import Built, machine
from tests.checks.networks import counter, efa_vm, ib_h100, roce_h100, with_counters, with_netdev, with_ports
from tests.checks.nodes import HOUR, only, read, status
from tests.checks.wanted import Wanted, expect, shown
from tests.tables import examples
from topodiag.checks.nic.errors import NicPortErrors
from topodiag.checks.shared.node.nic_counters import LIMITS
from topodiag.evidence.intake.bundle import Evidence
from topodiag.evidence.intake.reader import read_node
from topodiag.evidence.interface import Blob
from topodiag.model.finding import Confidence, Severity
from topodiag.model.node import Node


def errors(node: Node) -> Any:
    return NicPortErrors().judge(node, ())


@pytest.mark.parametrize("build", [ib_h100, roce_h100, efa_vm])
def test_healthy_machines_are_clean(build: Any) -> None:
    outcome = errors(build())
    assert status(outcome) == "clean"
    assert "one sample" in outcome.why


@examples("node", "changes", "wanted")
def test_counters_of_ports(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(errors(machine(node, changes, flapped=flapped, went_back=went_back)), wanted) == wanted


@examples("name")
def test_integrity_counters_that_grow_are_a_warning(name: str) -> None:
    finding = expect(errors(with_counters(ib_h100(), 0, counter(name, 0, 1))), severity="WARNING", confidence="HIGH")
    assert "cable" in " ".join(finding.fix)


@examples("first", "later", "seconds", "found")
def test_symbol_errors_count_above_ten_and_above_the_specified_rate(
    first: int, later: int, seconds: float, found: bool
) -> None:
    node = with_counters(ib_h100(), 0, counter("symbol_error", first, later, seconds))
    assert status(errors(node)) == ("finding" if found else "clean")


@examples("name")
def test_loss_counters_are_judged_on_roce_and_not_on_infiniband(name: str) -> None:
    grown = counter(name, 5, 900)
    finding = expect(errors(with_counters(roce_h100(), 2, grown)), severity="WARNING", confidence="MEDIUM")
    assert "PFC" in " ".join(finding.fix)
    assert status(errors(with_counters(ib_h100(), 2, grown, counter("link_downed", 0, 0)))) == "clean"


@pytest.mark.parametrize("name", ["local_ack_timeout_err", "req_transport_retries_exceeded"])
def test_peers_that_do_not_answer_are_a_warning_on_any_layer(name: str) -> None:
    for build in (ib_h100, roce_h100):
        expect(errors(with_counters(build(), 2, counter(name, 0, 3))), severity="WARNING", first_step="*peer*")


@examples("name")
def test_congestion_notifications_flushes_and_traffic_are_no_errors(name: str) -> None:
    node = with_counters(roce_h100(), None, counter(name, 0, 10**9), counter("link_downed", 0, 0))
    assert status(errors(node)) == "clean"


@examples("name")
def test_efa_counters_that_grow_are_a_warning(name: str) -> None:
    expect(errors(with_counters(efa_vm(), 3, counter(name, 0, 12))), severity="WARNING", nics=("rdmap3s0",))


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


def flapped(totals: dict[str, int], days: float) -> Node:
    """Ports by their numbers that flapped so often since boot."""
    node = with_counters(ib_h100(), None, counter("link_downed", 0))
    for index, total in totals.items():
        node = with_counters(node, int(index), counter("link_downed", total))
    return nodes.with_os(node, uptime_s=read(days * 24 * HOUR))


def went_back() -> Node:
    back = {name: counter(name, 9, 3) for name in network.IB_COUNTERS}
    return with_netdev(with_ports(ib_h100(), lambda at, nic: {"counters": back}), None, counters={})


NAMES = st.sampled_from([*(name for name in LIMITS if "*" not in name), "rx_prio0_discards", "unheard_of"])
READING = st.one_of(st.none(), st.integers(0, 2**64))


@given(st.lists(st.tuples(NAMES, READING, READING, st.floats(0, 1e9)), max_size=8), st.booleans())
def test_no_counters_make_it_raise(drawn: list[tuple[str, int | None, int | None, float]], roce: bool) -> None:
    counters = [counter(name, first, later, seconds) for name, first, later, seconds in drawn]
    outcome = errors(with_counters(roce_h100() if roce else ib_h100(), None, *counters))
    assert all(finding.message and finding.fix and finding.expected for finding in outcome.findings)


@pytest.mark.parametrize(
    ("packets", "lost", "found"),
    [(8_000_000_000, 801, True), (8_000_000_000, 800, False), (500, 101, True), (None, 101, True)],
)
def test_lost_packets_of_a_report_weigh_as_a_share_of_what_the_port_carried(
    packets: int | None, lost: int, found: bool
) -> None:
    carried = f"PortXmitPkts:....................{packets}\n" if packets is not None else ""
    text = f"# Port extended counters: Lid 71 port 3 (CapMask: 0x5300)\nPortSelect:......................3\n{carried}"
    text += f"LinkDownedCounter:...............0\nPortXmitDiscards:................{lost}\n"
    evidence = Evidence("report", blobs=[Blob("perfquery.txt", text.encode())])
    assert (status(errors(read_node(evidence).node)) == "finding") is found
