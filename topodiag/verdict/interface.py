"""What a rule of the verdict is: one mechanism by which one fault leads to others. Rules relate findings; they read no
file and judge no device.

A rule is one entry of rules.toml. A condition that ids do not show is a function in the module of its family.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum

from topodiag.lazy import dataclass, regex
from topodiag.model.finding import Finding
from topodiag.model.provenance import Origin
from topodiag.verdict import conditions
from topodiag.verdict.scene import Scene, error_is
from topodiag.words.own_data import own_data

Condition = Callable[[Finding, Finding, Scene], bool]
"""Whether a cause can lead to the other finding in this case, beyond ids, reach and the first error. Never raises."""

Contradiction = Callable[[Finding, Scene], tuple[Origin, ...]]
"""Evidence of this case that speaks against a cause. A source that clears a part counts as much as one that accuses it.
Never raises."""


class Reach(Enum):
    """How far the effects of a fault go."""

    NODE = "node"
    """What is found on the same node. Where one of both findings names no node: what is found in the same job."""
    JOB = "job"
    """All that is found in a job which runs on the node of the fault."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One mechanism: an entry of rules.toml, whose head explains each key, with its conditions."""

    name: str
    mechanism: str
    causes: tuple[str, ...]
    leads_to: tuple[str, ...]
    because: str
    reach: Reach
    errors: tuple[str, ...]
    cause_says: re.Pattern[str] | None
    other_says: Mapping[str, re.Pattern[str]]
    notes: bool
    in_part: bool
    holds: Condition
    contradicted_by: Contradiction

    def explains(self, cause: Finding, other: Finding, scene: Scene) -> str:
        """How `cause` leads to `other` in this case; "" where it does not: another object, another job, a condition
        that is not met, or evidence against the cause. Never raises."""
        near = scene.same_node(cause, other) if self.reach is Reach.NODE else scene.same_job(cause, other)
        if not near or not self._fits(cause, other, scene) or not self.holds(cause, other, scene):
            return ""
        return "" if self.contradicted_by(cause, scene) else scene.dialect(other).say(self.because)

    def _fits(self, cause: Finding, other: Finding, scene: Scene) -> bool:
        """Whether what both say, and the kind of a job's first error, are such as the rule asks for."""
        for wanted, finding in ((self.cause_says, cause), (self.other_says.get(other.id), other)):
            if wanted is not None and wanted.search(f"{finding.message} {finding.observed}") is None:
                return False
        return not self.errors or other.id != "JOB005" or error_is(other, scene, *self.errors)


def _always(_: Finding, __: Finding, ___: Scene) -> bool:
    return True


def _by_nothing(_: Finding, __: Scene) -> tuple[Origin, ...]:
    return ()


def _rules() -> Iterator[Rule]:
    for entry in own_data("verdict/rules")["rule"]:
        yield Rule(
            entry["name"],
            entry["mechanism"],
            tuple(entry["causes"]),
            tuple(entry["leads_to"]) or conditions.EFFECTS,
            entry["because"],
            Reach(entry.get("reach", "job")),
            tuple(entry.get("errors", ())),
            regex(entry["cause_says"]) if "cause_says" in entry else None,
            {check_id: regex(words) for check_id, words in entry.get("other_says", {}).items()},
            entry.get("notes", False),
            entry.get("in_part", False),
            getattr(conditions, entry["holds"]) if "holds" in entry else _always,
            getattr(conditions, entry["contradicted_by"]) if "contradicted_by" in entry else _by_nothing,
        )


RULES = tuple(_rules())

Relations = tuple[tuple[tuple[str, ...], str], ...]
"""Ids of checks, and how one leads to the other."""


def relations_of(check_id: str) -> tuple[Relations, Relations]:
    """What the fault of a check can lead to, and what can explain it: ids and the reason of each rule."""
    leads_to = tuple((rule.leads_to, rule.because) for rule in RULES if check_id in rule.causes)
    explained_by = tuple((rule.causes, rule.because) for rule in RULES if check_id in rule.leads_to)
    return leads_to, explained_by
