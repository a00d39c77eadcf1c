"""Links of an InfiniBand fabric that run below what both their ends can do (NIC002)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from topodiag.checks.interface import NodeCheck
from topodiag.lazy import regex
from topodiag.model.devices import FabricPort
from topodiag.model.finding import Confidence, Cost, Finding, Severity
from topodiag.model.node import Node
from topodiag.words.fold import few, plural

LINKS_NAMED = 8
MIN_SIBLINGS = 3
"""Links to adapters of one name from which on one that differs is odd."""
MOST_ODD = 3
"""One in so many may differ: more are hosts of another generation."""
_ADAPTER = regex(r" ((?:HCA-\d{1,3}|[a-z][a-z0-9]{1,20}_\w{1,20})) port \d{1,4}\Z")
_RUNS = regex(r"(\d{1,2})x([A-Z]{2,4}\d{0,3})")
_LANE = {"SDR": 2.5, "DDR": 5.0, "QDR": 10.0, "FDR10": 10.3125, "FDR": 14.0625, "EDR": 25.0, "HDR": 50.0, "NDR": 100.0,
         "XDR": 200.0}  # fmt: skip
"""Gb/s of a lane (InfiniBand Trade Association)."""


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


def odd_links(check: NodeCheck[Any], node: Node, links: Sequence[FabricPort]) -> list[Finding]:
    """Links to adapters of one name below one switch, of which a few run slower than all others."""
    alike: dict[tuple[str, str], list[tuple[float, FabricPort]]] = defaultdict(list)
    for port in links:
        named, rate = _ADAPTER.search(port.peer.get("")), _RUNS.fullmatch(port.runs.get(""))
        if named is not None and rate is not None and rate[2] in _LANE:
            alike[port.node, named[1]].append((int(rate[1]) * _LANE[rate[2]], port))
    found = []
    for (_, adapter), ports in alike.items():
        best = max(gbps for gbps, _ in ports)
        bad = [port for gbps, port in ports if gbps < best]
        if len(ports) < MIN_SIBLINGS or not bad or len(bad) * MOST_ODD > len(ports):
            continue
        usual = next(port.runs.get("") for gbps, port in ports if gbps == best)
        runs = few(list(dict.fromkeys(port.runs.get("") for port in bad)))
        ends = few([f"{port.label} to {port.peer.value}" for port in bad], LINKS_NAMED, "; ")
        found.append(
            check.finding(
                node,
                Severity.WARNING,
                f"{ends}: {'runs' if len(bad) == 1 else 'run'} at {runs}, {len(ports) - len(bad)} others to {adapter}"
                f" at {usual}",
                observed=f"{runs} on {plural(len(bad), 'link')}",
                expected=f"{usual}, as the others of that switch",
                fix=(
                    "`iblinkinfo` says what both ends of that link could do; then reseat or swap its cable",
                    "an adapter of an older generation runs so by itself: `ibstat` on that host",
                ),
                cost=Cost(text="what goes over this link is held to its pace, and every ring over it"),
                evidence=[port.runs for port in bad[:LINKS_NAMED]],
                confidence=Confidence.MEDIUM,
            )
        )
    return found


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
