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

import re
from collections.abc import Iterator

from topodiag.evidence.interface import Blob, Parsed
from topodiag.evidence.sentences import Reporting, report
from topodiag.lazy import dataclass, regex
from topodiag.model.events import Event
from topodiag.model.topics import Topic

MAX_LINE = 2000
MAX_NODES = 2000
_MARK = regex(r"^[ \t]{0,8}(?:Allocatable|Capacity):[ \t]*\n(?:[ \t]{1,16}[^\s:]{1,80}:[^\n]{0,80}\n){0,20}?"
                   r"[ \t]{1,16}(?:nvidia|amd)\.com/gpu:", re.MULTILINE)  # fmt: skip
_NAME = regex(r"Name:\s{1,40}(\S{1,253})\s*\Z")
_PRODUCT = regex(r"\b(?:nvidia|amd)\.com/gpu\.product(?:-name)?=(\S{1,100})")
_SECTION = regex(r"\s{0,8}(Capacity|Allocatable):\s*\Z")
_GPUS = regex(r"\s{1,16}(?:nvidia|amd)\.com/gpu:\s{1,40}(\d{1,4})\b")


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

    kind = "kubectl-node"
    speaks_of = frozenset({Topic.SERVICES})
    quiet_is_news = True
    trust = 50
    a_piece = "Kubernetes says what a plug-in told it"

    def recognises(self, head: str) -> bool:
        return _MARK.search(head) is not None

    def parse(self, blob: Blob) -> Parsed[Event]:
        parsed: Parsed[Event] = Parsed()
        nodes, section = [Described("")], ""
        for number, whole in blob.lines():
            line = whole[:MAX_LINE]
            if (name := _NAME.match(line)) and len(nodes) < MAX_NODES:
                nodes.append(Described(name[1]))
            elif product := _PRODUCT.search(line):
                nodes[-1].product = product[1]
            elif begun := _SECTION.match(line):
                section = begun[1]
            elif gpus := _GPUS.match(line):
                nodes[-1].line, nodes[-1].text = number, whole
                if section == "Capacity":
                    nodes[-1].has = int(gpus[1])
                elif section == "Allocatable":
                    nodes[-1].gives = int(gpus[1])
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
