"""What a place could carry, what it trained to and what is used of it, by the price of the finding that names it."""

from __future__ import annotations

from topodiag.lazy import dataclass
from topodiag.model.finding import Finding

_HARDWARE = ("GPU", "NVL", "PCI", "NIC")
"""Families of checks that find a part below what it is built for: it is lost before NCCL decides anything."""
_SETTINGS = frozenset({"NVL004", "PCI004", "NIC004"})
"""Of these families, checks that find how a sound part is set up or used."""


@dataclass(frozen=True, slots=True)
class Levels:
    """GB/s in one direction; `used` None where the evidence shows no use of the place."""

    intended: float
    negotiated: float
    used: float | None


def is_hardware(check: str) -> bool:
    """Whether what a check finds lies between intended and negotiated; else it lies between negotiated and used."""
    return check.startswith(_HARDWARE) and check not in _SETTINGS


def levels_of(finding: Finding) -> Levels | None:
    """The levels of the narrowest place of a finding; None where its cost has no figure."""
    lost, share = finding.cost.gbs_lost, finding.cost.share
    if not lost or not share or not 0 < share <= 1:
        return None
    whole = lost / share
    left = max(whole - lost, 0.0)
    return Levels(whole, left, None) if is_hardware(finding.id) else Levels(whole, whole, left)
