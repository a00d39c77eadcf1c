"""`kubectl describe node`: GPUs that a node has and gives out.

    Name:               aks-gpu-vmss000000
    Labels:             nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3
    Capacity:
      nvidia.com/gpu:     8
    Allocatable:
      nvidia.com/gpu:     7

A device plug-in gives out no GPU that it holds for unhealthy. Format: kubectl 1.20 to 1.34 (describe.go).

NVLink domains as NVIDIA's IMEX daemon and its DRA driver for Kubernetes tell of them.

    {"nodes": {"0": {"status": "READY", ...}, "1": {"status": "UNAVAILABLE", ...}}, "status": "DOWN"}
    I0902 09:57:32.838156       1 computedomain.go:200] numNodes: 2, nodes seen: 1

The first is `nvidia-imex-ctl -N -j`, the second the log of the DRA driver's own daemon, which waits until it has seen
all nodes of the domain. SOURCE: k8s-dra-driver-gpu, cmd/compute-domain-daemon/computedomain.go.
"""

from __future__ import annotations

from dataclasses import replace

from topodiag.evidence.interface import to_int
from topodiag.evidence.json_values import line_of, load, member
from topodiag.evidence.page import Line, OfPage, Page
from topodiag.model import tables
from topodiag.model.events import Trust

MAX_NODES = 2000
_SECTIONS = {"Capacity": tables.CAPACITY, "Allocatable": tables.ALLOCATABLE}
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
_PRODUCT = tuple(f"{maker}.com/gpu.product{name}=" for maker in ("nvidia", "amd") for name in ("", "-name"))


class KubectlNode(OfPage):
    """Nodes of Kubernetes by name, with their product and the GPUs that they have and give out."""

    def read_page(self, page: Page) -> None:
        rows, section = [tables.Row({}, page.blob.origin(), "a node")], ""
        for line in page.cut_lines():
            row = rows[-1]
            key, colon, cell = (part.strip() for part in line.text.partition(":"))
            if product := _product(line.text):
                rows[-1] = replace(row, cells={**row.cells, tables.PRODUCT: product})
            elif colon and key == "Name" and cell and line.text[:1] == "N" and len(rows) < MAX_NODES:
                rows.append(tables.Row({}, line.origin, cell))
            elif colon and key in _SECTIONS and not cell:
                section = _SECTIONS[key]
            elif section and colon and key in _GPUS and (count := to_int(cell, low=0)) is not None:
                rows[-1] = tables.Row({**row.cells, section: str(count)}, line.origin, row.label)
        known = tuple(row for row in rows if tables.ALLOCATABLE in row.cells)
        page.draft.tables.append(tables.Table(known))
        page.parsed.records = [row.origin.line or 0 for row in known]


def _product(line: str) -> str:
    """The product that a label names, "" in another line."""
    labels = line.split() if ".com/gpu.product" in line else ()
    return next((label.partition("=")[2] for label in labels if label.startswith(_PRODUCT)), "")


_IMEX_WORDS = {"DEGRADED": "degraded", "DOWN": "down"}
_SEEN = ", nodes seen: "


class ComputeDomain(OfPage):
    """Nodes of an NVLink domain that are not ready."""

    def read_page(self, page: Page) -> None:
        _read_imex(page)
        _read_waits(page)


def _read_imex(page: Page) -> None:
    """The state of an IMEX domain, and the nodes that are not ready."""
    text = page.blob.text
    if not "".join(text[:200].split()).startswith('{"nodes":') or '"connections"' not in text:
        return
    document, _ = load(page.blob)
    nodes, word = member(document, "nodes"), _IMEX_WORDS.get(str(member(document, "status")))
    if word is not None and isinstance(nodes, dict):
        out = [
            str(member(node, "host") or name)[:60]
            for name, node in nodes.items()
            if member(node, "status") not in ("READY", None)
        ]
        says = f"the IMEX domain is {word}" + (f": {', '.join(out[:4])} not ready" if out else "")
        Line(page, line_of(text, "status"), says).report("nvlink.imex", says, Trust.PERSON)


def _read_waits(page: Page) -> None:
    """The nodes that a domain still waits for at the end of its log: each start begins with few."""
    for line in [line for line in page.cut_lines() if _SEEN in line.text][-1:]:
        before, _, after = line.text.partition(_SEEN)
        wanted, came = to_int(before.rpartition("numNodes: ")[2]), to_int(after)
        if wanted is not None and came is not None and came < wanted:
            says = f"the compute domain waits for {wanted} nodes, and {came} came: its channels are not given out"
            line.report("nvlink.imex", says, Trust.PERSON)
