"""TOP003 by a topology file alone: links that it does not tell, a flattened tree, no NUMA node.

Whether the machine is a guest does not matter here: NCCL is given this file, or has written what it saw.
"""

from __future__ import annotations

from typing import Any

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.topo_file import first_host
from topodiag.hardware.catalog import pcie_nccl_gbs
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Cost, Coverage, Finding, Outcome, Severity
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.words.fold import plural
from topodiag.words.units import in_gbs

SPEEDS = (
    "2.5 GT/s", "5 GT/s", "8 GT/s", "16 GT/s", "32 GT/s",
    "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe",
)  # fmt: skip
"""What NCCL knows as a link's speed, by prefix (kvDictPciGen of src/graph/topo.cc)."""

MOST = 0.5
"""Of more than this share of the devices the link is not told: NCCL's figures are then its own invention."""

ASSUMED = (3, 16)
"""NCCL's default where link_speed is unknown and link_width is 0 (src/graph/topo.cc)."""


@dataclass(frozen=True, slots=True)
class GuessedTree:
    """A file that leaves NCCL to guess: its signs in words, the place of one device that shows it, and of how many."""

    file: NcclFile
    signs: tuple[str, ...]
    flat: bool
    dark: bool
    first: Element
    devices: int


def observe_guesses(check: NodeCheck[Any], node: Node, file: NcclFile) -> GuessedTree | Outcome:
    """Whether NCCL would guess most links, or all distances; else why the file says enough."""
    devices = _devices(file.tree)
    if not devices:
        return check.not_applicable(node, "the file names no place of a GPU or NIC")
    dark = [pci for pci, _ in devices if _is_dark(pci)]
    flat = not any(below for _, below in devices)
    homeless = all(cpu.get("numaid") in (None, "-1") for cpu in first_host(file.tree))
    if not (len(dark) > MOST * len(devices) or (flat and homeless)):
        return check.clean(
            node, "the PCI tree has its switches" if not flat else "link speeds and NUMA nodes are there"
        )
    signs = (
        (flat, f"no PCIe switch above {plural(len(devices), 'device')}"),
        (bool(dark), f"link speed or width unknown on {len(dark)} of {len(devices)}"),
        (homeless, "NUMA node -1"),
    )
    first = dark[0] if dark else devices[0][0]
    return GuessedTree(file, tuple(text for shown, text in signs if shown), flat, bool(dark), first, len(devices))


def tell_guesses(check: NodeCheck[Any], node: Node, observed: GuessedTree) -> Finding:
    name, first = observed.file.name, observed.first
    return check.finding(
        node,
        Severity.WARNING if node.nics else Severity.INFO,
        "the PCI tree in the file is " + ("flattened" if observed.flat else "without link speeds") + ": NCCL guesses",
        observed="; ".join(observed.signs),
        expected="switches, link_speed and link_width as on the machine, and the NUMA node of each processor",
        fix=(
            f"`topodiag emit nccl-topo {name} -o topo.xml` with --instance NAME, --host-capture FILE or"
            " --affinity FILE completes it",
            "or take the provider's file for exactly this instance type",
        ),
        gpus=[gpu.label for gpu in node.gpus],
        nics=[nic.name for nic in node.nics],
        cost=Cost(
            text=f"NCCL assumes {in_gbs(pcie_nccl_gbs(*ASSUMED) or 0.0)} (Gen3 x16) for each link that is not told"
        )
        if observed.dark
        else Cost(text="NCCL takes every NIC for equally far"),
        evidence=[Origin(name, first.line or None, f'<pci busid="{first.get("busid")}">')],
        coverage=Coverage(observed.devices, observed.devices, "GPUs and NICs in the file"),
        confidence=Confidence.MEDIUM,
    )


def _devices(tree: Element) -> list[tuple[Element, bool]]:
    """The `<pci>` of each GPU and NIC of the first host, and whether a switch stands above it."""
    found: list[tuple[Element, bool]] = []
    stack = [(child, False) for cpu in first_host(tree) for child in cpu.having("pci")]
    while stack:
        pci, below = stack.pop()
        if pci.having("gpu") or any(nic.having("net") for nic in pci.having("nic")):
            found.append((pci, below))
        stack += [(child, True) for child in pci.having("pci")]
    return sorted(found, key=lambda each: each[0].line)


def _is_dark(pci: Element) -> bool:
    speed, width = pci.get("link_speed"), (pci.get("link_width") or "").strip()
    return not (speed or "").startswith(SPEEDS) and width in ("", "0", "255")
