"""Ports of compute NICs as the checks judge them: which are peers, what they can do, what they carry together."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from topodiag.checks.shared.devices import compute_nics, distance
from topodiag.checks.shared.prices import GBPS_PER_GBS
from topodiag.hardware.catalog import nic_by_hca_type, nic_by_pci_id
from topodiag.hardware.specs import NicSpec
from topodiag.lazy import dataclass
from topodiag.model.busid import slot_of
from topodiag.model.devices import NetDev, Nic, NicPort
from topodiag.model.nccl_enums import PathType
from topodiag.model.node import Node
from topodiag.model.topics import Topic
from topodiag.words.states import GOOD

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
    if not node.told:
        return False
    if Topic.RDMA_DEVICES not in node.told:
        return not (shown and (node.told & _LISTS or any(nic.smi_label for nic in shown)))
    return len(shown) == 1 and not node.time.known and not (shown[0].smi_label or node.told & _LISTS)


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


def network_gbs(ports: Sequence[Port]) -> float:
    """What the active compute ports carry together, GB/s in one direction."""
    return fsum(port.rate or 0.0 for port in ports) / GBPS_PER_GBS


def netdev_of(node: Node, port: Port) -> NetDev | None:
    """The interface of a port: the one that it names, else the only one of its NIC."""
    name = port.port.netdev.value or (port.nic.netdevs[0] if len(port.nic.netdevs) == 1 else None)
    return next((device for device in node.netdevs if device.name == name), None)


def gpus_near(node: Node, nic: Nic) -> tuple[str, ...]:
    """The GPUs that share a PCIe switch with a NIC."""
    return tuple(gpu.label for gpu in node.gpus if is_near(distance(node, gpu.label, nic.name)[0]))


def is_near(kind: PathType | None) -> bool:
    """Whether a path stays below PCIe switches."""
    return kind is not None and PathType.PIX <= kind <= PathType.PXB
