"""A node in `facts.nodes`: GPUs, NICs, links and paths. Unknown values are null."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from topodiag.report.documents.from_model import Of
from topodiag.report.documents.types.common import Origin


class GpusSeen(Struct, frozen=True, kw_only=True):
    """Whether the evidence tells of the node's GPUs."""

    status: Annotated[Literal["seen", "none", "hidden", "unread"], Of("sight")]
    why: str


class Cpu(Struct, frozen=True, kw_only=True):
    """The processors."""

    name: str | None
    arch: str | None
    sockets: int | None


class Os(Struct, frozen=True, kw_only=True):
    """Kernel, driver and what lies between them and the hardware."""

    kernel: str | None
    driver_version: str | None
    cuda_version: str | None
    virtualization: str | None
    container: str | None


class Numa(Struct, frozen=True, kw_only=True):
    """A NUMA node."""

    id: int
    cpus: str | None
    socket: int | None


class NvLinks(Struct, frozen=True, kw_only=True):
    """Links that are up, links of the product, and GB/s per link in one direction."""

    active: int | None
    expected: int | None
    gbps_each: float | None


class Pcie(Struct, frozen=True, kw_only=True):
    """Negotiated and possible lanes and generation; null where not read."""

    width: int | None
    max_width: int | None
    gen: int | None
    max_gen: int | None


class Gpu(Struct, frozen=True, kw_only=True):
    """A GPU."""

    index: int
    bus_id: str | None
    name: str | None
    uuid: str | None
    sm: int | None
    numa: int | None
    nvlinks: NvLinks
    c2c_gbs: float | None
    pcie: Pcie


class Port(Struct, frozen=True, kw_only=True):
    """A port of a NIC. `rate_gbps` is in Gb/s."""

    number: int
    state: str | None
    phys_state: str | None
    rate_gbps: float | None
    link_layer: str | None


class Nic(Struct, frozen=True, kw_only=True):
    """A NIC. Rate, state and link layer are those of its first port; `rate_gbps` is in Gb/s."""

    name: str
    bus_id: str | None
    rdma_name: str | None
    part: str | None
    rate_gbps: float | None
    state: str | None
    link_layer: str | None
    numa: int | None
    role: Literal["compute", "storage", "management", "unknown"]
    role_why: str
    pcie: Pcie
    ports: list[Port]


class Link(Struct, frozen=True, kw_only=True):
    """A link between two devices, in GB/s of one direction."""

    a: str
    b: str
    kind: str
    count: int
    intended_gbs: float | None
    negotiated_gbs: float | None
    latency_us: float | None
    label: str


class Path(Struct, frozen=True, kw_only=True):
    """The path between two devices, with NCCL's path type."""

    from_: str = field(name="from")
    to: str
    type: str
    vertices: list[str]
    intended_gbs: float | None
    negotiated_gbs: float | None


class Disagreement(Struct, frozen=True, kw_only=True):
    """Two sources that contradict each other, and which of them was taken."""

    subject: str
    field: str
    taken: str
    taken_from: Origin
    other: str
    other_from: Origin


class Scheduled(Struct, frozen=True, kw_only=True):
    """A node, or a node set, as the scheduler lists it; "" for what it does not say."""

    nodes: str
    state: str
    gres: str
    reason: str
    origin: Origin


class Node(Struct, frozen=True, kw_only=True):
    """One machine."""

    host: str
    system: str | None
    time: str | None
    gpus_seen: GpusSeen
    cpu: Cpu
    os: Os
    numa: list[Numa]
    gpus: list[Gpu]
    nics: list[Nic]
    matrix: Annotated[
        dict[str, dict[str, str]],
        Meta(
            description="Path between two devices by label, in the words of nvidia-smi topo -m where it was read, else"
            " as NCCL's path type. A NIC stands under its name, and under that of its column (`NIC0`) where it has one."
        ),
    ]
    links: list[Link]
    paths: list[Path]
    scheduled: list[Scheduled]
    disagreements: list[Disagreement]
