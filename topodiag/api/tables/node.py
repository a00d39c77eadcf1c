"""Tables of nodes: machines, GPUs, NICs, links and the paths between devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from topodiag.api.tables.interface import Part, Row, Table, columns
from topodiag.model.result import Result
from topodiag.report.documents.from_model import Document
from topodiag.report.node.json import node_facts


def _facts(result: Result) -> Iterator[Document]:
    return (node_facts(node) for node in result.nodes)


def _parts(name: str) -> Callable[[Result], Iterator[Part]]:
    """These parts of all nodes."""
    return lambda result: (Part(node, part) for node in _facts(result) for part in node[name])


def _matrix(result: Result) -> Iterator[Row]:
    for node in _facts(result):
        gpus = {f"GPU{gpu['index']}" for gpu in node["gpus"]}
        names = gpus | {nic["name"] for nic in node["nics"]}  # and no NIC by two names
        for a, row in node["matrix"].items():
            for b, word in row.items():
                if {a, b} <= names:
                    yield node["host"], a, b, word


_PCIE = """
    pcie_width whole lanes = pcie.width: PCIe lanes that were negotiated.
    pcie_max_width whole lanes = pcie.max_width: Lanes that device and slot allow.
    pcie_gen whole = pcie.gen: PCIe generation that was negotiated.
    pcie_max_gen whole = pcie.max_gen: Generation that device and slot allow.
"""
NODES = Table(
    "Machines.",
    columns("""
        host text: Name.
        system text: Product, where it is known.
        time text: When the node was captured.
        gpus whole: Number of GPUs.
        nics whole: Number of NICs.
        gpus_seen text = gpus_seen.status: seen, none, hidden or unread.
        cpu text = cpu.name: Name of the processor.
        sockets whole = cpu.sockets: Processors.
        numa_nodes whole = numa: NUMA nodes.
        kernel text = os.kernel: Version of the kernel.
        driver_version text = os.driver_version: NVIDIA driver.
        cuda_version text = os.cuda_version: CUDA of the driver.
        virtualization text = os.virtualization: Hypervisor, where there is one.
        container text = os.container: Container runtime, where the capture ran in one.
    """),
    _facts,
)
GPUS = Table(
    "GPUs of all nodes.",
    columns(
        """
        host text = owner.host: Node.
        gpu whole = index: Index on the node.
        bus_id text: PCI address.
        name text: Product.
        uuid text: UUID.
        sm whole: Compute capability, 90 for 9.0.
        numa whole: NUMA node.
        nvlinks_active whole links = nvlinks.active: NVLinks that are up.
        nvlinks_expected whole links = nvlinks.expected: NVLinks of the product.
        nvlink_gbs_each number GB/s = nvlinks.gbps_each: Rate of one NVLink in one direction, where all are equal.
        c2c_gbs number GB/s: NVLink-C2C to the processor, in one direction.
    """
        + _PCIE
    ),
    _parts("gpus"),
)
NICS = Table(
    "NICs of all nodes.",
    columns(
        """
        host text = owner.host: Node.
        nic text = name: Name.
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
    _parts("nics"),
)
LINKS = Table(
    "Links between devices of a node.",
    columns("""
        host text = owner.host: Node.
        a text: One end.
        b text: The other end.
        kind text: NVLink, PCIe and so on.
        count whole: Links in parallel.
        intended_gbs number GB/s: What the parts are built for, in one direction.
        negotiated_gbs number GB/s: What the link trained to, in one direction.
        latency_us number us: Latency.
        label text: Words for it.
    """),
    _parts("links"),
)
PATHS = Table(
    "Paths between the GPUs and NICs of a node.",
    columns("""
        host text = owner.host: Node.
        from text = from_: Device.
        to text: Device.
        type text: NCCL's path type: NVL, PIX, PXB, PHB, SYS and so on.
        vertices text: Devices on the way, parted by blanks.
        intended_gbs number GB/s: What the narrowest link is built for, in one direction.
        negotiated_gbs number GB/s: What the narrowest link trained to, in one direction.
    """),
    _parts("paths"),
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
