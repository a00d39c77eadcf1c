"""NIC003: what grows between two samples, and what totals since boot may say."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import networks as network
from tests.checks import nodes
from tests.checks.bent import Built, machine
from tests.checks.networks import counter, ib_h100, roce_h100, with_counters, with_netdev, with_ports
from tests.checks.nodes import HOUR, only, read, status
from tests.checks.wanted import Wanted, shown
from tests.evidence.filled import node_of
from tests.tables import examples
from topodiag.checks.nic.errors import NicPortErrors
from topodiag.checks.shared.node.nic_counters import LIMITS
from topodiag.model.node import Node


def errors(node: Node) -> Any:
    return NicPortErrors().judge(node, ())


@examples("node", "changes", "wanted")
def test_counters_of_ports(node: Built, changes: dict[str, Any], wanted: Wanted) -> None:
    assert shown(errors(machine(node, changes, flapped=flapped, went_back=went_back)), wanted) == wanted


def test_many_counters_are_cut_in_the_message() -> None:
    grown = [counter(name, 0, 50) for name in list(LIMITS)[:10]]
    assert "and 4 other counters" in only(errors(with_counters(roce_h100(), 0, *grown))).message


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
    assert (status(errors(node_of(text))) == "finding") is found
