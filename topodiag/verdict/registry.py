"""The rules of the verdict: the entries of rules.toml, in their order, each with its conditions."""

from __future__ import annotations

from collections.abc import Iterator

from topodiag.lazy import regex
from topodiag.model.finding import Finding
from topodiag.model.provenance import Origin
from topodiag.verdict import conditions
from topodiag.verdict.interface import Reach, Rule
from topodiag.verdict.scene import Scene
from topodiag.words.own_data import own_data


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
