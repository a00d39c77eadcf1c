"""Compute NICs of one product that are set up differently, within the node or between nodes."""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from topodiag.checks.interface import NodeCheck
from topodiag.checks.nic.state import NO_COMPUTE, Port, is_near, netdev_of, ports_of, product
from topodiag.checks.peers import of_everyone
from topodiag.checks.shared.devices import compute_nics, distance
from topodiag.lazy import dataclass, regex
from topodiag.model.devices import Nic
from topodiag.model.finding import Coverage, Finding, Outcome
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.units import fold_runs, grouped, plural

FULL_MTU = 4096
"""The largest RDMA MTU, bytes (enum ib_mtu, include/rdma/ib_verbs.h)."""

ROCE_OVERHEAD = 96
"""Bytes of an Ethernet MTU that RDMA headers take: 4096-byte packets need 4192 (iboe_get_mtu, ib_addr.h)."""

_NUMBERS = regex(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Trait:
    """One value of one attribute of one NIC. `family` says with what it may be compared."""

    what: str
    family: tuple[str, ...]
    value: str
    nic: Nic
    fact: Fact[Any]


TraitKey = tuple[str, tuple[str, ...]]
"""What is compared, and with which family."""

HostsByValue = dict[TraitKey, dict[str, list[str]]]


class NicsDiffer(NodeCheck, id="NIC004"):
    """NIC004: MTU, link layer or firmware differs from peer NICs or nodes

    What it finds
        Compute NICs of one product whose MTU, link layer or firmware is not that of their peers in the node, or of
        the same NICs on most other nodes in evidence.

    Why it matters
        One port with an MTU of 1024 bytes among ports with 4096 needs four times the packets and becomes the slow
        rail. Mismatched Ethernet MTUs lose large packets. A port of the wrong link layer is not on its fabric at all.
        Mixed firmware alone costs no bandwidth, but nodes then behave differently without a visible reason.

    Evidence it reads
        `active_mtu` of `ibv_devinfo`, the interface's MTU, `link_layer` and `fw_ver` of sysfs, `ibstat`, `ethtool -i`.

    When it stays silent
        Different products, and different boards of one product (board id), need different firmware. MTUs are
        compared between active ports of one link layer. A NIC of another link layer beside a GPU that has one of the
        usual kind as well serves storage. A small MTU on all ports alike is the site's choice: a remark, no finding.
        Interface MTUs that give the same RDMA MTU (4200 and 9000) are alike. A single NIC has no peer: not
        applicable, unless other nodes are in evidence. Storage and management NICs.

    How to confirm
        ibv_devinfo | grep -E 'hca_id|fw_ver|active_mtu|link_layer'
        ip link show IF | grep mtu

    How to fix
        MTU: 9000 on interfaces and switch ports (RoCE then uses 4096), mtu=5 in the subnet manager's partition. Link
        layer: `mlxconfig` LINK_TYPE_P1. Firmware: one version for all NICs of a product.

    References
        Linux include/rdma/ib_addr.h (iboe_get_mtu); rdma-core ibv_devinfo; opensm partitions.conf.
    """

    def observe(self, node: Node, peers: Sequence[Node]) -> Outcome:
        nics = compute_nics(node)
        if not nics:
            return self.not_applicable(node, NO_COMPUTE)
        traits = list(_traits(node))
        everywhere = of_everyone(node, peers, _hosts_by_value)
        having = of_everyone(node, peers, _nodes_by_product)
        if len(nics) < 2 and not any(having[trait.family[0]] > 1 for trait in traits):
            return self.not_applicable(node, "a single compute NIC, and no other node to compare it with")
        if not traits:
            return self.unknown(node, "MTU, link layer and firmware are not in the evidence")
        coverage = Coverage(len({trait.nic.name for trait in traits}), len(nics), "compute NICs")
        findings: list[Finding] = []
        for group in grouped(((trait.what, trait.family), trait) for trait in traits).values():
            values = Tally(trait.value for trait in group)
            findings += self._within(node, group, values) if len(values) > 1 else self._between(node, group, everywhere)
        return self.any_of(node, findings, coverage, _small_mtu(traits))

    def _within(self, node: Node, group: Sequence[Trait], values: Tally[str]) -> Iterator[Finding]:
        usual, count = values.most_common(1)[0]
        outliers = [trait for trait in group if trait.value != usual]
        if group[0].what == "link layer" and not _replaces(node, outliers, group):
            return
        clear = count * 2 > len(group)
        named = outliers if clear else list(group)
        words = ", ".join(
            f"{value} on {fold_runs([trait.nic.name for trait in named if trait.value == value])}"
            for value in sorted({trait.value for trait in named}, key=_order)
        )
        what, kind = group[0].what, group[0].family[0] or "one product"
        message = f"compute NICs of {kind} differ in {what}: {words}" + (f" instead of {usual}" if clear else "")
        observed = words + (f"; {usual} on {plural(count, 'other NIC')}" if clear else "")
        expected = f"{usual} on all {len(group)}" if clear else f"one {what} on all {len(group)}"
        yield self._finding(node, (message, observed, expected), named)

    def _between(self, node: Node, group: Sequence[Trait], everywhere: HostsByValue) -> Iterator[Finding]:
        first = group[0]
        hosts = everywhere[first.what, first.family]
        # Of two that differ and no majority, the lower one is named: the older firmware, the smaller MTU.
        usual = max(hosts, key=lambda value: (len(hosts[value]), _order(value)))
        if usual == first.value:
            return
        named = fold_runs([trait.nic.name for trait in group])
        many = plural(len(hosts[usual]), "other node")
        message = f"{first.what} of {first.family[0] or 'compute NICs'} is {first.value}, on {many} {usual}"
        expected = f"{usual}, as on {', '.join(hosts[usual][:3])}" + (" ..." if len(hosts[usual]) > 3 else "")
        yield self._finding(node, (message, f"{first.value} on {named}", expected), group)

    def _finding(self, node: Node, words: tuple[str, str, str], named: Sequence[Trait]) -> Finding:
        message, observed, expected = words
        return self.finding(
            self.where(node, nics=list(dict.fromkeys(trait.nic.name for trait in named))),
            named[0].what,
            message,
            observed=observed,
            expected=expected,
            evidence=[trait.fact for trait in named],
        )


def _hosts_by_value(nodes: Sequence[Node]) -> HostsByValue:
    """Of each attribute of each family: the hosts whose NICs all have one value of it, by that value."""
    hosts: HostsByValue = defaultdict(lambda: defaultdict(list))
    for node in nodes:
        values = grouped(((trait.what, trait.family), trait.value) for trait in _traits(node))
        for key, seen in values.items():
            if len(set(seen)) == 1:
                hosts[key][seen[0]].append(node.host)
    return hosts


def _nodes_by_product(nodes: Sequence[Node]) -> Tally[str]:
    """How many nodes have NICs of a product that say something of themselves."""
    return Tally(kind for node in nodes for kind in {trait.family[0] for trait in _traits(node)})


def _traits(node: Node) -> Iterator[Trait]:
    ports = ports_of(node)
    for nic in compute_nics(node):
        kind = product(nic)
        if nic.firmware.value and kind:
            yield Trait("firmware", (kind, nic.board_id.value or ""), nic.firmware.value, nic, nic.firmware)
    for port in ports:
        kind = product(port.nic)
        if port.layer and port.port.number == 1:
            yield Trait("link layer", (kind,), port.layer, port.nic, port.port.link_layer)
        mtu, fact = _mtu(node, port)
        if mtu is not None:
            yield Trait("MTU", (kind, port.layer), str(mtu), port.nic, fact)


def _mtu(node: Node, port: Port) -> tuple[int | None, Fact[Any]]:
    """The RDMA MTU of an active port, bytes: its own word, else what its interface's MTU leaves room for."""
    if not port.is_up:
        return None, Fact()
    if port.port.active_mtu.value is not None:
        return port.port.active_mtu.value, port.port.active_mtu
    device = netdev_of(node, port)
    if device is None or device.mtu.value is None or port.layer != "Ethernet":
        return None, Fact()
    room = device.mtu.value - ROCE_OVERHEAD
    return next((mtu for mtu in (4096, 2048, 1024, 512, 256) if mtu <= room), None), device.mtu


def _replaces(node: Node, outliers: Sequence[Trait], group: Sequence[Trait]) -> bool:
    """Whether NICs of an odd link layer stand where peers should: some GPU has no near NIC but them."""
    strange = {trait.nic.name for trait in outliers}
    usual = {trait.nic.name for trait in group} - strange
    beside = ({name for name in strange | usual if is_near(distance(node, gpu.label, name)[0])} for gpu in node.gpus)
    return any(near and near <= strange for near in beside)


def _order(value: str) -> tuple[tuple[int, ...], str]:
    """Versions and sizes by their numbers: 28.9 before 28.41."""
    return tuple(int(number) for number in _NUMBERS.findall(value)[:8]), value


def _small_mtu(traits: Sequence[Trait]) -> str:
    small = {trait.value for trait in traits if trait.what == "MTU" and int(trait.value) < FULL_MTU}
    sizes = ", ".join(sorted(small, key=_order))
    return f"all active ports use an RDMA MTU of {sizes} bytes; {FULL_MTU} is possible" if small else ""
