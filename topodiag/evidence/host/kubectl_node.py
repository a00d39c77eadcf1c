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

from collections.abc import Iterator

from topodiag.evidence.interface import MAX_LINE, Blob, Parsed, to_int
from topodiag.evidence.sentences import Reporting, report
from topodiag.lazy import dataclass
from topodiag.model.events import Event

MAX_NODES = 2000
_SECTIONS = ("Capacity", "Allocatable")
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
_PRODUCT = tuple(f"{maker}.com/gpu.product{name}=" for maker in ("nvidia", "amd") for name in ("", "-name"))


@dataclass(slots=True)
class Described:
    """One node: its name, its product, the GPUs that it has and gives out (-1: not told), and the line of these."""

    name: str
    product: str = ""
    has: int = -1
    gives: int = -1
    line: int = 0
    text: str = ""


class KubectlNode(Reporting):
    """Nodes of Kubernetes that give out fewer GPUs than they or their siblings have."""

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        nodes, section = [Described("")], ""
        for number, whole in blob.lines():
            line = whole[:MAX_LINE]
            key, colon, cell = (part.strip() for part in line.partition(":"))
            labels = line.split() if ".com/gpu.product" in line else ()
            if product := next((label for label in labels if label.startswith(_PRODUCT)), ""):
                nodes[-1].product = product.partition("=")[2]
            elif colon and key == "Name" and cell and line[:1] == "N" and len(nodes) < MAX_NODES:
                nodes.append(Described(cell))
            elif colon and key in _SECTIONS and not cell:
                section = key
            elif section and colon and key in _GPUS and (count := to_int(cell, low=0)) is not None:
                nodes[-1].line, nodes[-1].text = number, whole
                if section == "Capacity":
                    nodes[-1].has = count
                else:
                    nodes[-1].gives = count
        parsed.records.extend(_short(blob, nodes))
        return parsed


def _short(blob: Blob, nodes: list[Described]) -> Iterator[Event]:
    """Nodes that give out fewer GPUs than they have, or somewhat fewer than another of their product."""
    most: dict[str, Described] = {}
    for node in nodes:
        if node.product and node.gives > most.get(node.product, node).gives - (node.product not in most):
            most[node.product] = node
    for node in nodes:
        best = most.get(node.product, node)
        name = node.name or "a node"
        if 0 <= node.gives < node.has:
            text = f"{name} gives out {node.gives} of {node.has} GPUs"
        elif 2 * node.gives > best.gives > node.gives:
            text = f"{name} gives out {node.gives} GPUs, {best.name} of the same product {best.gives}"
        else:
            continue
        yield report("gpu.count_low", text, blob, node.line, node.text)
