"""What a rule of the verdict is: one mechanism by which one fault leads to others. Rules relate findings; they read no
file and judge no device.

A rule is one entry of rules.toml. A condition that ids do not show is a function in the module of its family.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from enum import Enum

import msgspec

from topodiag.lazy import dataclass
from topodiag.model.finding import Finding
from topodiag.model.provenance import Origin
from topodiag.verdict import conditions
from topodiag.verdict.scene import Scene, error_is
from topodiag.words.own_data import own_data


class Reach(Enum):
    """How far the effects of a fault go."""

    NODE = "node"
    """What is found on the same node. Where one of both findings names no node: what is found in the same job."""
    JOB = "job"
    """All that is found in a job which runs on the node of the fault."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One mechanism: an entry of rules.toml, whose head explains each key, with its conditions."""

    causes: tuple[str, ...]
    leads_to: tuple[str, ...]
    because: str
    reach: Reach = Reach.JOB
    errors: tuple[str, ...] = ()
    cause_says: str = ""
    other_says: Mapping[str, str] = field(default_factory=dict)
    notes: bool = False
    in_part: bool = False
    holds: str = ""
    contradicted_by: str = ""

    def explains(self, cause: Finding, other: Finding, scene: Scene) -> str:
        """How `cause` leads to `other` in this case; "" where it does not: another object, another job, a condition
        that is not met, or evidence against the cause. Never raises."""
        near = scene.same_node(cause, other) if self.reach is Reach.NODE else scene.same_job(cause, other)
        if not near or not self._fits(cause, other, scene):
            return ""
        holds = not self.holds or getattr(conditions, self.holds)(cause, other, scene)
        return scene.dialect(other).say(self.because) if holds and not self.against(cause, scene) else ""

    def against(self, cause: Finding, scene: Scene) -> tuple[Origin, ...]:
        """Evidence of this case that speaks against a cause. A source that clears a part counts as much as one that
        accuses it. Never raises."""
        lines: tuple[Origin, ...] = ()
        return getattr(conditions, self.contradicted_by)(cause, scene) if self.contradicted_by else lines

    def _fits(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        """Whether what both say, and the kind of a job's first error, are such as the rule asks for."""
        for wanted, finding in ((self.cause_says, cause), (self.other_says.get(other.id), other)):
            if wanted and re.search(wanted, f"{finding.message} {finding.observed}") is None:
                return False
        return not self.errors or other.id != "JOB005" or error_is(other, scene, *self.errors)


_ENTRIES = msgspec.convert(own_data("verdict/rules")["rule"], tuple[Rule, ...])
RULES = tuple(rule if rule.leads_to else replace(rule, leads_to=conditions.EFFECTS) for rule in _ENTRIES)

Relations = tuple[tuple[tuple[str, ...], str], ...]
"""Ids of checks, and how one leads to the other."""


def relations_of(check_id: str) -> tuple[Relations, Relations]:
    """What the fault of a check can lead to, and what can explain it: ids and the reason of each rule."""
    leads_to = tuple((rule.leads_to, rule.because) for rule in RULES if check_id in rule.causes)
    explained_by = tuple((rule.causes, rule.because) for rule in RULES if check_id in rule.leads_to)
    return leads_to, explained_by
