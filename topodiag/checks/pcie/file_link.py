"""PCI001 by a topology file: a device with fewer PCIe lanes than its peers in the file, a bridge that is far slower
than what stands below it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from topodiag.checks.shared.topo_file import FileCheck
from topodiag.hardware.catalog import pcie_nccl_gbs
from topodiag.model.finding import Cost, Finding, Outcome
from topodiag.model.nccl_tree import Element, NcclFile
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.nccl.topo.detect import GT_PER_S
from topodiag.nccl.topo.repair import NarrowFunction, narrow_functions
from topodiag.words.units import in_gbs, plural, spell_gbs

SURE_SIBLINGS = 3
"""Peers from which a single narrow one is a fault and no way to build: two may be of two risers."""

MAX_DIGITS = 3
THROTTLES = 0.25
"""Share of the rate of a device below which a bridge above it is told: a real switch shares its uplink by 2 or by 4."""


SlowBridge = tuple[Element, float, float]
"""A bridge, its rate, and the rate of the fastest GPU or NIC below it, GB/s to NCCL."""


class NarrowLinkInFile(FileCheck, id="PCI001"):
    """PCI001 by a topology file or dump: GPUs, NICs and switches above GPUs among those of their kind."""

    def observe_file(self, node: Node, file: NcclFile) -> Outcome:
        narrow, seen = narrow_functions(file.tree)
        throttled = [self._throttled(node, file.name, *bridge) for bridge in _slow_bridges(file.tree)]
        findings = [*throttled, *(self._narrow(node, file.name, function) for function in narrow)]
        if not findings and not seen:
            return self.unknown(node, "no link_width in the file")
        return self.any_of(node, findings, clean=f"{plural(seen, 'PCIe link')} of the file as wide as their peers")

    def _narrow(self, node: Node, name: str, function: NarrowFunction) -> Finding:
        """A function with fewer lanes than most of its kind."""
        certain = function.siblings >= SURE_SIBLINGS
        now, full = _gbs(function.pci, function.lanes), _gbs(function.pci, function.usual)
        rates = f", {in_gbs(now)} to NCCL" if now else ""
        return self.finding(
            self.where(
                node,
                gpus=[function.label] if function.is_gpu else [],
                nics=[] if function.is_gpu or not function.pci.having("nic") else [function.label],
                links=[function.pci.get("busid") or ""],
            ),
            "fewer lanes in a file",
            f"{function.label} has x{function.lanes} of PCIe in {name.rpartition('/')[2]}, its peers x{function.usual}",
            sure=certain,
            observed=f"x{function.lanes} at {function.pci.get('busid')}{rates}",
            expected=f"x{function.usual}, as its peers have" + (f": {in_gbs(full)}" if full else ""),
            cost=_cost(now, full),
            evidence=[Origin(name, function.pci.line or None, _quoted(function.pci))],
        )

    def _throttled(self, judged: Node, name: str, bridge: Element, gbs: float, below_gbs: float) -> Finding:
        busid = bridge.get("busid") or "?"
        return self.finding(
            self.where(judged, links=[busid]),
            self.advice("slow bridge", below_gbs=in_gbs(below_gbs)),
            f"bridge {busid} passes {in_gbs(gbs)} in {name.rpartition('/')[2]}, and a device below it takes"
            f" {below_gbs:g}",
            observed=f"{bridge.get('link_speed')} x{bridge.get('link_width')} at {busid}",
            cost=_cost(gbs, below_gbs),
            evidence=[Origin(name, bridge.line or None, _quoted(bridge))],
        )


def _slow_bridges(tree: Element) -> Iterator[SlowBridge]:
    """The topmost bridges whose link is far slower than that of a GPU or NIC below them."""
    cpus = [element for element in tree.walk() if element.tag == "cpu"]
    return chain.from_iterable(_slow_below(child) for cpu in cpus for child in cpu.having("pci"))


def _slow_below(pci: Element) -> Iterator[SlowBridge]:
    below = [rate for node in pci.walk() if node is not pci and _is_device(node) and (rate := _gbs(node)) is not None]
    own = _gbs(pci)
    if below and own is not None and own < THROTTLES * max(below):
        yield pci, own, max(below)
    else:
        yield from chain.from_iterable(map(_slow_below, pci.having("pci")))


def _is_device(element: Element) -> bool:
    return element.tag == "pci" and bool(element.having("gpu") or element.having("nic"))


def _quoted(pci: Element) -> str:
    return f'<pci busid="{pci.get("busid")}" link_speed="{pci.get("link_speed")}" link_width="{pci.get("link_width")}">'


def _gbs(pci: Element, lanes: int | None = None) -> float | None:
    """NCCL's rate of a function's link, GB/s; `lanes` in place of its own. None where speed or width is unknown."""
    if lanes is None:
        width = pci.get("link_width") or ""
        lanes = int(width) if width.isdecimal() and len(width) <= MAX_DIGITS else 0
    words = (pci.get("link_speed") or "").split()
    gen = next((gen for gen, text in GT_PER_S.items() if words[:1] in ([text], [text.removesuffix(".0")])), None)
    return pcie_nccl_gbs(gen, lanes) if gen else None


def _cost(now: float | None, full: float | None) -> Cost:
    if not now or not full:
        return Cost(text="the speed of the link is unknown: the loss is in proportion to its lanes")
    share = 1 - now / full
    text = f"{spell_gbs(now)} of {in_gbs(full)} left on this link; rings that pass it sink to its pace"
    return Cost(full - now, share, text)
