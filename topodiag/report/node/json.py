"""A node in the machine-readable result. Unknown values are null, never 0."""

from __future__ import annotations

from topodiag.hardware.catalog import gpu_by_name
from topodiag.model.devices import Gpu, Nic, PciDevice
from topodiag.model.events import SCHEDULED
from topodiag.model.node import Node, gpu_sight
from topodiag.model.provenance import Fact
from topodiag.report.documents.from_model import Document, from_model
from topodiag.report.node.matrix import nic_labels, path_word


def node_facts(node: Node) -> Document:
    return from_model(
        "result.Node",
        node,
        gpus_seen=gpu_sight(node),
        gpus=[_gpu(node, gpu) for gpu in node.gpus],
        nics=[from_model("result.Nic", nic, pcie=_pcie(node, nic)) for nic in node.nics],
        matrix=_matrix(node),
        scheduled=[
            from_model("result.Scheduled", event, nodes=event.host, **event.fields)
            for event in node.reports
            if event.kind == SCHEDULED
        ],
        paths=[
            from_model("result.Path", path, **{"from": a}, to=b, type=path.type.name)
            for (a, b), path in node.paths.items()
        ],
    )


def _pcie(node: Node, device: Gpu | Nic) -> Document:
    pci = node.pci_of(device) or PciDevice("")
    most_lanes, fastest = _first(pci.slot_max_width, pci.max_width), _first(pci.slot_max_gen, pci.max_gen)
    return from_model("result.Pcie", pci, max_width=most_lanes, max_gen=fastest)


def _first(*facts: Fact[int]) -> int | None:
    return next((fact.value for fact in facts if fact.value is not None), None)


def _gpu(node: Node, gpu: Gpu) -> Document:
    spec = gpu_by_name(gpu.name.value) if gpu.name.value else None
    links = gpu.active_links, spec.nvlinks if spec else None, gpu.nvlink_rate
    return from_model("result.Gpu", gpu, nvlinks=links, pcie=_pcie(node, gpu))


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
