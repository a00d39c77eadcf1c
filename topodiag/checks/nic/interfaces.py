"""Interfaces of which nothing but their own state is told: members of a bond that are down, one that is down or has
another MTU among its peers. Where RDMA devices are told, their checks know more, and this is silent."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.comparisons import unlike
from topodiag.lazy import regex
from topodiag.model.devices import NetDev
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.node import Node
from topodiag.words.fold import few, plural

MIN_SIBLINGS = 3
"""Interfaces named alike from which on one that differs is odd: of two, either may be the one without a cable."""
MOST_ODD = 3
"""One in so many may differ: more are ports that nobody has cabled, such as every card's second one."""
_VIRTUAL = regex(
    r"(?:lo|docker|veth|virbr|br-|cali|cni|flannel|cilium|lxc|tun|tap|dummy|vxlan|geneve|kube|nerdctl|ovs|macv|ipvl"
    r"|wl|usb|idrac|bmc)\w{0,15}|.{0,15}\.\d{1,4}\Z",
    re.IGNORECASE,
)
_DOWN = ("down", "lowerlayerdown", "notpresent")


def down_interfaces(check: NodeCheck[Any], node: Node) -> Iterator[Finding]:
    """Findings on interfaces that are down, where no source tells of RDMA ports."""
    if _rdma_is_told(node):
        return
    bonded = set()
    for bond, members in _bonds(node).items():
        bad = [member for member in members if is_down(member)]
        if bad and len(bad) < len(members):
            bonded |= {each.name for each in bad}
            left = len(members) - len(bad)
            yield _finding(
                check, node, bad,
                f"{_are(bad)} down in {bond}, which runs on {left} of {plural(len(members), 'member')}",
                "all members of the bond up",
                f"the bond carries {left} of {len(members)} parts of what it should",
                Confidence.HIGH,
            )  # fmt: skip
    for siblings in _families(node):
        bad = [each for each in siblings if is_down(each)]
        if bad and len(bad) * MOST_ODD <= len(siblings) and not bonded & {each.name for each in bad}:
            up = len(siblings) - len(bad)
            yield _finding(
                check, node, bad,
                f"{_are(bad)} down, while {plural(up, 'interface')} named alike are up",
                f"a link, as {plural(up, 'peer')} have",
                "the interface carries nothing; a job that uses all of them is left with the others",
                Confidence.LOW,
            )  # fmt: skip


def odd_mtus(check: NodeCheck[Any], node: Node) -> Iterator[Finding]:
    """Findings on interfaces that are up with a smaller MTU than peers, where no source tells of RDMA ports."""
    if _rdma_is_told(node):
        return
    for siblings in _families(node):
        told = [each for each in siblings if each.mtu.value is not None and not is_down(each)]
        found = unlike({each.name: each.mtu.get(0) for each in told})
        if found is None:
            continue
        usual, count = found.usual, found.count
        odd = [each for each in told if each.name in found.odd and each.mtu.get(0) < usual]
        # The first of a kind is often the way to the node itself, with the MTU of another network.
        if len(odd) * MOST_ODD > len(told) or count + len(odd) != len(told) or odd[0] is siblings[0]:
            continue
        values = ", ".join(dict.fromkeys(str(each.mtu.value) for each in odd))
        names = few([each.name for each in odd])
        yield check.finding(
            node,
            Severity.WARNING,
            f"MTU is {values} on {names}, and {usual} on {plural(count, 'interface')} named alike",
            observed=f"MTU {values} on {names}",
            expected=f"MTU {usual}, as on {plural(count, 'peer')}",
            fix=(f"`ip link set dev {odd[0].name} mtu {usual}`, and the same in the network's configuration",
                 "`ping -M do -s 8972 PEER` over that interface: the switch port must take it, too"),
            nics=[each.name for each in odd],
            cost=Cost(text="large packets are lost or cut on this interface, and RoCE takes a smaller MTU there"),
            evidence=[each.mtu for each in odd],
            confidence=Confidence.MEDIUM,
        )  # fmt: skip


def is_down(device: NetDev) -> bool:
    """Whether an interface is told to carry nothing."""
    return device.carrier.value is False or (device.operstate.value or "").lower() in _DOWN


def _are(bad: Sequence[NetDev]) -> str:
    return f"{few([each.name for each in bad])} {'is' if len(bad) == 1 else 'are'}"


def _finding(  # noqa: PLR0917 - one wording of two cases
    check: NodeCheck[Any], node: Node, bad: Sequence[NetDev], message: str, expected: str, cost: str, sure: Confidence
) -> Finding:
    return check.finding(
        node,
        Severity.WARNING,
        message,
        observed=f"no link on {few([each.name for each in bad])}",
        expected=expected,
        fix=("Reseat or swap the cable or transceiver, and look whether the switch port is up and not disabled",
             "`ethtool IF` and `dmesg -T | grep IF` on the node: since when, and what the driver says"),
        nics=[each.name for each in bad],
        cost=Cost(text=cost),
        evidence=[fact for each in bad for fact in (each.carrier, each.operstate)],
        confidence=sure,
    )  # fmt: skip


def _rdma_is_told(node: Node) -> bool:
    return any(port.state.known or port.phys_state.known for nic in node.nics for port in nic.ports)


def _bonds(node: Node) -> dict[str, list[NetDev]]:
    """The members of each bond: of a bridge or an SDN's switch they may come and go."""
    made: dict[str, list[NetDev]] = defaultdict(list)
    for device in node.netdevs:
        if device.master.value and "bond" in device.master.value:
            made[device.master.value].append(device)
    return made


def _families(node: Node) -> list[list[NetDev]]:
    """Physical interfaces whose names differ in numbers alone, in the order of the evidence."""
    made: dict[tuple[str, str], list[NetDev]] = defaultdict(list)
    for device in node.netdevs:
        told = device.operstate.known or device.carrier.known
        if told and not _VIRTUAL.match(device.name) and not device.default_route.get(False):
            made[re.sub(r"\d+", "#", device.name), device.kind.get("")].append(device)
    return [each for each in made.values() if len(each) >= MIN_SIBLINGS]
