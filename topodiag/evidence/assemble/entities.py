"""Turns the draft's entities into the model's devices: GPUs, PCI functions, NICs, interfaces, NUMA nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from topodiag.evidence.assemble.facts import counters, facts, pick
from topodiag.evidence.draft import UNNAMED_NIC, Entity, NodeDraft
from topodiag.hardware import catalog
from topodiag.model.busid import normalise_bus_id, unplaced
from topodiag.model.devices import (
    NVIDIA,
    FabricPort,
    Gpu,
    GpuFabric,
    NetDev,
    Nic,
    NicPort,
    NumaNode,
    NvLink,
    PciDevice,
    PciKind,
)
from topodiag.model.provenance import Disagreement, Fact

Apart = list[Disagreement]


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Sort key that puts mlx5_2 before mlx5_10."""
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"([0-9]{1,9})", name))


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
    vendor = pick(entity.offers.get("vendor", ()), int).get(0)
    return vendor == NVIDIA and code >> 16 == 0x03


def gpus(draft: NodeDraft, disagreements: Apart) -> tuple[tuple[Gpu, ...], dict[int, str]]:
    """The GPUs by index, and the label of each GPU entity (by identity) for the tables of pairs."""
    listed: list[Gpu] = []
    labels: dict[int, str] = {}
    taken: set[int] = set()
    numbered = [e for e in draft.entities("gpu") if "index" in e.keys]
    for entity in sorted(numbered, key=_index_key):
        index = int(entity.keys["index"])
        if index in taken:
            continue
        taken.add(index)
        label = f"GPU{index}"
        labels[id(entity)] = label
        links = []
        for (kind, number), child in sorted(entity.children.items(), key=lambda item: str(item[0][1]).zfill(6)):
            if kind == "nvlink" and isinstance(number, int):
                named = facts(NvLink, child, f"{label} link {number}", disagreements)
                links.append(NvLink(number, counters=counters(child, draft.sample_interval_s), **named))
        fabric = entity.children.get(("fabric", 0))
        bus_id = entity.keys.get("bus_id")
        listed.append(
            Gpu(
                index=index,
                bus_id=str(bus_id) if bus_id is not None else None,
                fabric=GpuFabric(**facts(GpuFabric, fabric, f"{label} fabric", disagreements))
                if fabric
                else GpuFabric(),
                nvlinks=tuple(links),
                counters=counters(entity, draft.sample_interval_s),
                **facts(Gpu, entity, label, disagreements),
            )
        )
    return tuple(listed), labels


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


def pci_devices(draft: NodeDraft, disagreements: Apart) -> dict[str, PciDevice]:
    """PCI functions by bus id."""
    devices: dict[str, PciDevice] = {}
    for entity in draft.entities("pci"):
        bus_id = str(entity.keys["bus_id"])
        parent = pick(entity.offers.get("parent", ()), str).value
        devices[bus_id] = PciDevice(
            bus_id=bus_id,
            parent=normalise_bus_id(parent) if parent else None,
            root=pick(entity.offers.get("root", ()), str).get(""),
            counters=counters(entity, draft.sample_interval_s),
            **facts(PciDevice, entity, bus_id, disagreements),
        )
    return dict(sorted(devices.items()))


def numa_nodes(draft: NodeDraft, disagreements: Apart) -> tuple[NumaNode, ...]:
    named = {int(entity.keys["id"]): entity for entity in draft.entities("numa")}
    return tuple(
        NumaNode(number, **facts(NumaNode, named[number], f"NUMA node {number}", disagreements))
        for number in sorted(named)
    )


def netdevs(draft: NodeDraft, disagreements: Apart) -> tuple[NetDev, ...]:
    net_devs = []
    for entity in draft.entities("netdev"):
        name, bus_id = str(entity.keys["name"]), pick(entity.offers.get("bus_id", ()), str).value
        net_devs.append(
            NetDev(
                name=name,
                bus_id=normalise_bus_id(bus_id) if bus_id else None,
                counters=counters(entity, draft.sample_interval_s),
                **facts(NetDev, entity, name, disagreements),
            )
        )
    return tuple(sorted(net_devs, key=lambda device: natural(device.name)))


def fabric_ports(draft: NodeDraft, disagreements: Apart) -> tuple[FabricPort, ...]:
    ports = []
    for entity in draft.entities("fabric"):
        number, guid, name = str(entity.keys["port"]).split(" ", 2)
        named = facts(FabricPort, entity, f"{name} port {number}", disagreements)
        ports.append(FabricPort(name, int(number), guid, counters(entity, draft.sample_interval_s), **named))
    return tuple(ports)


def nics(
    draft: NodeDraft, pci: dict[str, PciDevice], interfaces: tuple[NetDev, ...], disagreements: Apart
) -> tuple[tuple[Nic, ...], dict[int, str]]:
    """RDMA devices first, then Ethernet functions without RDMA, then NIC functions that no driver runs."""
    listed: list[Nic] = []
    labels: dict[int, str] = {}
    by_bus: dict[str, list[str]] = {}
    for device in interfaces:
        if device.bus_id is not None:
            by_bus.setdefault(device.bus_id, []).append(device.name)
    entities = list(draft.entities("nic"))
    for entity in entities:
        if entity.keys.get("rdma") == UNNAMED_NIC and len(entities) > 1:
            continue
        nic = _rdma_nic(draft, entity, pci, by_bus, disagreements)
        labels[id(entity)] = nic.name
        listed.append(nic)
    taken = {nic.bus_id for nic in listed}
    plain = [device for device in interfaces if device.bus_id is not None and device.bus_id not in taken]
    listed.extend(_ethernet_nic(device, pci) for device in plain)
    taken |= {device.bus_id for device in plain}
    for bus_id, function in pci.items():
        if function.kind is PciKind.NIC and bus_id not in taken:
            listed.append(Nic(bus_id, bus_id, driver=function.driver, numa=function.numa, is_vf=function.is_vf))
    named = [replace(nic, part=_part(nic, pci)) for nic in listed]
    return tuple(sorted(named, key=lambda nic: (nic.rdma_name is None, natural(nic.name)))), labels


def _rdma_nic(
    draft: NodeDraft, entity: Entity, pci: dict[str, PciDevice], by_bus: dict[str, list[str]], disagreements: Apart
) -> Nic:
    keys = entity.keys
    rdma, label = keys.get("rdma"), keys.get("label")
    bus_id = str(keys["bus_id"]) if "bus_id" in keys else None
    name = str(rdma or label or bus_id)
    ports = []
    for (kind, number), child in sorted(entity.children.items(), key=lambda item: str(item[0][1]).zfill(6)):
        if kind == "port" and isinstance(number, int):
            named = facts(NicPort, child, f"{name} port {number}", disagreements)
            ports.append(NicPort(number, counters=counters(child, draft.sample_interval_s), **named))
    own: dict[str, Any] = facts(Nic, entity, name, disagreements)
    function = pci.get(bus_id) if bus_id else None
    for shared in ("driver", "numa", "is_vf"):
        if function is not None and not own[shared].known:
            own[shared] = getattr(function, shared)
    own.pop("part")
    texts = {port.netdev.value for port in ports if port.netdev.value is not None}
    return Nic(
        name=name,
        bus_id=bus_id,
        rdma_name=str(rdma) if rdma is not None else None,
        smi_label=str(label) if label is not None else None,
        ports=tuple(ports),
        netdevs=tuple(sorted({*texts, *by_bus.get(bus_id or "", ())}, key=natural)),
        counters=counters(entity, draft.sample_interval_s),
        **own,
    )


def _ethernet_nic(device: NetDev, pci: dict[str, PciDevice]) -> Nic:
    function = pci.get(device.bus_id or "")
    speed = device.speed_mbps
    port = NicPort(
        number=1,
        state=Fact({"up": "ACTIVE", "down": "DOWN"}[device.operstate.value], device.operstate.origin)
        if device.operstate.value in ("up", "down")
        else Fact(None, device.operstate.origin, "operstate says neither up nor down"),
        rate_gbps=Fact(speed.value / 1000, speed.origin) if speed.value is not None else Fact(why=speed.why),
        link_layer=Fact("Ethernet", device.kind.origin) if device.kind.get("ether") == "ether" else Fact(),
        active_mtu=device.mtu,
        netdev=Fact(device.name, device.operstate.origin),
    )
    return Nic(
        name=device.name,
        bus_id=device.bus_id,
        firmware=device.firmware,
        driver=device.driver if device.driver.known or function is None else function.driver,
        numa=function.numa if function is not None else Fact(),
        is_vf=function.is_vf if function is not None else Fact(),
        ports=(port,),
        netdevs=(device.name,),
    )


def _part(nic: Nic, pci: dict[str, PciDevice]) -> Fact[str]:
    function = pci.get(nic.bus_id or "")
    if function is not None and function.vendor.value is not None and function.device.value is not None:
        spec = catalog.nic_by_pci_id(function.vendor.value, function.device.value)
        if spec is not None:
            return Fact(spec.name, function.device.origin)
    if nic.hca_type.value is not None:
        spec = catalog.nic_by_hca_type(nic.hca_type.value)
        if spec is not None:
            return Fact(spec.name, nic.hca_type.origin)
    return Fact(why="not in the datasheets")
