"""A capture and the kernel's messages of the same machine are one node, and one event counts once."""

from tests.checks.nodes import read
from tests.verdict.machines import NOON, capture, kernel_log, xid
from topodiag.model.devices import NetDev
from topodiag.model.node import Node
from topodiag.model.topics import Topic
from topodiag.verdict.one_node import merged

BOOT = 1_760_000_400.0 - 360_000.0


def test_the_events_of_a_kernel_log_go_into_the_capture_of_its_host() -> None:
    (node,) = merged([capture("n1"), kernel_log("n1.site", xid(NOON))])
    assert [event.code for event in node.events] == [79]
    assert Topic.KERNEL_LOG in node.told


def test_an_event_that_both_tell_counts_once_by_the_time_of_the_wall() -> None:
    (node,) = merged([capture("n1", events=(xid(359_000.4),)), kernel_log("n1", xid(BOOT + 359_001.0))])
    assert [event.time_s for event in node.events] == [BOOT + 359_001.0]


def test_the_wall_of_one_log_may_be_off_as_long_as_all_its_events_are_off_alike() -> None:
    own = (xid(359_000.0), xid(359_001.0, 154))
    other = (xid(BOOT + 359_000 - 1280), xid(BOOT + 359_001 - 1280, 154))
    (node,) = merged([capture("n1", events=own), kernel_log("n1", *other)])
    assert [event.code for event in node.events] == [79, 154]


def test_events_of_equal_words_at_other_times_stay_two() -> None:
    own = (xid(359_000.0, 31), xid(359_500.0, 79))
    other = (xid(BOOT + 100_000, 31), xid(BOOT + 359_500, 79), xid(BOOT + 200_000, 48))
    (node,) = merged([capture("n1", events=own), kernel_log("n1", *other)])
    assert sorted(event.code or 0 for event in node.events) == [31, 31, 48, 79]


def test_one_event_told_twice_in_one_log_counts_twice() -> None:
    (node,) = merged(
        [capture("n1", events=(xid(359_000.0),)), kernel_log("n1", xid(BOOT + 359_000), xid(BOOT + 359_000))]
    )
    assert len(node.events) == 2


def test_a_kernel_log_of_another_host_stays_a_node() -> None:
    assert [node.host for node in merged([capture("n1"), kernel_log("n2", xid(1.0))])] == ["n1", "n2"]


def test_a_kernel_log_beside_two_captures_of_its_host_stays_apart() -> None:
    assert len(merged([capture("n1#1"), capture("n1#2"), kernel_log("n1", xid(1.0))])) == 3


def test_localhost_is_no_name() -> None:
    assert len(merged([capture("localhost"), kernel_log("localhost", xid(1.0))])) == 2


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
