"""What the kernel says at boot of a device whose PCIe link is narrower than it: where nothing else shows the links."""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.checks.interface import NodeCheck
from topodiag.model.events import Event, Value
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.node import Node
from topodiag.words.fold import grouped
from topodiag.words.units import in_gbs

_OURS = frozenset({"mlx5_core", "mlx4_core", "bnxt_en", "ice", "ionic", "nvidia", "amdgpu", "efa"})
WHOLE = 16
"""Lanes of a device whose kind the line does not tell (`pci 0000:03:00.0`) from which on it is no disk."""


def narrow_at_boot(check: NodeCheck, node: Node) -> Iterator[Finding]:
    """A warning for each device whose last word is a link with fewer lanes than it has. A lower speed alone is how a
    board is built; so are fewer lanes where all devices alike have them, unless one had more at an earlier boot."""
    by_device = grouped((event.bus_id or "", event) for event in node.events if _is_limited(event))
    last = {bus_id: own[-1] for bus_id, own in by_device.items()}
    for bus_id, event in last.items():
        had = max(int(own.fields["count"]) for own in by_device[bus_id])
        alike = {place: other for place, other in last.items() if _kind(other) == _kind(event)}
        cards = {place.rpartition(".")[0] for place in alike}  # functions of one card share its link
        lanes, able = int(event.fields["count"]), int(event.fields["expected"])
        built_so = len(cards) > 1 and all(other.fields["count"] == lanes for other in alike.values())
        if lanes < able and (had > lanes or not built_so):
            yield _finding(check, node, event, had)


def _is_limited(event: Event) -> bool:
    fields = event.fields
    named = event.kind == "pcie-bandwidth" and "module" in fields and "expected" in fields
    return named and (fields["module"] in _OURS or int(fields["expected"]) >= WHOLE)


def _kind(event: Event) -> tuple[Value, Value]:
    """The driver of a device, and its own lanes."""
    return event.fields["module"], event.fields["expected"]


def _finding(check: NodeCheck, node: Node, event: Event, had: int) -> Finding:
    fields, bus_id = event.fields, event.bus_id or ""
    lanes, able = int(fields["count"]), int(fields["expected"])
    gbs, able_gbs = in_gbs(float(fields["size"]) / 8), in_gbs(float(fields["value"]) / 8)
    lost = had > lanes
    words = f", x{had} at an earlier boot" if lost else ""
    return check.finding(
        check.where(node, links=[bus_id]),
        "narrow at boot",
        f"{bus_id}: the kernel found a link of x{lanes} above a device of x{able}{words}",
        severity=Severity.ERROR if lost else Severity.WARNING,
        observed=f"{gbs} at {fields['address']}",
        expected=f"x{had if lost else able}: {able_gbs}",
        cost=Cost(text=f"the device is held to {gbs} in each direction"),
        evidence=[event.origin],
        confidence=Confidence.HIGH if lost else Confidence.LOW,
    )
