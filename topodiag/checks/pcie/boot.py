"""What the kernel says at boot of a device whose PCIe link is narrower than it: where nothing else shows the links."""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.checks.interface import NodeCheck
from topodiag.checks.shared.comparisons import grouped
from topodiag.lazy import dataclass
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.node import Node
from topodiag.model.system import KernelEvent
from topodiag.words.units import in_gbs

_OURS = frozenset({"mlx5_core", "mlx4_core", "bnxt_en", "ice", "ionic", "nvidia", "amdgpu", "efa"})
WHOLE = 16
"""Lanes of a device whose kind the line does not tell (`pci 0000:03:00.0`) from which on it is no disk."""


@dataclass(frozen=True, slots=True)
class Limited:
    """One such line: the device, the lanes of the narrowest link above it and of its own, Gb/s of both."""

    bus_id: str
    driver: str
    lanes: int
    able: int
    gbps: float
    able_gbps: float
    place: str
    event: KernelEvent


def narrow_at_boot(check: NodeCheck, node: Node) -> Iterator[Finding]:
    """A warning for each device whose last word is a link with fewer lanes than it has. A lower speed alone is how a
    board is built; so are fewer lanes where all devices alike have them, unless one had more at an earlier boot."""
    lines = [line for event in node.events if (line := _limited(event)) is not None]
    by_device = grouped((line.bus_id, line) for line in lines)
    last = [own[-1] for own in by_device.values()]
    for line in last:
        had = max(own.lanes for own in by_device[line.bus_id])
        alike = [other for other in last if (other.driver, other.able) == (line.driver, line.able)]
        cards = {other.bus_id.rpartition(".")[0] for other in alike}  # functions of one card share its link
        built_so = len(cards) > 1 and all(other.lanes == line.lanes for other in alike)
        if line.lanes < line.able and (had > line.lanes or not built_so):
            yield _finding(check, node, line, had)


def _limited(event: KernelEvent) -> Limited | None:
    fields = event.fields
    if event.kind != "pcie-bandwidth" or "module" not in fields or "expected" not in fields:
        return None
    driver, lanes, able = str(fields["module"]), int(fields["count"]), int(fields["expected"])
    if driver not in _OURS and able < WHOLE:
        return None
    gbps, able_gbps = float(fields["size"]), float(fields["value"])
    return Limited(event.bus_id or "", driver, lanes, able, gbps, able_gbps, str(fields["address"]), event)


def _finding(check: NodeCheck, node: Node, line: Limited, had: int) -> Finding:
    lost = had > line.lanes
    words = f", x{had} at an earlier boot" if lost else ""
    return check.finding(
        check.where(node, links=[line.bus_id]),
        "narrow at boot",
        f"{line.bus_id}: the kernel found a link of x{line.lanes} above a device of x{line.able}{words}",
        severity=Severity.ERROR if lost else Severity.WARNING,
        observed=f"{in_gbs(line.gbps / 8)} at {line.place}",
        expected=f"x{had if lost else line.able}: {in_gbs(line.able_gbps / 8)}",
        cost=Cost(text=f"the device is held to {in_gbs(line.gbps / 8)} in each direction"),
        evidence=[line.event.origin],
        confidence=Confidence.HIGH if lost else Confidence.LOW,
    )
