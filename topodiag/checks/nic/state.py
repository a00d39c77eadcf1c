"""Ports of RDMA NICs that are not up, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import fsum
from typing import Any

from topodiag.checks.interface import Advice, NodeCheck
from topodiag.checks.nic.events import links_down, of_bus, of_log, of_start
from topodiag.checks.shared.devices import compute_nics, distance, just_booted, word
from topodiag.checks.shared.prices import GBPS_PER_GBS, slow_ports
from topodiag.hardware.catalog import nic_by_hca_type, nic_by_pci_id
from topodiag.hardware.specs import NicSpec
from topodiag.lazy import dataclass
from topodiag.model.busid import slot_of
from topodiag.model.devices import NetDev, Nic, NicPort
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node
from topodiag.model.provenance import Fact, Topic
from topodiag.words.own_data import own_data
from topodiag.words.states import GOOD
from topodiag.words.units import fold_runs, in_gbs, plural, spell_gbs

MOST_DEFAULT_GBPS = 56.0
"""The highest rate that drivers show for a port without a link: mlx5 shows 10 and 40 Gb/s, mlx4 up to 56."""


@dataclass(frozen=True, slots=True)
class Port:
    """One port of a compute NIC.

    `card` is the adapter that it sits on; `place` is the same for the ports that are wired alike: function and port
    number. A card's second port is another place than its first.
    """

    nic: Nic
    port: NicPort
    card: str
    place: tuple[str, int]

    @property
    def label(self) -> str:
        """The NIC's name, with the port where there are several."""
        return self.nic.name if len(self.nic.ports) == 1 else f"{self.nic.name}/{self.port.number}"

    @property
    def state(self) -> str:
        return (self.port.state.value or "").strip().upper()

    @property
    def phys(self) -> str:
        return (self.port.phys_state.value or "").strip()

    @property
    def is_up(self) -> bool:
        return self.state.lower() in GOOD

    @property
    def rate(self) -> float | None:
        """Gb/s; None on a port that is not up, whose rate is the driver's default and means nothing. Where nobody says
        whether it is up, a rate above all such defaults tells that it is."""
        value = self.port.rate_gbps.value
        trained = self.is_up or (not self.state and not self.phys and value is not None and value > MOST_DEFAULT_GBPS)
        return value if trained and value is not None and value > 0 else None

    @property
    def layer(self) -> str:
        return self.port.link_layer.value or ""

    @property
    def family(self) -> Family:
        """Peers have product, link layer and place in common."""
        return product(self.nic), self.layer, self.place


Family = tuple[str, str, tuple[str, int]]
"""Product, link layer, and which function and port of its card."""


_LISTS = frozenset({Topic.PCI, Topic.TOPOLOGY_FILE})
"""Beside the list of RDMA devices, what shows every adapter."""

ONE_OF_MORE = "not every RDMA device is listed: there may be others than {}"
"""Of ports that are well, where a text shows some."""


def lists_no_nics(node: Node, shown: Sequence[Nic]) -> bool:
    """Whether the evidence does not list the NICs of the node: nothing does, or a text that somebody gave shows one,
    as tools do that were asked for it. The columns of `topo -m` are all that the driver knows."""
    if not node.topics:
        return False
    if Topic.RDMA_DEVICES not in node.topics:
        return not (shown and (node.topics & _LISTS or any(nic.smi_label for nic in shown)))
    return len(shown) == 1 and not node.time.known and not (shown[0].smi_label or node.topics & _LISTS)


def product(nic: Nic) -> str:
    """The product by name, else the kernel's hca_type; empty when neither is known."""
    return nic.part.value or nic.hca_type.value or ""


def ports_of(node: Node) -> tuple[Port, ...]:
    """Every port of every compute NIC."""
    ports = []
    for nic in compute_nics(node):
        # Virtual functions count on: their number says nothing of the card's ports.
        function = nic.bus_id.rpartition(".")[2] if nic.bus_id and not nic.is_vf.get(False) else ""
        card = slot_of(nic.bus_id) if function and nic.bus_id else nic.name
        if nic.bus_id is None and nic.sys_image_guid.value:
            card, function = nic.sys_image_guid.value, str(_place_on_card(node, nic))
        ports += [Port(nic, port, card, (function, port.number)) for port in nic.ports]
    return tuple(ports)


def _place_on_card(node: Node, nic: Nic) -> int:
    """Which function of its card a NIC is, by the order of their GUIDs: those of one card share the image GUID."""
    mates = [one for one in compute_nics(node) if one.sys_image_guid.value == nic.sys_image_guid.value]
    return sorted((nic.node_guid.get(""), nic.name) for nic in mates).index((nic.node_guid.get(""), nic.name))


def nic_spec(node: Node, nic: Nic) -> NicSpec | None:
    """The datasheet of a NIC, or None when its ids and its hca_type are unknown or in none."""
    function = node.pci_of(nic)
    spec = None
    if function is not None and function.vendor.value is not None and function.device.value is not None:
        spec = nic_by_pci_id(function.vendor.value, function.device.value)
    return spec or (nic_by_hca_type(nic.hca_type.value) if nic.hca_type.value else None)


def able_gbps(node: Node, nic: Nic) -> float | None:
    """The most that a port of this product can do, Gb/s; None where the datasheets leave it open."""
    spec = nic_spec(node, nic)
    return spec.rate_gbps if spec is not None and spec.rate_gbps > 0 else None


def usual_gbps(node: Node, port: Port, ports: Sequence[Port]) -> tuple[float | None, str]:
    """What a port would run at, Gb/s, and how that is known: as its fastest peer, else as its datasheet says."""
    rates = [other.rate for other in ports if other.rate and other is not port and other.family[:2] == port.family[:2]]
    if rates:
        return max(rates), "as its peers run"
    able = able_gbps(node, port.nic)
    return able, f"the most that {product(port.nic)} can do" if able else ""


def netdev_of(node: Node, port: Port) -> NetDev | None:
    """The interface of a port: the one that it names, else the only one of its NIC."""
    name = port.port.netdev.value or (port.nic.netdevs[0] if len(port.nic.netdevs) == 1 else None)
    return next((device for device in node.netdevs if device.name == name), None)


def is_near(kind: PathType | None) -> bool:
    """Whether a path stays below PCIe switches."""
    return kind is not None and PathType.PIX <= kind <= PathType.PXB


LONE_AMONG = 6
"""Ports from which on a single one that is down is no second port: three cards of two would have two others."""
FEW_OF = 6
"""A sixth of the ports may be spare by design: eight compute ports and two of storage cards with two ports each."""
HIGHEST_LID = 0xBFFF
"""Of a port alone: above are those of multicast groups, and 0xFFFF is no address (InfiniBand specification, 4.1.3)."""
NO_COMPUTE = "no RDMA NIC that carries the job's traffic"

CABLELESS = frozenset({"no link partner", "switched off", "down"})
"""What a port without a cable looks like."""


class NicPortDown(NodeCheck, id="NIC001"):
    """NIC001: a compute NIC port that is not Active/LinkUp

    What it finds
        Ports of the NICs that carry the job's traffic which are down, disabled, without a subnet manager (INIT),
        known to one that has not configured them (INIT with an SM lid, or DOWN with a link) or not activated them
        (ARMED), or in link error recovery.

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

    def observe(self, node: Node, peers: Sequence[Node]) -> Outcome:
        outcome = self._judge_ports(node)
        down = of_log(self, node, links_down(node))
        return self.add_findings(outcome, [*of_bus(self, node), *of_start(self, node), *down])

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
        findings = [self._report(node, kind, bad, known) for (kind, _, _), bad in faults.items()]
        unused = f"second ports that no card uses: {fold_runs(spare)}" if spare else ""
        return self.any_of(node, findings, coverage, unused, _left_open(node, unsure))

    def _report(self, node: Node, kind: str, bad: Sequence[Port], ports: Sequence[Port]) -> Finding:
        names = list(dict.fromkeys(port.nic.name for port in bad))
        state = "/".join(filter(None, (bad[0].state, bad[0].phys)))
        up = [port for port in ports if port.is_up]
        young = just_booted(node) and kind != "switched off"
        ethernet_only = not up and all(port.layer == "Ethernet" for port in ports)
        recovering = kind == "link error recovery"
        severity = Severity.INFO if young else Severity.WARNING if ethernet_only or recovering else Severity.ERROR
        where = fold_runs([port.label for port in bad])
        lone = not up and not lists_no_nics(node, compute_nics(node))
        return self.finding(
            self.where(node, nics=names),
            Advice(severity, Confidence.MEDIUM if ethernet_only else Confidence.HIGH),
            f"{where} {'is' if len(bad) == 1 else 'are'} {state}: {kind}"
            + (", minutes after boot: transient" if young else "")
            + (", and no other compute NIC is active" if lone and not young else ""),
            observed=f"{state} on {plural(len(bad), 'port')} ({where})",
            expected=f"ACTIVE/LinkUp, as {plural(len(up), 'other port')}" if up else "ACTIVE/LinkUp",
            fix=own_data("checks/advice/node_faults")["port"][kind],
            cost=_loss(node, bad, ports),
            evidence=_shown(node, bad),
        )


def _left_open(node: Node, unsure: Sequence[str]) -> str:
    """Why ports of which none is at fault for sure do not clear the node; "" where they do."""
    names = [nic.name for nic in compute_nics(node)]
    if unsure:
        return f"without bus ids {fold_runs(unsure)} may be second ports without a cable"
    return ONE_OF_MORE.format(fold_runs(names)) if lists_no_nics(node, compute_nics(node)) else ""


def _fault(node: Node, port: Port) -> str:
    """What keeps a port from carrying traffic, in words; empty when nothing is seen to."""
    phys = port.phys.lower()
    if port.is_up or (not port.state and phys == "linkup"):
        return "link error recovery" if phys == "linkerrorrecovery" else ""
    if port.state == "INIT" or (port.state == "DOWN" and _has_cable(port)):
        known = "not configured by the subnet manager" if port.port.sm_lid.value else "no subnet manager"
        return known if port.layer != "Ethernet" else "training"
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
    if _had_address(port) or _has_cable(port):
        return False
    return any(mate.is_up for mate in mates) and not any(other.is_up for other in alike)


def _may_be_spare(node: Node, port: Port, ports: Sequence[Port]) -> bool:
    """Whether a port may be the second one of an active NIC's card: which card it is on is not known without its bus
    id, and either the matrix shows an active NIC of its product right beside it (PIX) or nothing shows distances."""
    if port.nic.bus_id is not None or _had_address(port) or _stands_alone(port, ports):
        return False
    if port.nic.sys_image_guid.known:
        return not all(other.nic.sys_image_guid.known for other in ports)
    mates = [other for other in ports if other.is_up and product(other.nic) == product(port.nic)]
    words = [word(node, port.nic.name, mate.nic.name).value for mate in mates]
    return bool(words) and any(text in (None, "PIX") for text in words)


def _had_address(port: Port) -> bool:
    """Whether a subnet manager gave the port an address of its own: it was in the fabric since its driver came up."""
    return port.layer == "InfiniBand" and 0 < port.port.lid.get(0) <= HIGHEST_LID


def _has_cable(port: Port) -> bool:
    """Whether a port of a fabric has a link, whatever its logical state is: that is the subnet manager's to raise."""
    return port.layer == "InfiniBand" and port.phys.lower() == "linkup"


def _stands_alone(port: Port, ports: Sequence[Port]) -> bool:
    """Whether a port is down alone, or as one of few, among many of its kind: second ports without a cable come by the
    half, and by two where two cards of storage have one each."""
    alike = [other for other in ports if product(other.nic) == product(port.nic) and other.layer == port.layer]
    down = sum(not other.is_up for other in alike)
    return len(alike) >= LONE_AMONG and (down == 1 or down * FEW_OF < len(alike))


def _loss(node: Node, bad: Sequence[Port], ports: Sequence[Port]) -> Cost:
    rates = [usual_gbps(node, port, ports) for port in bad]
    lost = fsum(slow_ports(0, rate or 0.0, 1) for rate, _ in rates)
    nics = [port.nic.name for port in bad]
    near = fold_runs([g.label for g in node.gpus if any(is_near(distance(node, g.label, nic)[0]) for nic in nics)])
    words = f"; {near} must take another NIC" if near else ""
    if not lost or lists_no_nics(node, compute_nics(node)):
        return Cost(text=f"the port carries nothing{words}")
    left = fsum(port.rate or 0.0 for port in ports) / GBPS_PER_GBS
    how = next(why for rate, why in rates if rate)
    text = f"{spell_gbs(left)} of {in_gbs(left + lost)} of this node's network are left ({how}){words}"
    return Cost(round(lost, 3), round(lost / (left + lost), 4), text)


def _shown(node: Node, bad: Sequence[Port]) -> Iterator[Fact[Any]]:
    for port in bad:
        device = netdev_of(node, port)
        yield port.port.state
        yield port.port.phys_state
        if port.state == "INIT" or _has_cable(port):
            yield port.port.sm_lid
        if device is not None and port.layer == "Ethernet":
            yield device.carrier
