"""Verdicts of one node, and the scene of a case."""

import pytest

from tests.checks.nodes import read
from tests.tables import examples
from tests.verdict.machines import NOON, capture, kernel_log, xid
from topodiag.model.devices import Gpu, NetDev
from topodiag.model.node import Node
from topodiag.model.provenance import Topic
from topodiag.model.result import Case
from topodiag.verdict.one_node import merged
from topodiag.verdict.scene import Scene

BOOT = 1_760_000_400.0 - 360_000.0


def test_the_events_of_a_kernel_log_go_into_the_capture_of_its_host() -> None:
    (node,) = merged([capture("n1"), kernel_log("n1.site", xid(NOON))])
    assert [event.code for event in node.events] == [79]
    assert Topic.KERNEL_LOG in node.topics


Events = dict[str, list[tuple[float, int]]]


@examples("captures", "logs", "hosts", "events")
def test_captures_and_kernel_logs_of_one_machine_are_one_node(
    captures: Events, logs: Events, hosts: list[str], events: list[tuple[float, int]] | None
) -> None:
    """By their hosts the events of each, in seconds since the boot and with their codes, which a log tells by the time
    of the wall; the hosts that are left, and the events of the first one in the order of their times."""
    parts = [capture(host, events=tuple(xid(*event) for event in own)) for host, own in captures.items()]
    parts += [kernel_log(host, *(xid(BOOT + at, code) for at, code in own)) for host, own in logs.items()]
    nodes = merged(parts)
    assert [node.host for node in nodes] == hosts
    told = sorted((event.time_s - BOOT * (event.time_s > BOOT), event.code) for event in nodes[0].events)
    assert events is None or told == events


def interfaces(host: str, **addresses: str) -> Node:
    return Node(host, netdevs=tuple(NetDev(name, addresses=read((each,))) for name, each in addresses.items()))


def test_interfaces_alone_go_into_the_capture_of_their_host_which_loses_its_number() -> None:
    (node,) = merged([capture("n1#1", netdevs=(NetDev("eth0", mtu=read(9000)),)), interfaces("n1#2", eth0="10.0.0.5")])
    assert node.host == "n1"
    assert [(netdev.name, netdev.mtu.value, netdev.addresses.value) for netdev in node.netdevs] == [
        ("eth0", 9000, ("10.0.0.5",))
    ]


def test_a_kernel_log_under_the_address_of_a_machine_goes_into_its_capture_under_the_name() -> None:
    names = {"10.0.0.5": "n1"}
    parts = [kernel_log("10.0.0.5", xid(1.0)), interfaces("n1", eth0="10.0.0.5"), capture("10.0.0.5")]
    (node,) = merged(parts, lambda name: names.get(name, name))
    assert (node.host, len(node.events), len(node.netdevs)) == ("n1", 1, 1 + len(capture("n1").netdevs))


# --- what rules ask of a case: which machines it shows


@pytest.mark.parametrize(
    ("node", "shown"),
    [
        pytest.param(Node("out", nameless=True), False, id="rows of a program alone"),
        pytest.param(Node("out", nameless=True, topics=frozenset({Topic.GPUS})), True, id="a text that shows its GPUs"),
        pytest.param(Node("out", nameless=True, gpus=(Gpu(0),)), True, id="a text of its GPUs in rows"),
        pytest.param(Node("n0"), True, id="a host that is named"),
    ],
)
def test_rows_in_a_text_of_a_program_are_no_machine(node: Node, *, shown: bool) -> None:
    assert Scene(Case(nodes=(node,))).captured == ({node.host} if shown else frozenset())
