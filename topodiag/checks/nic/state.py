"""State of the ports of compute NICs. Their rate: nic_rate.py."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import fsum
from typing import Any, Never

from topodiag.checks.interface import Advice, NodeCheck, OneStep
from topodiag.checks.nic.events import links_down, of_bus, of_log, of_start
from topodiag.checks.nic.ports import (
    ONE_OF_MORE,
    Port,
    gpus_near,
    lists_no_nics,
    netdev_of,
    network_gbs,
    ports_of,
    product,
    usual_gbps,
)
from topodiag.checks.shared.devices import compute_nics, just_booted, word
from topodiag.checks.shared.prices import slow_ports
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.fold import fold_runs, plural
from topodiag.words.own_data import own_data
from topodiag.words.units import in_gbs, spell_gbs

LONE_AMONG = 6
"""Ports from which on a single one that is down is no second port: three cards of two would have two others."""
FEW_OF = 6
"""A sixth of the ports may be spare by design: eight compute ports and two of storage cards with two ports each."""
HIGHEST_LID = 0xBFFF
"""Of a port alone: above are those of multicast groups, and 0xFFFF is no address (InfiniBand specification, 4.1.3)."""
NO_COMPUTE = "no RDMA NIC that carries the job's traffic"

CABLELESS = frozenset({"no link partner", "switched off", "down"})
"""What a port without a cable looks like."""


class NicPortDown(OneStep[Node], NodeCheck[Never]):
    """NIC001: a compute NIC port that is not Active/LinkUp

    What it finds
        Ports of the NICs that carry the job's traffic which are down, disabled, without a subnet manager (INIT), not
        yet activated (ARMED), or in link error recovery.

    Why it matters
        The GPU next to that NIC loses its path out of the node: 50 GB/s at 400 Gb/s. NCCL leaves the port out without a
        warning; as every ring of the job has the same number of channels through each node, all nodes then run at
        the speed of the worst node. With no port left the job falls back to TCP sockets.

    Evidence it reads
        `state`, `phys_state` and `sm_lid` of each port in /sys/class/infiniband, `ibstat`, `ibv_devinfo`, `rdma link`;
        the carrier of the interface; link messages of the kernel log, adapters
        that their driver could not start, and those that no longer answer on the bus; the NIC's role (from distance to
        GPUs, link layer, product and default route).

    When it stays silent
        Storage and management NICs, and NICs whose role is not known. The second port of a dual-port card that is
        down on all cards of the kind, while the other port of the card is up: it is not cabled by design (unknown
        where no bus id shows which ports share a card). A port that a subnet manager gave an address is none of these.
        A port within ten minutes of boot, which may still be training: info. All ports of an Ethernet machine are
        down: a warning, because the machine may work alone on purpose. No source shows the states: unknown. Output
        that shows one port only, from a tool that can be asked for one port: unknown.

    How to confirm
        ibstat                      State must be Active, Physical state LinkUp
        ibv_devinfo | grep -E 'hca_id|state|sm_lid'
        sudo mlxlink -d DEVICE      the reason in words (needs NVIDIA's firmware tools)
        dmesg | grep -iE 'link (up|down)|module'

    How to fix
        Polling: nothing answers at the other end; reseat or swap the cable, look at the switch port. Disabled: switch
        the port on (`ip link set dev IF up`). Initializing: no subnet manager has seen the port; start opensm or repair
        it. Armed: the subnet manager did not finish; see its log.

    References
        InfiniBand Architecture Specification, port states; Linux Documentation/ABI/stable/sysfs-class-infiniband;
        rdma-core ibstat.c; drivers/infiniband/hw/mlx5/main.c (Ethernet ports without carrier say Disabled).
    """

    id = "NIC001"

    def judge(self, node: Node, peers: Sequence[Node] = ()) -> Outcome:
        outcome = self._judge_ports(node)
        down = of_log(self, node, links_down(node))
        return self.beside(outcome, [*of_bus(self, node), *of_start(self, node), *down])

    def _judge_ports(self, node: Node) -> Outcome:
        nics = compute_nics(node)
        if not nics:
            return self.not_applicable(node, NO_COMPUTE)
        ports = ports_of(node)
        known = [port for port in ports if port.state or port.phys]
        coverage = Coverage(len({port.nic.name for port in known}), len(nics), "compute NICs")
        if not known:
            why = next((port.port.state.why for port in ports if port.port.state.why), "")
            return self.unknown(node, why or "no source says the states of the ports")
        faults: dict[tuple[str, str, str], list[Port]] = defaultdict(list)
        spare, unsure = [], []
        for port in known:
            kind = _fault(node, port)
            if kind and _is_spare(port, known):
                spare.append(port.label)
            elif kind in CABLELESS and _may_be_spare(node, port, known):
                unsure.append(port.label)
            elif kind:
                faults[kind, port.state, port.phys].append(port)
        findings = [self._report(node, kind, bad, known, coverage) for (kind, _, _), bad in faults.items()]
        if findings:
            return self.found(node, findings, coverage)
        return self._without_fault(node, spare, unsure, coverage)

    def _without_fault(self, node: Node, spare: Sequence[str], unsure: Sequence[str], coverage: Coverage) -> Outcome:
        if unsure:
            why = f"without bus ids {fold_runs(unsure)} may be second ports without a cable"
            return self.unknown(node, why, coverage)
        nics = compute_nics(node)
        if lists_no_nics(node, nics):
            return self.unknown(node, ONE_OF_MORE.format(fold_runs([nic.name for nic in nics])))
        return self.clean(node, f"second ports that no card uses: {fold_runs(spare)}" if spare else "", coverage)

    def _report(self, node: Node, kind: str, bad: Sequence[Port], ports: Sequence[Port], coverage: Coverage) -> Finding:
        names = list(dict.fromkeys(port.nic.name for port in bad))
        state = "/".join(filter(None, (bad[0].state, bad[0].phys)))
        up = [port for port in ports if port.is_up]
        young = just_booted(node) and kind != "switched off"
        ethernet_only = not up and all(port.layer == "Ethernet" for port in ports)
        recovering = kind == "link error recovery"
        severity = Severity.INFO if young else Severity.WARNING if ethernet_only or recovering else Severity.ERROR
        where = fold_runs([port.label for port in bad])
        return self.finding(
            self.where(node, nics=names),
            Advice(),
            f"{where} {'is' if len(bad) == 1 else 'are'} {state}: {kind}"
            + (", minutes after boot: transient" if young else "")
            + (", and no other compute NIC is active" if not up and not young else ""),
            severity=severity,
            observed=f"{state} on {plural(len(bad), 'port')} ({where})",
            expected=f"ACTIVE/LinkUp, as {plural(len(up), 'other port')}" if up else "ACTIVE/LinkUp",
            fix=own_data("checks/shared/node/fixes")["port"][kind],
            cost=_loss(node, bad, ports),
            evidence=list(_shown(node, bad)),
            coverage=coverage,
            confidence=Confidence.MEDIUM if ethernet_only else Confidence.HIGH,
        )


def _fault(node: Node, port: Port) -> str:
    """What keeps a port from carrying traffic, in words; empty when nothing is seen to."""
    phys = port.phys.lower()
    if port.is_up or (not port.state and phys == "linkup"):
        return "link error recovery" if phys == "linkerrorrecovery" else ""
    if port.state == "INIT":
        return "no subnet manager" if port.layer != "Ethernet" else "training"
    if port.state == "ARMED":
        return "not activated by the subnet manager"
    if phys == "polling":
        return "no link partner"
    if phys in ("portconfigurationtraining", "linkerrorrecovery", "phytest"):
        return "training"
    if phys in ("disabled", "sleep") and port.layer == "Ethernet":
        return _ethernet_reason(node, port)
    return "switched off" if phys == "disabled" else "down"


def _ethernet_reason(node: Node, port: Port) -> str:
    """mlx5 calls every Ethernet port without carrier Disabled; the interface knows more.

    The kernel answers for the carrier only of an interface that is switched on (EINVAL otherwise; net-sysfs.c).
    """
    device = netdev_of(node, port)
    if device is None:
        return "down"
    if device.carrier.value is False:
        return "no link partner"
    return "switched off" if "EINVAL" in device.carrier.why else "down"


def _is_spare(port: Port, ports: Sequence[Port]) -> bool:
    """Whether no card of this product uses this place, while this very card is up by another port."""
    alike = [other for other in ports if other.place == port.place and product(other.nic) == product(port.nic)]
    mates = [other for other in ports if other.card == port.card and other is not port]
    if _had_address(port):
        return False
    return any(mate.is_up for mate in mates) and not any(other.is_up for other in alike)


def _may_be_spare(node: Node, port: Port, ports: Sequence[Port]) -> bool:
    """Whether a port may be the second one of an active NIC's card: which card it is on is not known without its bus
    id, and either the matrix shows an active NIC of its product right beside it (PIX) or nothing shows distances."""
    if port.nic.bus_id is not None or _had_address(port) or _stands_alone(port, ports):
        return False
    if port.nic.sys_image_guid.known:
        others = [other for other in ports if other.nic.sys_image_guid.known]
        return len(others) < len(ports)
    mates = [other for other in ports if other.is_up and product(other.nic) == product(port.nic)]
    words = [word(node, port.nic.name, mate.nic.name).value for mate in mates]
    return bool(words) and any(text in (None, "PIX") for text in words)


def _had_address(port: Port) -> bool:
    """Whether a subnet manager gave the port an address of its own: it was in the fabric since its driver came up."""
    return port.layer == "InfiniBand" and 0 < port.port.lid.get(0) <= HIGHEST_LID


def _stands_alone(port: Port, ports: Sequence[Port]) -> bool:
    """Whether a port is down alone, or as one of few, among many of its kind: second ports without a cable come by the
    half, and by two where two cards of storage have one each."""
    alike = [other for other in ports if product(other.nic) == product(port.nic) and other.layer == port.layer]
    down = sum(not other.is_up for other in alike)
    return len(alike) >= LONE_AMONG and (down == 1 or down * FEW_OF < len(alike))


def _loss(node: Node, bad: Sequence[Port], ports: Sequence[Port]) -> Cost:
    rates = [usual_gbps(node, port, ports) for port in bad]
    lost = fsum(slow_ports(0, rate or 0.0, 1) for rate, _ in rates)
    near = fold_runs(list(dict.fromkeys(gpu for port in bad for gpu in gpus_near(node, port.nic))))
    words = f"; {near} must take another NIC" if near else ""
    if not lost:
        return Cost(text=f"the port carries nothing{words}")
    left = network_gbs(ports)
    how = next(why for rate, why in rates if rate)
    text = f"{spell_gbs(left)} of {in_gbs(left + lost)} of this node's network are left ({how}){words}"
    return Cost(round(lost, 3), round(lost / (left + lost), 4), text)


def _shown(node: Node, bad: Sequence[Port]) -> Iterator[Fact[Any]]:
    for port in bad:
        device = netdev_of(node, port)
        yield port.port.state
        yield port.port.phys_state
        if port.state == "INIT":
            yield port.port.sm_lid
        if device is not None and port.layer == "Ethernet":
            yield device.carrier
