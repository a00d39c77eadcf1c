"""What a difference between peers can cost: by family and key of the fact, with the reason and the remedy."""

from __future__ import annotations

from topodiag.lazy import dataclass
from topodiag.model.finding import Severity
from topodiag.model.fleet import How, Outlier
from topodiag.words.own_data import own_data

MANY_ENOUGH = 5
"""Peers below which a difference is a hint: two against one is no majority that anybody should act on."""


@dataclass(frozen=True, slots=True)
class Weight:
    """How much a difference matters, why, and what to do."""

    severity: Severity
    why: str
    fix: str


_TABLE = own_data("checks/fleet/weights")
_WEIGHTS = [(Weight(Severity[e["severity"].upper()], e["why"], e["fix"]), e) for e in _TABLE["weight"]]
_BY_NAME = {entry["name"]: weight for weight, entry in _WEIGHTS if "name" in entry}
_BY_FAMILY = {family: weight for weight, entry in _WEIGHTS for family in entry.get("families", ())}
_BY_KEY = {
    (family, key): weight
    for weight, entry in _WEIGHTS
    for family, keys in entry.get("keys", {}).items()
    for key in keys
}


def weight_of(family: str, key: str) -> Weight:
    """What a difference in a fact can cost."""
    if (family, key) in _BY_KEY:
        return _BY_KEY[family, key]
    if family == "kernel command line":
        return _BY_NAME["kernel" if _has_word("kernel", key) else "note"]
    return _BY_FAMILY.get(family, _BY_NAME["note"])


def weigh(outlier: Outlier) -> Weight:
    """The same for an outlier: a counter counts as what it counts."""
    if outlier.how is How.RATE:
        return _BY_NAME["mild rises" if _has_word("mild", outlier.key) else "rises"]
    return weight_of(outlier.family, outlier.key)


def _has_word(kind: str, key: str) -> bool:
    return any(word in key.lower() for word in _TABLE["words"][kind])


def matters(outlier: Outlier) -> bool:
    """Whether the difference can cost bandwidth or stability, and enough peers say that it is one."""
    return outlier.total >= MANY_ENOUGH and weigh(outlier).severity >= Severity.WARNING
