"""A node in the machine-readable result. Unknown values are null, never 0."""

from __future__ import annotations

from collections.abc import Mapping

from topodiag.hardware.catalog import gpu_by_name
from topodiag.model.devices import Gpu, Nic
from topodiag.model.gpu_sight import gpu_sight
from topodiag.model.links import Link, Path
from topodiag.model.node import Node
from topodiag.model.provenance import Disagreement, Fact
from topodiag.report.documents.parts import origin_of
from topodiag.report.documents.types import node as shape
from topodiag.report.node.matrix import nic_labels, path_word


def node_facts(node: Node) -> shape.Node:
    sight = gpu_sight(node)
    return shape.Node(
        host=node.host,
        system=node.system.value,
        time=node.time.value,
        gpus_seen=shape.GpusSeen(status=sight.sight.value, why=sight.why),
        cpu=shape.Cpu(name=node.cpu.name.value, arch=node.cpu.arch.value, sockets=node.cpu.sockets.value),
        os=shape.Os(
            kernel=node.os.kernel.value,
            driver_version=node.os.driver_version.value,
            cuda_version=node.os.cuda_version.value,
            virtualization=node.os.virtualization.value,
            container=node.os.container.value,
        ),
        numa=[shape.Numa(id=numa.id, cpus=numa.cpus.value, socket=numa.socket.value) for numa in node.numa],
        gpus=[_gpu(node, gpu) for gpu in node.gpus],
        nics=[_nic(node, nic) for nic in node.nics],
        matrix=_matrix(node),
        links=[_link(link) for link in node.links],
        paths=_paths(node.paths),
        disagreements=[_disagreement(item) for item in node.disagreements],
    )


def _pcie(node: Node, device: Gpu | Nic) -> shape.Pcie:
    pci = node.pci_of(device)
    if pci is None:
        return shape.Pcie(width=None, max_width=None, gen=None, max_gen=None)
    return shape.Pcie(
        width=pci.width.value,
        max_width=_first(pci.slot_max_width, pci.max_width),
        gen=pci.gen.value,
        max_gen=_first(pci.slot_max_gen, pci.max_gen),
    )


def _first(*facts: Fact[int]) -> int | None:
    return next((fact.value for fact in facts if fact.value is not None), None)


def _gpu(node: Node, gpu: Gpu) -> shape.Gpu:
    spec = gpu_by_name(gpu.name.value) if gpu.name.value else None
    return shape.Gpu(
        index=gpu.index,
        bus_id=gpu.bus_id,
        name=gpu.name.value,
        uuid=gpu.uuid.value,
        sm=gpu.sm.value,
        numa=gpu.numa.value,
        nvlinks=shape.NvLinks(
            active=gpu.active_links, expected=spec.nvlinks if spec else None, gbps_each=gpu.nvlink_rate
        ),
        c2c_gbs=gpu.c2c_gbs.value,
        pcie=_pcie(node, gpu),
    )


def _nic(node: Node, nic: Nic) -> shape.Nic:
    first = nic.ports[0] if nic.ports else None
    return shape.Nic(
        name=nic.name,
        bus_id=nic.bus_id,
        rdma_name=nic.rdma_name,
        part=nic.part.value,
        rate_gbps=first.rate_gbps.value if first else None,
        state=first.state.value if first else None,
        link_layer=first.link_layer.value if first else None,
        numa=nic.numa.value,
        role=nic.role.value,
        role_why=nic.role_why,
        pcie=_pcie(node, nic),
        ports=[
            shape.Port(
                number=port.number,
                state=port.state.value,
                phys_state=port.phys_state.value,
                rate_gbps=port.rate_gbps.value,
                link_layer=port.link_layer.value,
            )
            for port in nic.ports
        ],
    )


def _matrix(node: Node) -> dict[str, dict[str, str]]:
    """Rows of GPUs and NICs by label, each with its known pairs. A NIC whose column has another name (`NIC0`, which
    the legend explains) stands under both names."""
    devices: list[tuple[str, tuple[str, ...]]] = [(gpu.label, (gpu.label,)) for gpu in node.gpus]
    devices += [(nic.name, nic_labels(nic)) for nic in node.nics]
    devices += [(nic.smi_label, nic_labels(nic)) for nic in node.nics if nic.smi_label not in {None, nic.name}]
    rows: dict[str, dict[str, str]] = {}
    for name, labels in devices:
        row = {
            other: word
            for other, others in devices
            if others != labels and (word := path_word(node, labels, others)) is not None
        }
        if row:
            rows[name] = row
    return rows


def _link(link: Link) -> shape.Link:
    return shape.Link(
        a=link.a,
        b=link.b,
        kind=link.kind.value,
        count=link.count,
        intended_gbs=link.intended_gbs.value,
        negotiated_gbs=link.negotiated_gbs.value,
        latency_us=link.latency_us.value,
        label=link.label,
    )


def _paths(paths: Mapping[tuple[str, str], Path]) -> list[shape.Path]:
    return [
        shape.Path(
            from_=a,
            to=b,
            type=path.type.name,
            vertices=list(path.vertices),
            intended_gbs=path.intended_gbs,
            negotiated_gbs=path.negotiated_gbs,
        )
        for (a, b), path in paths.items()
    ]


def _disagreement(item: Disagreement) -> shape.Disagreement:
    return shape.Disagreement(
        subject=item.subject,
        field=item.field,
        taken=item.taken,
        taken_from=origin_of(item.taken_from),
        other=item.other,
        other_from=origin_of(item.other_from),
    )
