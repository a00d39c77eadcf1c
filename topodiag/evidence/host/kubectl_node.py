"""`kubectl describe node`: GPUs that a node has and gives out.

    Name:               aks-gpu-vmss000000
    Labels:             nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3
    Capacity:
      nvidia.com/gpu:     8
    Allocatable:
      nvidia.com/gpu:     7

A device plug-in gives out no GPU that it holds for unhealthy. Format: kubectl 1.20 to 1.34 (describe.go).
"""

from __future__ import annotations

from dataclasses import replace

from topodiag.evidence.draft import NodeDraft
from topodiag.evidence.interface import MAX_LINE, Blob, Parsed, Source, to_int
from topodiag.model import tables

MAX_NODES = 2000
_SECTIONS = {"Capacity": tables.CAPACITY, "Allocatable": tables.ALLOCATABLE}
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
_PRODUCT = tuple(f"{maker}.com/gpu.product{name}=" for maker in ("nvidia", "amd") for name in ("", "-name"))


class KubectlNode(Source):
    """Nodes of Kubernetes by name, with their product and the GPUs that they have and give out."""

    def read(self, blob: Blob, draft: NodeDraft) -> Parsed[int]:
        rows, section = [tables.Row({}, blob.origin(), "a node")], ""
        for number, whole in blob.lines():
            line, row = whole[:MAX_LINE], rows[-1]
            key, colon, cell = (part.strip() for part in line.partition(":"))
            if product := _product(line):
                rows[-1] = replace(row, cells={**row.cells, tables.PRODUCT: product})
            elif colon and key == "Name" and cell and line[:1] == "N" and len(rows) < MAX_NODES:
                rows.append(tables.Row({}, blob.origin(number, whole), cell))
            elif colon and key in _SECTIONS and not cell:
                section = _SECTIONS[key]
            elif section and colon and key in _GPUS and (count := to_int(cell, low=0)) is not None:
                rows[-1] = tables.Row({**row.cells, section: str(count)}, blob.origin(number, whole), row.label)
        known = tuple(row for row in rows if tables.ALLOCATABLE in row.cells)
        draft.tables.append(tables.Table(known))
        return Parsed([row.origin.line or 0 for row in known])


def _product(line: str) -> str:
    """The product that a label names, "" in another line."""
    labels = line.split() if ".com/gpu.product" in line else ()
    return next((label.partition("=")[2] for label in labels if label.startswith(_PRODUCT)), "")
