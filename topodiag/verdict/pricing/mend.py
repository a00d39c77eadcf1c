"""What a mend is: how one kind of cause changes a machine, so that the machine without it can be set beside.

Machines are built without any cause; a mend puts its cause in. `alone` is then the machine with all causes but one, and
`predicted` that with all. A mend takes what a source shows of the very part, and says why there is no number where no
source shows it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from topodiag.model.finding import Finding
from topodiag.verdict.pricing.ground import HostGround, Machine


class CannotError(ValueError):
    """Why a cause cannot be put into a machine: no source shows how much it takes. A sentence."""


class Mend(ABC):
    """One kind of mend."""

    least: ClassVar[float] = 1.0
    """Share of NCCL's figure down to which a run may fall with this cause alone, where that figure is an upper bound:
    NCCL knows links, and not what host memory or a TCP stack make of them."""
    unreckoned: ClassVar[str] = ""
    """What takes that share, in words that go on after "NCCL's model leaves out ..."."""

    @abstractmethod
    def inflict(self, machine: Machine, host: HostGround, finding: Finding) -> Machine:
        """The machine of a host with this cause in force; `machine` itself where it changes nothing there. Raises
        CannotError."""

    def claimed_settings(self, finding: Finding) -> frozenset[str]:
        """NCCL_ variables that are the cause: a machine as built is without them."""
        return frozenset()

    def claims_file(self, finding: Finding) -> bool:
        """Whether a topology file is the cause: a machine as built is without it."""
        return False

    def claims_nics(self, finding: Finding) -> bool:
        """Whether the nodes of the finding lack NICs: they are built as their peers are."""
        return False
