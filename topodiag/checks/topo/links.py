"""PCI001 by a topology file: a device with fewer PCIe lanes than its siblings in the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from topodiag.checks.topo.interface import FileCheck
from topodiag.hardware.catalog import pcie_nccl_gbs
from topodiag.model.finding import Confidence, Cost, Finding, Outcome, Severity
from topodiag.model.nccl_tree import NcclFile
from topodiag.model.node import Node
from topodiag.model.provenance import Origin
from topodiag.nccl.topo.detect import GT_PER_S
from topodiag.nccl.topo.repair import NarrowFunction, narrow_functions
from topodiag.words.fold import plural

SURE_SIBLINGS = 3
"""Siblings from which a single narrow one is a fault and no way to build: two may be of two risers."""


@dataclass(frozen=True, slots=True)
class NarrowInFile:
    """Functions of a file with fewer lanes than most of their kind."""

    file: NcclFile
    narrow: tuple[NarrowFunction, ...]


class NarrowLinkInFile(FileCheck[NarrowInFile]):
    """PCI001 by a topology file or dump: GPUs, NICs and switches above GPUs among those of their kind."""

    id = "PCI001"
    title = "a GPU or NIC has fewer PCIe lanes than its siblings, in a topology file"

    def observe_file(self, node: Node, file: NcclFile) -> NarrowInFile | Outcome:
        narrow, seen = narrow_functions(file.tree)
        if narrow:
            return NarrowInFile(file, narrow)
        if not seen:
            return self.unknown(node, "no link_width in the file")
        return self.clean(node, f"{plural(seen, 'PCIe link')} of the file as wide as their siblings")

    def tell(self, judged: Node, observed: NarrowInFile) -> Iterator[Finding]:
        name = observed.file.name
        for each in observed.narrow:
            sure = each.siblings >= SURE_SIBLINGS
            now, full = _gbs(each, each.lanes), _gbs(each, each.usual)
            rates = f", {now:g} GB/s to NCCL" if now else ""
            yield self.finding(
                judged,
                Severity.ERROR if sure else Severity.WARNING,
                f"{each.label} has x{each.lanes} of PCIe in {name.rpartition('/')[2]}, its siblings x{each.usual}",
                observed=f"x{each.lanes} at {each.pci.get('busid')}{rates}",
                expected=f"x{each.usual}, as its siblings have" + (f": {full:g} GB/s" if full else ""),
                fix=(
                    "look at the machine itself: sudo lspci -vv -s BUS_ID | grep -E 'LnkCap:|LnkSta:'",
                    "lanes are missing there: reseat card, riser or cable, then write the file anew",
                    "they are all there: the file is of another machine or was edited; take it out of NCCL_TOPO_FILE",
                ),
                gpus=[each.label] if each.is_gpu else [],
                nics=[] if each.is_gpu or not each.pci.having("nic") else [each.label],
                links=[each.pci.get("busid") or ""],
                cost=_cost(now, full),
                evidence=[Origin(name, each.pci.line or None, _quoted(each))],
                confidence=Confidence.HIGH if sure else Confidence.MEDIUM,
            )


def _quoted(each: NarrowFunction) -> str:
    pci = each.pci
    return f'<pci busid="{pci.get("busid")}" link_speed="{pci.get("link_speed")}" link_width="{pci.get("link_width")}">'


def _gbs(each: NarrowFunction, lanes: int) -> float | None:
    words = (each.pci.get("link_speed") or "").split()
    gen = next((gen for gen, text in GT_PER_S.items() if words[:1] in ([text], [text.removesuffix(".0")])), None)
    return pcie_nccl_gbs(gen, lanes) if gen else None


def _cost(now: float | None, full: float | None) -> Cost:
    if not now or not full:
        return Cost(text="the speed of the link is unknown: the loss is in proportion to its lanes")
    share = 1 - now / full
    return Cost(full - now, share, f"{now:g} of {full:g} GB/s left on this link; rings that pass it sink to its pace")
