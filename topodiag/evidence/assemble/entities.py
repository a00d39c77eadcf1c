"""Turns the draft's entities into the model's devices: GPUs, PCI functions, NICs, interfaces, NUMA nodes.

Of all offers for a field it picks the most trusted value, and records the others that differ.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar

from topodiag.evidence.draft import UNNAMED_NIC, Entity, NodeDraft, Offer
from topodiag.hardware import catalog
from topodiag.hardware.specs import NicSpec
from topodiag.lazy import dataclass
from topodiag.model import devices
from topodiag.model.busid import normalise_bus_id, unplaced
from topodiag.model.devices import NVIDIA, Gpu, GpuFabric, NetDev, Nic, NicPort, NumaNode, PciDevice, PciKind
from topodiag.model.provenance import NOT_SEEN, Counter, Disagreement, Fact, Origin
from topodiag.words.hosts import natural
from topodiag.words.own_data import own_data

_VARIES = frozenset(own_data("evidence/words")["varies"])
_NO_READING: Fact[Any] = Fact(why=NOT_SEEN)


@cache
def fact_fields(model: type) -> dict[str, type]:
    """The `Fact[...]` fields of a model class and the plain type of each (`tuple` for `tuple[str, ...]`), by the text
    of their types: to have `typing` evaluate them costs a fortieth of a scan."""
    types = ((field.name, str(field.type).split("[")) for field in fields(model))
    return {name: getattr(builtins, words[1].rstrip("]")) for name, words in types if words[0] == "Fact"}


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return bool(abs(one - other) <= 0.02 * max(abs(one), abs(other)))
    if isinstance(one, str) and isinstance(other, str):
        a, b = one.lower(), other.lower()
        # Firmware is `28.41.1000` to one tool and `28.41.1000 (MT_0000000838)` to another; GUIDs differ in colons.
        return a.startswith(b) or b.startswith(a) or _hex(a) == _hex(b)
    return bool(one == other)


def _hex(text: str) -> str:
    return text.replace(":", "").removeprefix("0x")


def pick(offers: Iterable[Offer], kind: type) -> Fact[Any]:
    """The most trusted value of a field, the earliest among equals; without one, the first reason for having none."""
    reasons = _NO_READING
    best: Offer | None = None
    for offer in offers:
        if offer.value is None or not _fits(offer.value, kind):
            if reasons.origin is None:
                reasons = Fact(None, offer.origin, offer.why or "unreadable")
        elif best is None or (offer.trust, -offer.sample) > (best.trust, -best.sample):
            best = offer
    return Fact(best.value, best.origin) if best else reasons


def facts(model: type, entity: Entity, subject: str, disagreements: list[Disagreement]) -> dict[str, Any]:
    """Every `Fact` field of a model class from an entity's offers; differing readings are added to `apart`."""
    values: dict[str, Any] = {}
    offered = entity.offers
    for name, kind in fact_fields(model).items():
        offers = offered.get(name)
        if offers is None:
            values[name] = _NO_READING
            continue
        values[name] = fact = pick(offers, kind)
        if len(offers) == 1 or name in _VARIES or fact.origin is None or fact.value is None:
            continue
        for offer in offers:
            if offer.sample == 0 and _fits(offer.value, kind) and not _equal(fact.value, offer.value):
                disagreements.append(
                    Disagreement(subject, name, str(fact.value), fact.origin, str(offer.value), offer.origin)
                )
                break
    return values


def counters(entity: Entity, interval_s: float) -> dict[str, Counter]:
    """Counters by name. Both readings of one counter come from one source, or their difference would mean nothing."""
    by_name: dict[str, Counter] = {}
    for name, offers in entity.counters.items():
        if len(offers) == 1 and offers[0].sample == 0 and _fits(offers[0].value, int):
            by_name[name] = Counter(name, Fact(offers[0].value, offers[0].origin), _NO_READING, 0.0)
            continue
        firsts: dict[int, Offer] = {}
        laters: dict[int, Offer] = {}
        for offer in offers:
            readings = firsts if offer.sample == 0 else laters if offer.sample == 1 else None
            if readings is not None and _fits(offer.value, int):
                readings.setdefault(offer.trust, offer)
        both = firsts.keys() & laters.keys()
        trust = max(both or firsts.keys() or laters.keys(), default=None)
        if trust is None:
            continue
        first, later = firsts.get(trust), laters.get(trust)
        by_name[name] = Counter(
            name,
            Fact(first.value, first.origin) if first else _NO_READING,
            Fact(later.value, later.origin) if later else _NO_READING,
            interval_s if later else 0.0,
        )
    return by_name


_T = TypeVar("_T")
_OF_FUNCTION = ("driver", "numa", "is_vf")
"""What the PCI function of a NIC says of it, too."""


def join_gpu_orders(draft: NodeDraft) -> None:
    """Match GPUs known by index alone with those known by bus id alone.

    The driver numbers GPUs in the order of their bus ids (nvmlDeviceGetHandleByIndex; NVML documentation), so when
    both sides have the same count they are the same GPUs in that order.
    """
    entities = list(draft.entities("gpu"))
    placed = [e for e in entities if "bus_id" in e.keys]
    by_index = sorted((e for e in entities if "bus_id" not in e.keys and "index" in e.keys), key=_index_key)
    known = _bus_ids(filter(_is_placed, placed))
    unnumbered = _bus_ids(placed) - _bus_ids(e for e in placed if "index" in e.keys)
    functions = _bus_ids(e for e in draft.entities("pci") if _is_nvidia_gpu(e))
    loose = sorted((functions | unnumbered) - known)
    if by_index and len(by_index) == len(loose) and not known:
        for entity, bus_id in zip(by_index, loose, strict=True):
            draft.gpu(index=int(entity.keys["index"]), bus_id=bus_id)
    elif not by_index and not known:
        for number, bus_id in enumerate(loose):
            draft.gpu(index=number, bus_id=bus_id)


def place_links(draft: NodeDraft) -> None:
    """Give what was said of the PCIe link of a GPU by its number to the function of the bus id that is known now."""
    placed = {unplaced(_index_key(e)): str(e.keys["bus_id"]) for e in draft.entities("gpu") if _is_placed(e)}
    for function in list(draft.entities("pci")):
        bus_id = placed.get(str(function.keys["bus_id"]))
        if bus_id is not None:
            draft.pci(bus_id).absorb(function)


def _bus_ids(entities: Iterable[Entity]) -> set[str]:
    return {str(entity.keys["bus_id"]) for entity in entities}


def _is_placed(entity: Entity) -> bool:
    return {"index", "bus_id"} <= entity.keys.keys()


def _index_key(entity: Entity) -> int:
    return int(entity.keys["index"])


def _is_nvidia_gpu(entity: Entity) -> bool:
    code = pick(entity.offers.get("class_code", ()), int).get(0)
    return pick(entity.offers.get("vendor", ()), int).get(0) == NVIDIA and code >> 16 == 0x03


@dataclass(frozen=True, slots=True)
class Assembler:
    """Makes devices of the draft's entities, and notes where sources disagree on one."""

    draft: NodeDraft
    disagreements: list[Disagreement]

    def made(self, model: type[_T], entity: Entity, subject: str, **given: Any) -> _T:
        """A device with the facts and the counters of an entity, and what is given."""
        build: Callable[..., _T] = model
        return build(
            **facts(model, entity, subject, self.disagreements),
            **given,
            counters=counters(entity, self.draft.sample_interval_s),
        )

    def parts(self, kind: str, called: str, model: type[_T], entity: Entity, subject: str) -> tuple[_T, ...]:
        """The numbered parts of a device, by number, which the model calls so."""
        numbers = sorted(number for name, number in entity.children if name == kind and isinstance(number, int))
        return tuple(
            self.made(model, entity.child(kind, number), f"{subject} {number}", **{called: number})
            for number in numbers
        )

    def gpus(self) -> tuple[tuple[Gpu, ...], dict[int, str]]:
        """The GPUs by index, and the label of each GPU entity (by identity) for the tables of pairs."""
        by_index: dict[int, Entity] = {}
        for entity in self.draft.entities("gpu"):
            if "index" in entity.keys:
                by_index.setdefault(_index_key(entity), entity)
        gpus = tuple(self._gpu(index, by_index[index]) for index in sorted(by_index))
        return gpus, {id(entity): f"GPU{index}" for index, entity in by_index.items()}

    def _gpu(self, index: int, entity: Entity) -> Gpu:
        label, fabric = f"GPU{index}", entity.children.get(("fabric", 0))
        links = self.parts("nvlink", "index", devices.NvLink, entity, f"{label} link")
        named = facts(GpuFabric, fabric, f"{label} fabric", self.disagreements) if fabric else {}
        bus_id = str(entity.keys["bus_id"]) if "bus_id" in entity.keys else None
        return self.made(Gpu, entity, label, index=index, bus_id=bus_id, fabric=GpuFabric(**named), nvlinks=links)

    def pci_devices(self) -> dict[str, PciDevice]:
        """PCI functions by bus id."""
        functions: dict[str, PciDevice] = {}
        for entity in self.draft.entities("pci"):
            bus_id = str(entity.keys["bus_id"])
            above = normalise_bus_id(pick(entity.offers.get("parent", ()), str).get(""))
            root = pick(entity.offers.get("root", ()), str).get("")
            functions[bus_id] = self.made(PciDevice, entity, bus_id, bus_id=bus_id, parent=above, root=root)
        return dict(sorted(functions.items()))

    def numa_nodes(self) -> tuple[NumaNode, ...]:
        """NUMA nodes by number."""
        named = {int(entity.keys["id"]): entity for entity in self.draft.entities("numa")}
        return tuple(
            NumaNode(number, **facts(NumaNode, named[number], f"NUMA node {number}", self.disagreements))
            for number in sorted(named)
        )

    def netdevs(self) -> tuple[NetDev, ...]:
        """Interfaces by name."""
        netdevs = []
        for entity in self.draft.entities("netdev"):
            name, bus_id = str(entity.keys["name"]), pick(entity.offers.get("bus_id", ()), str).get("")
            netdevs.append(self.made(NetDev, entity, name, name=name, bus_id=normalise_bus_id(bus_id)))
        return tuple(sorted(netdevs, key=lambda device: natural(device.name)))

    def fabric_ports(self) -> tuple[devices.FabricPort, ...]:
        """Ports anywhere in the fabric."""
        ports = []
        for entity in self.draft.entities("fabric"):
            number, guid, name = str(entity.keys["port"]).split(" ", 2)
            subject = f"{name} port {number}"
            ports.append(self.made(devices.FabricPort, entity, subject, node=name, number=int(number), guid=guid))
        return tuple(ports)

    def nics(self, pci: dict[str, PciDevice], interfaces: tuple[NetDev, ...]) -> tuple[tuple[Nic, ...], dict[int, str]]:
        """RDMA devices first, then Ethernet functions without RDMA, then NIC functions that no driver runs; and the
        label of each entity (by identity) for the tables of pairs."""
        entities = list(self.draft.entities("nic"))
        if len(entities) > 1:
            entities = [entity for entity in entities if entity.keys.get("rdma") != UNNAMED_NIC]
        listed = [self._rdma_nic(entity, interfaces) for entity in entities]
        labels = {id(entity): nic.name for entity, nic in zip(entities, listed, strict=True)}
        taken = {nic.bus_id for nic in listed}
        plain = [device for device in interfaces if device.bus_id is not None and device.bus_id not in taken]
        listed += (_ethernet_nic(device) for device in plain)
        taken |= {device.bus_id for device in plain}
        listed += (
            Nic(bus_id, bus_id)
            for bus_id, function in pci.items()
            if function.kind is PciKind.NIC and bus_id not in taken
        )
        named = [_with_function(nic, pci) for nic in listed]
        return tuple(sorted(named, key=lambda nic: (nic.rdma_name is None, natural(nic.name)))), labels

    def _rdma_nic(self, entity: Entity, interfaces: tuple[NetDev, ...]) -> Nic:
        bus_id, rdma, label = (entity.keys.get(key) for key in ("bus_id", "rdma", "label"))
        name = str(rdma or label or bus_id)
        ports = self.parts("port", "number", NicPort, entity, f"{name} port")
        names = {port.netdev.value for port in ports if port.netdev.value is not None}
        names |= {device.name for device in interfaces if device.bus_id is not None and device.bus_id == bus_id}
        return self.made(
            Nic, entity, name,
            name=name,
            bus_id=str(bus_id) if bus_id is not None else None,
            rdma_name=str(rdma) if rdma is not None else None,
            smi_label=str(label) if label is not None else None,
            ports=ports,
            netdevs=tuple(sorted(names, key=natural)),
        )  # fmt: skip


def named_by_pci(gpu: Gpu, pci: dict[str, PciDevice]) -> Gpu:
    """The GPU with the product that its PCI device id stands for, where the driver did not say its name."""
    function = pci.get(gpu.bus_id or "")
    if gpu.name.known or function is None or function.device.value is None:
        return gpu
    spec = catalog.gpu_by_pci_device(function.device.value)
    if spec is None or gpu.sm.get(spec.sm) != spec.sm:
        # A topology file may pair any id with any capability: two that contradict each other name no product.
        return gpu
    return replace(gpu, name=Fact(spec.name, function.device.origin))


def _ethernet_nic(device: NetDev) -> Nic:
    speed, state = device.speed_mbps, {"up": "ACTIVE", "down": "DOWN"}.get(device.operstate.value or "")
    port = NicPort(
        number=1,
        state=Fact(state, device.operstate.origin, "" if state else "operstate says neither up nor down"),
        rate_gbps=Fact(speed.value / 1000, speed.origin) if speed.value is not None else Fact(why=speed.why),
        link_layer=Fact("Ethernet", device.kind.origin) if device.kind.get("ether") == "ether" else Fact(),
        active_mtu=device.mtu,
        netdev=Fact(device.name, device.operstate.origin),
    )
    return Nic(
        name=device.name,
        bus_id=device.bus_id,
        firmware=device.firmware,
        driver=device.driver,
        ports=(port,),
        netdevs=(device.name,),
    )


def _with_function(nic: Nic, pci: dict[str, PciDevice]) -> Nic:
    """The NIC with its product, and with what its PCI function says of it where nothing else did."""
    function = pci.get(nic.bus_id or "")
    own: dict[str, Any] = {
        name: getattr(function, name) for name in _OF_FUNCTION if function is not None and not getattr(nic, name).known
    }
    spec, origin = product_of(nic, function)
    part = Fact(spec.name, origin) if spec is not None else Fact[str](why="not in the datasheets")
    return replace(nic, part=part, **own)


def product_of(nic: Nic, function: PciDevice | None) -> tuple[NicSpec | None, Origin | None]:
    """The product of a NIC in the datasheets, and what tells it: the numbers of its function, else its type."""
    if function is not None and function.vendor.value is not None and function.device.value is not None:
        spec = catalog.nic_by_pci_id(function.vendor.value, function.device.value)
        if spec is not None:
            return spec, function.device.origin
    return catalog.nic_by_hca_type(nic.hca_type.get("")), nic.hca_type.origin
