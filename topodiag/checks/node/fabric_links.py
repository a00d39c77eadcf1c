"""Links of an InfiniBand fabric that run below what both their ends can do (NIC002)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from topodiag.checks.interface import NodeCheck
from topodiag.model.devices import FabricPort
from topodiag.model.finding import Cost, Finding, Severity
from topodiag.model.node import Node
from topodiag.words.fold import plural

LINKS_NAMED = 8


def slow_links(check: NodeCheck[Any], node: Node, links: Sequence[FabricPort]) -> list[Finding]:
    """One finding for links that run alike below the same ability. The tool shows each from both of its ends."""
    once: dict[frozenset[str], FabricPort] = {}
    for port in links:
        if port.able.value:
            once.setdefault(frozenset((port.label, port.peer.get(""))), port)
    alike: dict[tuple[str, str], list[FabricPort]] = defaultdict(list)
    for port in once.values():
        alike[port.runs.get(""), port.able.get("")].append(port)
    return [_finding(check, node, runs, able, bad) for (runs, able), bad in alike.items()]


def _finding(check: NodeCheck[Any], node: Node, runs: str, able: str, bad: Sequence[FabricPort]) -> Finding:
    ends = [f"{port.label} to {port.peer.value}" for port in bad[:LINKS_NAMED]]
    more = f", and {len(bad) - LINKS_NAMED} more" if len(bad) > LINKS_NAMED else ""
    return check.finding(
        node,
        Severity.ERROR,
        f"{'; '.join(ends)}{more}: {'runs' if len(bad) == 1 else 'run'} at {runs}, both ends can do {able}",
        observed=f"{runs} on {plural(len(bad), 'link')}",
        expected=f"{able}: both ends have it enabled",
        fix=(
            "Reseat or swap the cable or transceiver: a bad lane or an older cable makes the port train slower",
            "Reset the port while nothing uses it (`ibportstate LID PORT reset`), and look again",
        ),
        cost=Cost(text="what goes over this link is held to its pace, and every ring over it"),
        evidence=[port.able for port in bad[:LINKS_NAMED]],
    )
