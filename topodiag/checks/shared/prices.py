"""What a part that is missing, narrow or slow costs in bandwidth: one price for a node's own checks and for a fleet.

All in GB/s of one direction. A function of what is there and what should be; who says what should be is the caller's.
"""

from __future__ import annotations

GBPS_PER_GBS = 8.0
"""Gigabits per gigabyte: NCCL assumes a 400 Gb/s port as 50 GB/s (src/graph/topo.cc, v2.30)."""


def usable_gbs(full: float, needed: float | None) -> float:
    """What of a whole PCIe link can be used, where those behind it need no more than `needed`."""
    return min(full, needed) if needed is not None else full


def narrow_link(now: float, full: float, needed: float | None) -> float:
    """A PCIe link that gives `now` in place of `full`."""
    return max(0.0, usable_gbs(full, needed) - now)


def missing_nvlinks(active: int, want: int, gbs_per_link: float) -> float:
    """A GPU with fewer NVLinks: every channel passes the narrowest GPU."""
    return (want - active) * gbs_per_link


def slow_nvlinks(rate: float, want: float, links: int, gbs_per_link: float) -> float:
    """NVLinks of a GPU at a lower line rate, in proportion to what NCCL assumes of each."""
    return (1 - rate / want) * gbs_per_link * links


def slow_ports(now_gbps: float, want_gbps: float, ports: int) -> float:
    """Ports of a node that run slower; one that is down, or a card that is missing, runs at nothing."""
    return (want_gbps - now_gbps) * ports / GBPS_PER_GBS
