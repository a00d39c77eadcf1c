"""What costly values of settings cost, on nodes and in jobs: the rules of rules.toml, and how NCCL reads values.

When a rule holds on a machine, `machines.py` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, Protocol

from topodiag.checks.interface import Advice, advice_of
from topodiag.lazy import dataclass
from topodiag.model.finding import Severity
from topodiag.model.nccl_enums import PathType
from topodiag.words.own_data import own_data

FEW_CHANNELS = 8
"""Fewer channels than this cannot carry one NVSwitch GPU's links: NCCL opens 16 to 32 there (src/graph/search.cc)."""

DEFAULT_BUFFSIZE = 4 << 20
"""NCCL_BUFFSIZE of the Simple protocol, bytes (DEFAULT_BUFFSIZE, src/init.cc v2.30)."""


class Machine(Protocol):
    """What rules ask: a property or method for each condition."""

    def lacks(self, condition: str) -> bool:
        """Whether the evidence does not show what a condition is about."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of rules.toml for one subject; the head of that file explains each key."""

    name: str
    value: str
    conditions: tuple[str, ...]
    what: str
    advice: Advice


@cache
def rules(subject: Literal["node", "job"]) -> tuple[Rule, ...]:
    """All rules of a subject, in the order of the file."""
    rows = (row for row in own_data("checks/env/rules")["rule"] if subject in row)
    return tuple(Rule(row["variable"], row["value"], tuple(row[subject]), row["what"], _advice(row)) for row in rows)


def _advice(entry: Mapping[str, Any]) -> Advice:
    name, what = entry["variable"], entry["what"]
    words = {"expected": f"{name} not set", "fix": (entry.get("fix", f"unset {name}"),), "cost": what}
    return advice_of({**entry, **words})


def broken(subject: Literal["node", "job"], machine: Machine, name: str, value: str) -> Iterator[Rule]:
    """The rules by which a value costs something on a machine."""
    for rule in _meant(subject, name, value):
        if all(_holds(machine, condition, value) for condition in rule.conditions):
            yield rule


def undecided(subject: Literal["node", "job"], machine: Machine, name: str, value: str) -> bool:
    """Whether a value may cost more than a note, and the evidence does not show enough of the machine to judge it."""
    return any(
        rule.advice.severity > Severity.INFO
        and any(map(machine.lacks, rule.conditions))
        and all(machine.lacks(condition) or _holds(machine, condition, value) for condition in rule.conditions)
        for rule in _meant(subject, name, value)
    )


def _meant(subject: Literal["node", "job"], name: str, value: str) -> Iterator[Rule]:
    return (rule for rule in rules(subject) if rule.name == name and VALUES[rule.value](value))


def _holds(machine: Machine, condition: str, value: str) -> bool:
    held = getattr(machine, condition.removeprefix("not "))
    return bool(held(value) if callable(held) else held) != condition.startswith("not ")


def number(value: str) -> int | None:
    """A setting as NCCL's parameters read it: strtoll base 0, the whole text or nothing (src/misc/param.cc)."""
    text = value.strip()
    try:
        return int(text, 0) if 0 < len(text) <= 20 else None
    except ValueError:
        return int(text) if text.isascii() and text.isdigit() else None


def level(value: str) -> PathType | None:
    """A path type as NCCL's level settings read it: a word, or one of the old numbers (src/graph/paths.cc)."""
    text = value.strip().upper()
    words = {name: kind for name, kind in PathType.__members__.items() if kind <= PathType.SYS}
    numbers = {0: PathType.LOC, 1: PathType.PIX, 2: PathType.PXB, 3: PathType.PHB}
    depth = number(text)
    return words.get(text) if depth is None else numbers.get(depth, PathType.SYS)


def _below(kind: PathType) -> Callable[[str], bool]:
    return lambda value: (given := level(value)) is not None and given < kind


def _fewer_than(most: int) -> Callable[[str], bool]:
    return lambda value: 0 < (number(value) or 0) < most


def _is_algorithm(value: str) -> bool:
    """Whether algorithms are forced for all collectives and sizes."""
    return bool(value.strip()) and not value.strip().startswith("^") and ":" not in value


def _only_local(value: str) -> bool:
    """Whether an interface list names only interfaces that reach no other node."""
    names = [part.split(":")[0].strip() for part in value.strip().removeprefix("=").split(",")[:64]]
    return not value.strip().startswith("^") and all(name in ("lo", "docker0") for name in names)


VALUES: dict[str, Callable[[str], bool]] = {
    "any": lambda value: True,
    "on": lambda value: bool(number(value)),
    "off": lambda value: number(value) == 0,
    "one": lambda value: number(value) == 1,
    "none": lambda value: value.strip().lower() == "none",
    "socket": lambda value: value.strip().lower() == "socket",
    "trace": lambda value: value.strip().upper() == "TRACE",
    "debug": lambda value: value.strip().upper().startswith("DEBUG"),
    "group": lambda value: value.strip().upper() == "GROUP",
    "below NVL": _below(PathType.NVL),
    "below PIX": _below(PathType.PIX),
    "below PXB": _below(PathType.PXB),
    "few channels": _fewer_than(FEW_CHANNELS),
    "small buffer": _fewer_than(DEFAULT_BUFFSIZE),
    "one protocol": lambda value: value.strip().upper() in ("LL", "LL128"),
    "algorithm": _is_algorithm,
    "one algorithm": lambda value: _is_algorithm(value) and "NVLS" not in value.upper(),
    "local interfaces": _only_local,
}
"""Which values a rule means, by the name that it has in rules.toml."""
