"""What NCCL makes of a topology that was changed, and of a topology file before it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from topodiag.lazy import dataclass
from topodiag.model.finding import Finding
from topodiag.model.provenance import NotObserved
from topodiag.nccl.prediction import Prediction
from topodiag.nccl.topo.changes import Change
from topodiag.nccl.topo.compare import Difference
from topodiag.nccl.topo.repair import Repair
from topodiag.nccl.topo.worse import Comparison, differs


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A prediction before and after some changes, with the choice for an all-reduce of `size` bytes."""

    size: int
    changes: tuple[Change, ...]
    before: Prediction
    after: Prediction
    names: Mapping[str, str] = field(default_factory=dict)
    """The devices behind NCCL's labels."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Two machines: their differences, what NCCL finds on either, and what could not be compared."""

    differences: tuple[Difference, ...]
    predictions: tuple[Prediction, Prediction]
    not_compared: tuple[NotObserved, ...] = ()


@dataclass(frozen=True, slots=True)
class TopoFile:
    """A topology file ready to be written: its text, what was done for it, and what NCCL makes of it."""

    text: str
    version: str
    done: tuple[str, ...]
    repairs: tuple[Repair, ...]
    comparisons: tuple[Comparison, ...]
    worse: tuple[str, ...]
    """In what the file would make things worse than they are; () is the only state in which it is written unforced."""
    left: tuple[Finding, ...] = ()
    """What the checks of topology files still find in it."""
    flat: bool = False
    """Of a guest whose PCI tree is its hypervisor's invention, and nothing completed it."""
    library: str = "NCCL"

    @property
    def changes(self) -> bool:
        """Whether NCCL decides anything otherwise with the file than without it."""
        return any(differs(comparison) for comparison in self.comparisons)
