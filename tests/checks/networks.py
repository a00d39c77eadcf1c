"""NICs in full for the tests of network checks: products, firmware, MTUs, counters, interfaces. Built on nodes.py."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.checks import nodes
from tests.checks.nodes import read
from topodiag.model.devices import NetDev, Nic, NicPort, PciDevice
from topodiag.model.node import Node
from topodiag.model.provenance import Counter, Fact, Origin

IB_COUNTERS = (
    "symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors", "port_xmit_discards",
    "local_link_integrity_errors", "excessive_buffer_overrun_errors", "req_cqe_flush_error", "np_cnp_sent",
    "out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "req_transport_retries_exceeded", "port_xmit_data",
)  # fmt: skip


def counter(name: str, first: int | None, later: int | None = None, seconds: float = 60.0) -> Counter:
    """One counter, sampled once or twice."""
    one = Fact() if first is None else Fact(first, Origin("counters", 1, f"{name} {first}"))
    two = Fact() if later is None else Fact(later, Origin("sample2/counters", 1, f"{name} {later}"))
    return Counter(name, one, two, seconds if later is not None else 0.0)


def port(rate: float, layer: str, number: int = 1, **more: Any) -> NicPort:
    """An active port with everything that a port says."""
    facts: dict[str, Any] = {
        "state": read("ACTIVE", "sys-infiniband"),
        "phys_state": read("LinkUp", "sys-infiniband"),
        "rate_gbps": read(rate, "sys-infiniband"),
        "lanes": read(4),
        "link_layer": read(layer),
        "active_mtu": read(4096, "ibv-devinfo"),
        "sm_lid": read(1 if layer == "InfiniBand" else 0),
        "counters": {name: counter(name, 0) for name in IB_COUNTERS},
    }
    return NicPort(number, **{**facts, **more})


def full(
    node: Node,
    *,
    part: str = "ConnectX-7",
    hca: str = "MT4129",
    layer: str = "InfiniBand",
    firmware: str = "28.41.1000",
) -> Node:
    """The node with NICs of a product: firmware, an interface each, counters read once."""
    nics, devices = [], []
    for nic in node.nics:
        name = f"{'ib' if layer == 'InfiniBand' else 'eth'}{len(nics)}"
        rate = nic.ports[0].rate_gbps.get(400.0)
        nics.append(
            replace(
                nic, part=read(part), hca_type=read(hca), firmware=read(firmware, "sys-infiniband"),
                board_id=read("MT_0000000838"), netdevs=(name,), ports=(port(rate, layer),),
            )
        )  # fmt: skip
        counters = {key: counter(key, 2) for key in ("carrier_changes", "rx_crc_errors", "rx_dropped")}
        mtu = 9000 if layer == "Ethernet" else 2044
        devices.append(NetDev(name, nic.bus_id, carrier=read(True), mtu=read(mtu, "sys-net"), counters=counters))
    return replace(node, nics=tuple(nics), netdevs=tuple(devices))


@nodes.built_once
def ib_h100() -> Node:
    """Eight H100 with eight NDR ConnectX-7, all as they should be."""
    return full(nodes.hgx_h100())


@nodes.built_once
def roce_h100() -> Node:
    """The same machine on a RoCE fabric."""
    return full(nodes.hgx_h100(), layer="Ethernet")


@nodes.built_once
def efa_vm(count: int = 8) -> Node:
    """A guest with Elastic Fabric Adapters, whose link layer and rated speed nobody says."""
    node = full(nodes.flat_vm(), part="EFA (0xefa2)", hca="0xefa2", layer="Unspecified")
    nics = tuple(
        replace(nic, name=f"rdmap{at}s0", rdma_name=f"rdmap{at}s0", driver=read("efa"), is_vf=read(True))
        for at, nic in enumerate(node.nics[:count])
    )
    return replace(node, nics=nics)


def with_nic(node: Node, index: int, **changes: Any) -> Node:
    """The node with one NIC changed, by its place."""
    nics = tuple(replace(nic, **changes) if at == index else nic for at, nic in enumerate(node.nics))
    return replace(node, nics=nics)


def with_port(node: Node, index: int | None, **changes: Any) -> Node:
    """The node with the first port of one NIC changed, or of all."""
    return with_ports(node, lambda at, nic: changes if index in (at, None) else {})


def with_ports(node: Node, changes: Callable[[int, Nic], dict[str, Any]]) -> Node:
    nics = tuple(
        replace(nic, ports=(replace(nic.ports[0], **changes(at, nic)), *nic.ports[1:]))
        for at, nic in enumerate(node.nics)
    )
    return replace(node, nics=nics)


def with_counters(node: Node, index: int | None, *changed: Counter) -> Node:
    """The node with counters of one NIC's port (or of all) replaced."""
    return with_ports(
        node,
        lambda at, nic: (
            {"counters": {**nic.ports[0].counters, **{sample.name: sample for sample in changed}}}
            if index in (at, None)
            else {}
        ),
    )


def with_netdev(node: Node, index: int | None, **changes: Any) -> Node:
    devices = tuple(
        replace(device, **changes) if index in (at, None) else device for at, device in enumerate(node.netdevs)
    )
    return replace(node, netdevs=devices)


def with_pci(node: Node, bus_id: str, **changes: Any) -> Node:
    """The node with one PCI function changed or added."""
    device = node.pci.get(bus_id, PciDevice(bus_id))
    return replace(node, pci={**node.pci, bus_id: replace(device, **changes)})


def dual_port(node: Node, second: dict[str, Any]) -> Node:
    """Every card with a second function, as dual-port adapters show themselves; `second` changes its port."""
    nics = []
    for at, nic in enumerate(node.nics):
        nics.append(nic)
        twin = replace(
            nic, name=f"{nic.name}_b", rdma_name=f"{nic.name}_b", bus_id=nic.bus_id[:-1] + "1", netdevs=(),
            ports=(replace(nic.ports[0], **second),),
        )  # fmt: skip
        nics.append(twin)
        assert at < len(node.nics)
    return replace(node, nics=tuple(nics))


DOWN: dict[str, Any] = {
    "state": read("DOWN", "sys-infiniband"),
    "phys_state": read("Polling", "sys-infiniband"),
    "rate_gbps": read(10.0),
}
"""A port without a cable; its rate is the driver's default."""
