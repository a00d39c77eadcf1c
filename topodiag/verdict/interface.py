"""What a rule of the verdict is: one mechanism by which one fault leads to others. Rules relate findings; they read no
file and judge no device.

A rule is a class in a file of its family, and one line in `registry.py`. Its docstring is its page: mechanism, traces,
what contradicts it, how to settle it.
"""

from __future__ import annotations

from abc import ABC
from enum import Enum
from typing import ClassVar

from topodiag.model.finding import Finding
from topodiag.model.provenance import Origin
from topodiag.verdict.scene import Scene


class Reach(Enum):
    """How far the effects of a fault go."""

    NODE = "node"
    """What is found on the same node. Where one of both findings names no node: what is found in the same job."""
    JOB = "job"
    """All that is found in a job which runs on the node of the fault."""


class Rule(ABC):
    """One mechanism. `causes` are the ids of the checks that find the fault, `leads_to` the ids of what may follow,
    `because` is how the one leads to the other, a sentence without its full stop."""

    causes: ClassVar[tuple[str, ...]]
    leads_to: ClassVar[tuple[str, ...]]
    because: ClassVar[str]
    reach: ClassVar[Reach] = Reach.JOB
    in_part: ClassVar[bool] = False
    """Whether the fault takes a part of what is lost, and is never the explanation of the whole: it stands beside what
    explains it."""

    def holds(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        """Whether the conditions of this mechanism are met, beyond ids and reach. Never raises."""
        return True

    def contradicted_by(self, cause: Finding, scene: Scene) -> tuple[Origin, ...]:
        """Evidence of this case that speaks against the cause. A source that clears a part counts as much as one that
        accuses it. Never raises."""
        return ()

    def explains(self, cause: Finding, other: Finding, scene: Scene) -> str:
        """How `cause` leads to `other` in this case; "" where it does not: another object, another job, a condition
        that is not met, or evidence against the cause. Never raises."""
        near = scene.same_node(cause, other) if self.reach is Reach.NODE else scene.same_job(cause, other)
        if not near or not self.holds(cause, other, scene) or self.contradicted_by(cause, scene):
            return ""
        return scene.dialect(other).say(self.because)
