"""Tables of nodes: machines, GPUs, NICs, links and the paths between devices."""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.api.tables.interface import Row, Table, columns, flat
from topodiag.model.result import Result
from topodiag.report.documents.types import node as shape
from topodiag.report.node.json import node_facts


def _facts(result: Result) -> Iterator[shape.Node]:
    return (node_facts(node) for node in result.nodes)


def _nodes(result: Result) -> Iterator[Row]:
    for node in _facts(result):
        yield (
            *flat(node, "host", "system", "time"), len(node.gpus), len(node.nics), *flat(node.gpus_seen, "status"),
            *flat(node.cpu, "name", "sockets"), len(node.numa),
            *flat(node.os, "kernel", "driver_version", "cuda_version", "virtualization", "container"),
        )  # fmt: skip


def _gpus(result: Result) -> Iterator[Row]:
    for node in _facts(result):
        for gpu in node.gpus:
            yield (
                node.host, *flat(gpu, "index", "bus_id", "name", "uuid", "sm", "numa"),
                *flat(gpu.nvlinks, "active", "expected", "gbps_each"), gpu.c2c_gbs,
                *flat(gpu.pcie, "width", "max_width", "gen", "max_gen"),
            )  # fmt: skip


def _nics(result: Result) -> Iterator[Row]:
    for node in _facts(result):
        for nic in node.nics:
            yield (
                node.host, *flat(nic, "name", "bus_id", "rdma_name", "part", "rate_gbps", "state", "link_layer"),
                *flat(nic, "numa", "role", "role_why"), *flat(nic.pcie, "width", "max_width", "gen", "max_gen"),
            )  # fmt: skip


def _links(result: Result) -> Iterator[Row]:
    for node in _facts(result):
        for link in node.links:
            yield (
                node.host, *flat(link, "a", "b", "kind", "count", "intended_gbs", "negotiated_gbs", "latency_us"),
                link.label,
            )  # fmt: skip


def _paths(result: Result) -> Iterator[Row]:
    for node in _facts(result):
        for path in node.paths:
            yield node.host, *flat(path, "from_", "to", "type", "vertices", "intended_gbs", "negotiated_gbs")


def _matrix(result: Result) -> Iterator[Row]:
    for node in _facts(result):
        names = {f"GPU{gpu.index}" for gpu in node.gpus} | {nic.name for nic in node.nics}  # and no NIC by two names
        for a, row in node.matrix.items():
            for b, word in row.items():
                if {a, b} <= names:
                    yield node.host, a, b, word


_PCIE = """
    pcie_width whole lanes: PCIe lanes that were negotiated.
    pcie_max_width whole lanes: Lanes that device and slot allow.
    pcie_gen whole: PCIe generation that was negotiated.
    pcie_max_gen whole: Generation that device and slot allow.
"""
NODES = Table(
    "Machines.",
    columns("""
        host text: Name.
        system text: Product, where it is known.
        time text: When the node was captured.
        gpus whole: Number of GPUs.
        nics whole: Number of NICs.
        gpus_seen text: seen, none, hidden or unread.
        cpu text: Name of the processor.
        sockets whole: Processors.
        numa_nodes whole: NUMA nodes.
        kernel text: Version of the kernel.
        driver_version text: NVIDIA driver.
        cuda_version text: CUDA of the driver.
        virtualization text: Hypervisor, where there is one.
        container text: Container runtime, where the capture ran in one.
    """),
    _nodes,
)
GPUS = Table(
    "GPUs of all nodes.",
    columns(
        """
        host text: Node.
        gpu whole: Index on the node.
        bus_id text: PCI address.
        name text: Product.
        uuid text: UUID.
        sm whole: Compute capability, 90 for 9.0.
        numa whole: NUMA node.
        nvlinks_active whole links: NVLinks that are up.
        nvlinks_expected whole links: NVLinks of the product.
        nvlink_gbs_each number GB/s: Rate of one NVLink in one direction, where all are equal.
        c2c_gbs number GB/s: NVLink-C2C to the processor, in one direction.
    """
        + _PCIE
    ),
    _gpus,
)
NICS = Table(
    "NICs of all nodes.",
    columns(
        """
        host text: Node.
        nic text: Name.
        bus_id text: PCI address.
        rdma_name text: Name as an RDMA device.
        part text: Product.
        rate_gbps number Gb/s: Rate of the first port.
        state text: State of the first port.
        link_layer text: InfiniBand or Ethernet.
        numa whole: NUMA node.
        role text: compute, storage, management or unknown.
        role_why text: Why this role.
    """
        + _PCIE
    ),
    _nics,
)
LINKS = Table(
    "Links between devices of a node.",
    columns("""
        host text: Node.
        a text: One end.
        b text: The other end.
        kind text: NVLink, PCIe and so on.
        count whole: Links in parallel.
        intended_gbs number GB/s: What the parts are built for, in one direction.
        negotiated_gbs number GB/s: What the link trained to, in one direction.
        latency_us number us: Latency.
        label text: Words for it.
    """),
    _links,
)
PATHS = Table(
    "Paths between the GPUs and NICs of a node.",
    columns("""
        host text: Node.
        from text: Device.
        to text: Device.
        type text: NCCL's path type: NVL, PIX, PXB, PHB, SYS and so on.
        vertices text: Devices on the way, parted by blanks.
        intended_gbs number GB/s: What the narrowest link is built for, in one direction.
        negotiated_gbs number GB/s: What the narrowest link trained to, in one direction.
    """),
    _paths,
)
MATRIX = Table(
    "What `nvidia-smi topo -m` says between two devices, or NCCL's path type.",
    columns("""
        host text: Node.
        from text: Device.
        to text: Device.
        path text: NV18, PIX, SYS and so on.
    """),
    _matrix,
)
