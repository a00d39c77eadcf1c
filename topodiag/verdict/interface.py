"""What a rule of the verdict is: one mechanism by which one fault leads to others. Rules relate findings; they read no
file and judge no device.

A rule is a class in a file of its family. Its docstring is the page that `topodiag explain` prints: mechanism, traces,
what contradicts it, how to settle it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import ClassVar

from topodiag.model.case import Case
from topodiag.model.finding import Finding
from topodiag.model.provenance import Origin


class CauseStatus(Enum):
    """How well a cause is founded."""

    ESTABLISHED = "established"
    """There is direct evidence of it."""
    SUPPORTED = "supported"
    """The evidence fits it, and others remain possible."""
    HYPOTHESIS = "hypothesis"
    UNKNOWN = "unknown"


class Rule(ABC):
    """One mechanism: `cause` is the id of the check that finds the fault, `leads_to` the ids of what may follow."""

    cause: ClassVar[str]
    leads_to: ClassVar[tuple[str, ...]]

    @abstractmethod
    def explains(self, cause: Finding, other: Finding, case: Case) -> str:
        """How `cause` leads to `other` in this case, in one sentence; "" where it does not: another object, another
        time, or a condition that is not met. Never raises."""

    @abstractmethod
    def contradicted_by(self, cause: Finding, case: Case) -> tuple[Origin, ...]:
        """Evidence of this case that speaks against the cause. A source that clears a part counts as much as one that
        accuses it. Never raises."""
