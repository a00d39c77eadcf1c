"""State and rate of the ports of compute NICs."""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Never

from topodiag.checks.interface import NodeCheck, OneStep
from topodiag.checks.node.fabric_links import slow_links
from topodiag.checks.node.nic_events import of_bus, of_log
from topodiag.checks.node.nic_ports import (
    Family,
    Port,
    able_gbps,
    gpus_near,
    netdev_of,
    network_gbs,
    ports_of,
    product,
    usual_gbps,
)
from topodiag.checks.peers import of_everyone
from topodiag.checks.shared.devices import compute_nics, just_booted, majority, word
from topodiag.checks.shared.prices import GBPS_PER_GBS, slow_ports
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity, Status
from topodiag.model.node import Node
from topodiag.model.provenance import Fact
from topodiag.words.fold import fold_runs, plural
from topodiag.words.units import in_gbps, in_gbs, spell_gbs

NO_COMPUTE = "no RDMA NIC that carries the job's traffic"

FULL_LANES = 4
"""Lanes of every InfiniBand port of the last ten years; two of them are sold as HDR100 and NDR200."""

CABLELESS = frozenset({"no link partner", "switched off", "down"})
"""What a port without a cable looks like."""

_KINDS = {
    "no link partner": (
        "Reseat the cable or transceiver at both ends, and look whether the switch port is up and not disabled",
        "Swap the cable with that of a healthy NIC: the fault moves with the cable or stays with the port",
    ),
    "switched off": (
        "Enable the port: `ip link set dev IF up` on Ethernet, `mlxlink -d DEVICE -a UP` on InfiniBand",
        "If it was switched off for a fault, mend that first",
    ),
    "no subnet manager": (
        "Start a subnet manager for this fabric: opensm on a host, or the switch's own (`sminfo` shows it)",
        "If other nodes of the fabric are active, look at the cable and at this port in the subnet manager's log",
    ),
    "not activated by the subnet manager": (
        "Look at this port in the subnet manager's log: it began to configure it and did not finish",
        "Restart the driver (`systemctl restart openibd`) or the port to be swept again",
    ),
    "training": (
        "Look again in a minute; a port that stays so has a bad cable or transceiver",
        "Reseat or swap the cable",
    ),
    "link error recovery": (
        "The link is being retrained while it is in use: swap its cable or transceiver",
        "Look at its counters under load with `topodiag scan --sample 60s`",
    ),
    "down": (
        "Look at `ibstat`, `ip link` and the kernel log for the reason",
        "Check the cable, the transceiver and the switch port",
    ),
}  # fmt: skip


class NicPortDown(OneStep[Node], NodeCheck[Never]):
    """NIC001: a compute NIC port that is not Active/LinkUp

    What it finds
        Ports of the NICs that carry the job's traffic which are down, disabled, without a subnet manager (INIT), not
        yet activated (ARMED), or in link error recovery.

    Why it matters
        The GPU beside that NIC loses its way out of the node: 50 GB/s at 400 Gb/s. NCCL leaves the port out without a
        warning; as every ring of the job has the same number of channels through each node, all nodes then run with
        what the worst one has left. With no port left the job falls back to TCP sockets.

    Evidence it reads
        `state`, `phys_state` and `sm_lid` of each port in /sys/class/infiniband, `ibstat`, `ibv_devinfo`, `rdma link`;
        the carrier of the interface; link messages of the kernel log, and adapters that no longer answer on the bus;
        the NIC's role (from distance to GPUs, link layer, product and default route).

    When it stays silent
        Storage and management NICs, and NICs whose role is not known. The second port of a dual-port card that is
        down on all cards of the kind, while the other port of the card is up: it is not cabled by design (unknown
        where no bus id shows which ports share a card). A port within ten minutes of boot, which may still be
        training: info. All ports of an Ethernet machine are down: a warning, because the machine may work alone on
        purpose. No source shows the states: unknown.

    How to confirm
        ibstat                      State must be Active, Physical state LinkUp
        ibv_devinfo | grep -E 'hca_id|state|sm_lid'
        sudo mlxlink -d DEVICE      the reason in words (needs NVIDIA's firmware tools)
        dmesg | grep -iE 'link (up|down)|module'

    How to fix
        Polling: nothing answers at the other end; reseat or swap the cable, look at the switch port. Disabled: switch
        the port on (`ip link set dev IF up`). Initializing: no subnet manager has seen the port; start opensm or mend
        it. Armed: the subnet manager did not finish; see its log.

    References
        InfiniBand Architecture Specification, port states; Linux Documentation/ABI/stable/sysfs-class-infiniband;
        rdma-core ibstat.c; drivers/infiniband/hw/mlx5/main.c (Ethernet ports without carrier say Disabled).
    """

    id = "NIC001"
    title = "a compute NIC port that is not Active/LinkUp"

    def judge(self, node: Node, peers: Sequence[Node] = ()) -> Outcome:
        outcome = self._judge_ports(node)
        found = [*of_bus(self, node), *of_log(self, node)]
        return self.found(node, [*found, *outcome.findings], outcome.coverage) if found else outcome

    def _judge_ports(self, node: Node) -> Outcome:
        nics = compute_nics(node)
        if not nics:
            return self.not_applicable(node, NO_COMPUTE)
        ports = ports_of(node)
        told = [port for port in ports if port.state or port.phys]
        coverage = Coverage(len({port.nic.name for port in told}), len(nics), "compute NICs")
        if not told:
            why = next((port.port.state.why for port in ports if port.port.state.why), "")
            return self.unknown(node, why or "no source says the states of the ports")
        faults: dict[tuple[str, str, str], list[Port]] = defaultdict(list)
        spare, unsure = [], []
        for port in told:
            kind = _fault(node, port)
            if kind and _is_spare(port, told):
                spare.append(port.label)
            elif kind in CABLELESS and _may_be_spare(node, port, told):
                unsure.append(port.label)
            elif kind:
                faults[kind, port.state, port.phys].append(port)
        found = [self._report(node, kind, bad, told, coverage) for (kind, _, _), bad in faults.items()]
        if found:
            return self.found(node, found, coverage)
        if unsure:
            why = f"without bus ids {fold_runs(unsure)} may be second ports without a cable"
            return Outcome(self.id, Status.UNKNOWN, node.host, why=why, coverage=coverage)
        return self.clean(node, f"second ports that no card uses: {fold_runs(spare)}" if spare else "", coverage)

    def _report(self, node: Node, kind: str, bad: Sequence[Port], told: Sequence[Port], coverage: Coverage) -> Finding:
        names = list(dict.fromkeys(port.nic.name for port in bad))
        state = "/".join(filter(None, (bad[0].state, bad[0].phys)))
        up = [port for port in told if port.is_up]
        young = just_booted(node) and kind != "switched off"
        alone = not up and all(port.layer == "Ethernet" for port in told)
        recovering = kind == "link error recovery"
        severity = Severity.INFO if young else Severity.WARNING if alone or recovering else Severity.ERROR
        where = fold_runs([port.label for port in bad])
        return self.finding(
            node,
            severity,
            f"{where} {'is' if len(bad) == 1 else 'are'} {state}: {kind}"
            + (", minutes after boot: transient" if young else "")
            + (", and no other compute NIC is active" if not up and not young else ""),
            observed=f"{state} on {plural(len(bad), 'port')} ({where})",
            expected=f"ACTIVE/LinkUp, as {plural(len(up), 'other port')}" if up else "ACTIVE/LinkUp",
            fix=_KINDS[kind],
            nics=names,
            cost=_loss(node, bad, told),
            evidence=list(_shown(node, bad)),
            coverage=coverage,
            confidence=Confidence.MEDIUM if alone else Confidence.HIGH,
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
    return any(mate.is_up for mate in mates) and not any(other.is_up for other in alike)


def _may_be_spare(node: Node, port: Port, ports: Sequence[Port]) -> bool:
    """Whether a port may be the second one of an active NIC's card: which card it is on is not known without its bus
    id, and either the matrix shows an active NIC of its product right beside it (PIX) or nothing shows distances."""
    if port.nic.bus_id is not None:
        return False
    if port.nic.sys_image_guid.known:
        told = [other for other in ports if other.nic.sys_image_guid.known]
        return len(told) < len(ports)
    mates = [other for other in ports if other.is_up and product(other.nic) == product(port.nic)]
    words = [word(node, port.nic.name, mate.nic.name).value for mate in mates]
    return bool(words) and any(said in (None, "PIX") for said in words)


def _loss(node: Node, bad: Sequence[Port], told: Sequence[Port]) -> Cost:
    rates = [usual_gbps(node, port, told) for port in bad]
    lost = sum(slow_ports(0, rate or 0.0, 1) for rate, _ in rates)
    near = fold_runs(list(dict.fromkeys(gpu for port in bad for gpu in gpus_near(node, port.nic))))
    behind = f"; {near} must take another NIC" if near else ""
    if not lost:
        return Cost(text=f"the port carries nothing{behind}")
    left = network_gbs(told)
    how = next(why for rate, why in rates if rate)
    text = f"{spell_gbs(left)} of {in_gbs(left + lost)} of this node's network are left ({how}){behind}"
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


class NicPortSlow(OneStep[Node], NodeCheck[Never]):
    """NIC002: a port rate below its capability or its sibling ports

    What it finds
        Active ports of compute NICs that negotiated a lower rate, or fewer lanes, than the same ports of the node's
        other NICs of that product, or than the same NICs of the other nodes in evidence.

    Why it matters
        A 400 Gb/s port that came up at 200 carries 25 GB/s instead of 50. Collectives that use all NICs give each the
        same share, so the whole node, and with it every node of the job, runs at the pace of the slow port.

    Evidence it reads
        `rate` of each port in /sys/class/infiniband, `ibstat`, `ibv_devinfo`, the interface's speed; the datasheet of
        the product; `iblinkinfo`, where it says what a link could be.

    When it stays silent
        Ports that are down: their rate is a meaningless default. All ports of the product are alike, even below the
        product's ability: the fabric is built this way (ConnectX-7 on a 200 Gb/s fabric). A single port at half of
        its product's ability: many products are sold at several rates. Elastic Fabric Adapters have no rated speed
        here; they are compared only with each other. No rate was read: unknown.

    How to confirm
        ibstat | grep -E "^CA|Rate"
        sudo mlxlink -d DEVICE -m                 speeds that port, cable and far end can do
        iblinkinfo | grep 'Could be'

    How to fix
        Reseat or swap the cable or transceiver: a damaged lane makes the port train at half of its rate, and a cable
        of an older generation limits it. Look whether the switch port is split or limited, and whether the port is
        forced to a lower speed (`mlxlink -d DEVICE`, supported and enabled speeds).

    References
        InfiniBand Architecture Specification (link width and speed negotiation); rdma-core iblinkinfo; NVIDIA
        ConnectX datasheets.
    """

    id = "NIC002"
    title = "a port rate below its capability or its sibling ports"

    def judge(self, node: Node, peers: Sequence[Node] = ()) -> Outcome:
        nics = compute_nics(node)
        links = [port for port in node.fabric_ports if port.runs.known]
        slower = slow_links(self, node, links)
        if slower:
            return self.found(node, slower, Coverage(len(links), len(links), "links of the fabric"))
        if not nics:
            return self.clean(node) if links else self.not_applicable(node, NO_COMPUTE)
        ports = ports_of(node)
        seen = [port for port in ports if port.rate]
        coverage = Coverage(len({port.nic.name for port in seen}), len(nics), "compute NICs")
        if not seen:
            if ports and all(port.state and not port.is_up for port in ports):
                return self.not_applicable(node, "no port is active: NIC001 says which")
            why = next((port.port.rate_gbps.why for port in ports if port.port.rate_gbps.why), "")
            return self.unknown(node, why or "no source says the rates of the ports")
        slow: dict[tuple[object, ...], list[Port]] = defaultdict(list)
        elsewhere = of_everyone(node, peers, _rates_by_family)
        for port in seen:
            wanted = _wanted(port, seen, elsewhere)
            if wanted is not None:
                slow[port.family[:2], port.rate, port.port.lanes.value, *wanted].append(port)
        found = [self._report(node, bad, seen, _wanted(bad[0], seen, elsewhere), coverage) for bad in slow.values()]
        return self.found(node, found, coverage) if found else self.clean(node, _built_so(node, seen), coverage)

    def _report(
        self, node: Node, bad: Sequence[Port], seen: Sequence[Port], wanted: tuple[float, str, bool] | None,
        coverage: Coverage,
    ) -> Finding:  # fmt: skip
        rate, why, sure = wanted or (0.0, "", False)
        now = bad[0].rate or 0.0
        names = list(dict.fromkeys(port.nic.name for port in bad))
        lost = slow_ports(now, rate, len(bad))
        where, lanes = fold_runs([port.label for port in bad]), bad[0].port.lanes.value
        width = f" on {plural(lanes, 'lane')}" if lanes and lanes != FULL_LANES else ""
        return self.finding(
            node,
            Severity.ERROR if sure else Severity.WARNING,
            f"{where} {'runs' if len(bad) == 1 else 'run'} at {in_gbps(now)}{width} instead of {in_gbps(rate)}",
            observed=f"{in_gbps(now)}{width} ({in_gbs(now / GBPS_PER_GBS)})",
            expected=f"{in_gbps(rate)} ({in_gbs(rate / GBPS_PER_GBS)}), {why}" + _ability(node, bad[0], rate),
            fix=(
                "Reseat or swap the cable or transceiver: a bad lane or an older cable makes the port train slower",
                "Look whether the switch port is split or limited to this speed",
                "Look at the speeds that are enabled on the port: `sudo mlxlink -d DEVICE`",
            ),
            nics=names,
            cost=Cost(
                round(lost, 3),
                round(1 - now / rate, 4) if rate else None,
                f"{spell_gbs(now / GBPS_PER_GBS)} of {in_gbs(rate / GBPS_PER_GBS)} per port left, and rings over all"
                " NICs run at the pace of the slowest",
            ),
            evidence=[fact for port in bad for fact in (port.port.rate_gbps, port.port.lanes)],
            coverage=coverage,
            confidence=Confidence.HIGH if sure else Confidence.MEDIUM,
        )  # fmt: skip


def _rates_by_family(nodes: Sequence[Node]) -> dict[Family, Tally[float]]:
    """How many ports of each family run at which rate, over all nodes."""
    made: dict[Family, Tally[float]] = defaultdict(Tally)
    for node in nodes:
        for port in ports_of(node):
            if port.rate:
                made[port.family][port.rate] += 1
    return made


def _wanted(
    port: Port, seen: Sequence[Port], everywhere: Mapping[Family, Tally[float]]
) -> tuple[float, str, bool] | None:
    """The rate that a port should have, why, and whether that is sure; None when it has no better sibling."""
    now = port.rate or 0.0
    family = [other for other in seen if other.family == port.family]
    rates = [other.rate or 0.0 for other in family]
    usual, best = majority(rates), max(rates)
    faster = sum(rate > now for rate in rates)
    if usual is not None and now < usual:
        return usual, f"as {plural(faster, 'sibling')} of the same product", True
    if usual is None and now < best:
        return best, f"as {plural(faster, 'sibling')} of the same product", rates.count(now) == 1
    if usual is not None and faster:
        return None
    return _wanted_elsewhere(port, family, everywhere) or _wanted_lanes(port, family)


def _wanted_elsewhere(
    port: Port, family: Sequence[Port], everywhere: Mapping[Family, Tally[float]]
) -> tuple[float, str, bool] | None:
    """The rate of most ports of the product on other nodes, where it is higher. `family` are its own node's."""
    rates = everywhere.get(port.family, Tally()) - Tally(other.rate for other in family if other.rate)
    common = majority(rates)
    if common is None or (port.rate or 0.0) >= common:
        return None
    return common, f"as {plural(rates[common], 'port')} of the same product on other nodes", False


def _wanted_lanes(port: Port, family: Sequence[Port]) -> tuple[float, str, bool] | None:
    """The rate with all lanes, of an InfiniBand port that runs on one while no sibling shows more."""
    several = any((other.port.lanes.value or 0) > 1 for other in family)
    if port.layer != "InfiniBand" or port.port.lanes.value != 1 or several:
        return None
    return (port.rate or 0.0) * FULL_LANES, f"{FULL_LANES} lanes instead of one at the same speed per lane", False


def _ability(node: Node, port: Port, rate: float) -> str:
    able = able_gbps(node, port.nic)
    return f"; {product(port.nic)} can do {in_gbps(able)}" if able and able >= rate else ""


def _built_so(node: Node, seen: Sequence[Port]) -> str:
    for port in seen:
        able = able_gbps(node, port.nic)
        alike = {other.rate for other in seen if other.family == port.family} == {port.rate}
        if able and alike and (port.rate or able) < able:
            return f"all {product(port.nic)} ports run at {port.rate:g} of {in_gbps(able)}: the fabric is built so"
    return ""
