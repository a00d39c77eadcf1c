"""For NET006: a topology file that makes NCCL take modern GPUs' PCIe links for Gen3, so that its search stays low.

The search is sound by what it was given, so nothing collapses; a node without the file would find four times as much.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum
from typing import Any

from topodiag.checks.interface import JobCheck
from topodiag.checks.job.evidence import nvlink_gbs, pcie_gbs, ranks_on, said_by, settings_of
from topodiag.hardware.catalog import pcie_nccl_gbs
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.job import Job
from topodiag.model.nccl_view import Graph, NcclSystem
from topodiag.model.provenance import Origin
from topodiag.words.units import in_gbs

ASSUMED = (3, 16)
"""What NCCL takes for a link_speed that it does not know, and for a link_width of 0 (src/graph/topo.cc)."""

BUILT = (5, 16)
"""PCIe of every SXM product with as much NVLink as below: H100, H200, B200 (NVIDIA datasheets)."""

MODERN_GBS = 300.0
"""NVLink per GPU by NCCL's figures: 240 for A100, 370.8 for H100 and H200, 721.8 for B200."""

MUCH = 2.0
"""The NICs must offer this many times what the file leaves of PCIe: a slow network needs no more."""


@dataclass(frozen=True, slots=True)
class Narrow:
    """What the file says per GPU and what is built, in GB/s; the file's name, and where the log names it."""

    told_gbs: float
    built_gbs: float
    file: str
    origin: Origin | None


def narrow_file(job: Job, system: NcclSystem) -> Narrow | None:
    """The file that slows this node down; None where none was read, or its links are as built."""
    told, built = pcie_nccl_gbs(*ASSUMED), pcie_nccl_gbs(*BUILT)
    lanes, totals = pcie_gbs(system), nvlink_gbs(system)
    if told is None or built is None or not lanes or not totals or not system.of_kind("NVS"):
        return None
    nics = fsum(net.speed_gbs or 0.0 for net in system.of_kind("NET"))
    if max(lanes) > told or min(totals.values()) < MODERN_GBS or nics < MUCH * fsum(lanes):
        return None
    for _, text, where in said_by(job, "topo file"):
        if "Loading topology" in text:
            return Narrow(max(lanes), built, text.rpartition("file ")[2].strip() or "the topology file", where)
    for given in settings_of(job, "NCCL_TOPO_FILE").values():
        return Narrow(max(lanes), built, given[0][1].value, given[0][1].origin)
    return None


def judge_narrow(check: JobCheck[Any], job: Job, host: str, system: NcclSystem, ring: Graph) -> Iterator[Finding]:
    """The finding on one node of a job over several, if there is one."""
    narrow = narrow_file(job, system)
    if narrow is None:
        return
    reached, share = ring.channels * ring.bw_inter, 1 - narrow.told_gbs / narrow.built_gbs
    yield check.finding(
        Severity.WARNING,
        f"{host}: by {narrow.file} NCCL takes the GPUs' PCIe links for {in_gbs(narrow.told_gbs)}, built for"
        f" {narrow.built_gbs:g}",
        observed=f"PCI[{narrow.told_gbs:.1f}] at every GPU; rings of {ring.channels} x {in_gbs(ring.bw_inter)}",
        expected=f"PCI[{narrow.built_gbs:.1f}], as GPUs with such NVLinks have",
        fix=(
            f"`topodiag topo check {narrow.file}` on the node: which link_speed or link_width NCCL does not know",
            "unset NCCL_TOPO_FILE and compare the lines `Pattern 4`: without the file NCCL looks itself",
        ),
        nodes=(host,),
        ranks=ranks_on(job, [host]),
        cost=Cost(reached / (1 - share) - reached, share, f"{in_gbs(reached)} between nodes, as the file has it"),
        evidence=[narrow.origin, ring.origin, system.origin],
        confidence=Confidence.MEDIUM,
        settings=(("NCCL_TOPO_FILE", None),),
    )
