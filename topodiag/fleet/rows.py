"""Rows of facts: how a fact of the model becomes one, and how its value is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from topodiag.model.fleet import FactKind, NodeFact
from topodiag.model.provenance import Counter, Fact
from topodiag.words.own_data import own_data

CATEGORY, NUMBER, COUNTER = FactKind.CATEGORY, FactKind.NUMBER, FactKind.COUNTER
IDENTITY, MOMENT = FactKind.IDENTITY, FactKind.MOMENT

MAX_VALUE = 400
"""Characters of a value that are kept: a hostile one is of any length."""
_PARTS_OF_A_TOTAL = ("aer_correctable_", "aer_nonfatal_", "aer_fatal_")


Rows = Iterator[NodeFact]


def row(family: str, part: str, key: str, fact: Fact[Any], *, kind: FactKind = CATEGORY, unit: str = "") -> Rows:
    """The fact as a row; none comes of it where it is not known."""
    value = fact.value
    if value is not None:
        plain = kind is NUMBER or kind is COUNTER or (kind is MOMENT and type(value) in (int, float))
        yield NodeFact(family, part, key, value if plain else text_of(value), kind, unit, source_of(fact))


def rows_of(table: str, part: str, thing: object, family_of: Callable[[str], str] = str) -> Rows:
    """The rows that families.toml lists in this table, of a part of a node; `family_of` may put them into families of
    its own."""
    for family, key, attribute, kind, unit in _listed(table):
        yield from row(family_of(family), part, key, getattr(thing, attribute), kind=kind, unit=unit)


def counters(family: str, part: str, counted: dict[str, Counter]) -> Rows:
    """The latest reading of each counter. Of errors that a total counts, the total."""
    for name, counter in counted.items():
        if not name.startswith(_PARTS_OF_A_TOTAL) or name.endswith("_total"):
            yield from row(family, part, name, counter.latest, kind=COUNTER, unit=unit_of(name))


@cache
def _listed(table: str) -> tuple[tuple[str, str, str, FactKind, str], ...]:
    rows = []
    for line in own_data("fleet/families")["rows"][table]:
        head, attribute, *more = map(str.strip, line.split("|"))
        family, _, key = head.partition(": ")
        kind, unit = more if more else ("category", "")
        rows.append((family, key, attribute, FactKind(kind), unit))
    return tuple(rows)


@cache
def unit_of(counter: str) -> str:
    """What a counter counts."""
    units = own_data("fleet/families")["units"]
    return next((unit for words, unit in units.items() if words in counter), "errors")


def source_of(fact: Fact[Any]) -> str:
    """File and line of a fact, "" where it was derived."""
    return str(fact.origin) if fact.origin is not None else ""


def text_of(value: Any) -> str:
    """A value as text: yes and no, whole numbers without a point, several values with commas."""
    if value is True or value is False:
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, frozenset):
        value = sorted(value)
    text = ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
    return text[:MAX_VALUE]
