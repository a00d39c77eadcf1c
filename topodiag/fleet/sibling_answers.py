"""What is told of siblings, told once: an answer that looks at nothing in which they differ is the same for all.

Which answers these are is found by asking them of the pattern of the siblings (fleet/sibling_nodes.py), which raises
where something that varies is looked at. The others are asked of each node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass, replace
from enum import Enum
from itertools import groupby
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from topodiag.checks.registry import Subject
from topodiag.checks.run import run
from topodiag.fleet.digest import Answers, Counted, Counter, Lasting, counter_of, counters_in, of_counters, of_rates
from topodiag.fleet.facts import device_rows, kernel_log
from topodiag.fleet.node_parts import Path, Touched, at_path, names_of
from topodiag.fleet.rows import Row, made_of
from topodiag.fleet.sibling_nodes import HOST, Pattern
from topodiag.lazy import dataclass
from topodiag.model.finding import Outcome
from topodiag.model.fleet import NodeFact
from topodiag.model.node import Node
from topodiag.words.fold import grouped

T = TypeVar("T")


class AnswersOfSiblings(Answers):
    """The answers that hold for all siblings, and those that each node is asked for."""

    def __init__(self, pattern: Pattern) -> None:
        """Needs a pattern with a node that is `untold`."""
        self.node = pattern.untold
        self._plain = Answers()
        self._lasting = self._shared(pattern.node, self._plain.lasting)
        self._counts = _Counts(pattern) if self._shared(pattern.node, _number_of_rows) is not None else None
        whole = self._plain.outcomes(pattern.node)
        self._of_check = [
            (check_id, self._of_all(check_id, tuple(own), pattern.node.host))
            for check_id, own in groupby(whole, lambda outcome: outcome.check)
        ]
        self._open = frozenset(check_id for check_id, own in self._of_check if own is None)

    def _shared(self, node: Node, answer: Callable[[Node], T]) -> T | None:
        """The answer where it is the same for all siblings."""
        try:
            result = answer(self.node) if self.node is not None else None
            return result if result == answer(node) else None
        except Touched:
            return None

    def _of_all(self, check_id: str, own: tuple[Outcome, ...], host: str) -> tuple[Outcome, ...] | None:
        """The outcomes of a check for all siblings; None where they may differ from these of the pattern."""
        try:
            outcomes = run(Subject.NODE, [self.node], (check_id,)) if self.node is not None else ()
            return outcomes if tuple(_renamed(outcome, HOST, host) for outcome in outcomes) == own else None
        except Touched:
            return None

    def outcomes(self, node: Node) -> tuple[Outcome, ...]:
        ran = run(Subject.NODE, [node], self._open) if self._open else ()
        asked = grouped((outcome.check, outcome) for outcome in ran)
        answers: list[Outcome] = []
        for check_id, own in self._of_check:
            answers += asked[check_id] if own is None else [_of_host(outcome, node.host) for outcome in own]
        return tuple(answers)

    def lasting(self, node: Node) -> Lasting:
        return self._lasting if self._lasting is not None else self._plain.lasting(node)

    def counted(self, node: Node) -> Counted:
        return self._counts.of(node) if self._counts is not None else self._plain.counted(node)


def _number_of_rows(node: Node) -> int:
    return sum(1 for _ in device_rows(node))


@dataclass(frozen=True, slots=True)
class _Part:
    """A reading of a counter of the pattern: what it is for all siblings, or where the counter stands on each."""

    row: Row | NodeFact
    path: Path | None

    def of(self, node: Node) -> NodeFact | Row:
        if self.path is None or isinstance(self.row, NodeFact):
            return self.row
        return replace(self.row, fact=at_path(node, self.path))


class _Counts:
    """The counters of errors of siblings: those that never vary, and the parts of the others. A pattern whose rows are
    told without a look at what varies has the same rows as its siblings."""

    def __init__(self, pattern: Pattern) -> None:
        parts: dict[Counter, list[_Part]] = {}
        for row in device_rows(pattern.node):
            if of_rates(row.kind, row.unit):
                at = counter_of(row.family, row.part, row.key, row.unit)
                path = pattern.counters.get(id(row.fact)) if isinstance(row, Row) else None
                parts.setdefault(at, []).append(_Part(row, path))
        self._all = counters_in(made_of((part.row for own in parts.values() for part in own), of_rates))
        self._varying = [own for own in parts.values() if any(part.path is not None for part in own)]

    def of(self, node: Node) -> Counted:
        own = made_of((part.of(node) for parts in self._varying for part in parts), of_rates)
        return of_counters(counters_in(made_of(kernel_log(node), of_rates)) | self._all | counters_in(own))


_known: WeakKeyDictionary[Pattern, AnswersOfSiblings] = WeakKeyDictionary()


def answers_of(pattern: Pattern) -> Answers:
    """The answers for the siblings of a pattern, found anew when more is known to vary."""
    known = _known.get(pattern)
    if known is None or known.node is not pattern.untold:
        known = _known[pattern] = AnswersOfSiblings(pattern)
    return known


def _of_host(outcome: Outcome, host: str) -> Outcome:
    return _renamed(outcome, HOST, host) if outcome.findings else replace(outcome, node=host)


def _renamed(thing: Any, old: str, new: str) -> Any:
    """A value with another host in its place. Raises Touched for one that holds what varies."""
    if isinstance(thing, str):
        return thing.replace(old, new)
    if thing is None or isinstance(thing, (int, float, Enum)):
        return thing
    if isinstance(thing, tuple):
        return tuple(_renamed(item, old, new) for item in thing)
    if is_dataclass(thing) and not isinstance(thing, type):
        return replace(thing, **{name: _renamed(getattr(thing, name), old, new) for name in names_of(thing)})
    raise Touched
