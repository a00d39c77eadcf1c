"""The parts of a node that vary between siblings: found once, then replaced without a look at the others.

They are replaced by a sibling's, or by `UNTOLD`, which cannot be looked at: what a function answers of a node with it,
it answers of every sibling, because it has read nothing in which they differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, NoReturn

from topodiag.evidence.intake.siblings import Exchange
from topodiag.model.node import Node
from topodiag.model.provenance import MAX_QUOTE, Fact, Origin

Place = tuple[str, int | None]
"""A text of a capture, and a line in it."""
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Measured:
    """The numbers of a line as they are written there, and the sibling's."""

    old: str
    new: str


class UnlikeError(Exception):
    """A part of a node does not follow from its line as it should."""


class Touched(BaseException):
    """Something was looked at that varies between siblings. No guard against bugs may take it for one."""


def _touch(*_: object) -> NoReturn:
    raise Touched


class _Unreadable:
    """Raises `Touched` when it is looked at in any way."""

    __slots__ = ()


for _name in (
    "getattribute", "eq", "ne", "lt", "le", "gt", "ge", "hash", "bool", "len", "iter", "next", "contains", "getitem",
    "str", "repr", "format", "int", "float", "index", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv",
    "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "and", "rand", "or", "ror", "neg", "abs", "round", "call",
    "divmod", "rdivmod", "pow", "rpow", "lshift", "rlshift", "rshift", "rrshift", "xor", "rxor", "invert", "fspath",
    "bytes", "reversed", "enter", "exit",
):  # fmt: skip
    setattr(_Unreadable, f"__{_name}__", _touch)

UNTOLD: Any = _Unreadable()


def names_of(thing: Any) -> Iterable[str]:
    """The fields of a value of a dataclass, as `dataclasses.fields` finds them, which is slow."""
    found: Iterable[str] = thing.__dataclass_fields__
    return found


class Untold:
    """Puts UNTOLD in the place of all that varies."""

    FACT = UNTOLD

    def text(self, text: str) -> str:
        untold: str = UNTOLD
        return untold

    def fact(self, fact: Fact[Any]) -> Fact[Any]:
        untold: Fact[Any] = UNTOLD
        return untold


class Exchanged:
    """Puts a sibling's identities and numbers there. Raises UnlikeError for a fact that is no copy of a number of its
    line, or of which of them is not clear."""

    def __init__(self, exchange: Exchange, numbers: Mapping[Place, Measured]) -> None:
        self._exchange, self._numbers = exchange, numbers

    def text(self, text: str) -> str:
        return self._exchange.text(text)

    def fact(self, fact: Fact[Any]) -> Fact[Any]:
        origin = fact.origin
        said = self._numbers.get((origin.source, origin.line)) if origin is not None else None
        if origin is None or said is None:
            value = self._exchange.value(fact.value)
            return Fact(value, origin and replace(origin, text=self.text(origin.text)), fact.why)
        return Fact(_copied(fact.value, said), replace(origin, text=_quoted(origin.text, said)), fact.why)


def _copied(value: Any, said: Measured) -> Any:
    """The sibling's number that stands where this value was copied from."""
    kind = type(value)
    if kind not in (int, float):
        raise UnlikeError
    pairs = zip(_NUMBER.findall(said.old), _NUMBER.findall(said.new), strict=True)
    found = {kind(new) for old, new in pairs if (kind is float or "." not in old) and kind(old) == value}
    if len(found) != 1:
        raise UnlikeError
    return found.pop()


def _quoted(text: str, said: Measured) -> str:
    """The quoted line with the sibling's numbers."""
    if len(text) < MAX_QUOTE and text.endswith(said.old):
        return text.removesuffix(said.old) + said.new
    if len(text) < MAX_QUOTE and text.count(said.old) == 1:
        return text.replace(said.old, said.new)
    raise UnlikeError


class Varying:
    """Which parts of a node vary: those that hold identities, and the facts of some lines."""

    def __init__(self, node: Node, opposite: Exchange, measured: frozenset[Place]) -> None:
        self._node, self._opposite, self._measured = node, opposite, measured
        self._texts: dict[str, bool] = {}
        self._held: dict[int, bool] = {}
        self._holds(node)
        self._parts = frozenset(each for each, held in self._held.items() if held)

    def _holds(self, thing: Any) -> bool:
        """Whether a part varies, or holds one that does. Raises UnlikeError where one cannot be replaced."""
        if isinstance(thing, str):
            held = self._texts.get(thing)
            if held is None:
                held = self._texts[thing] = self._opposite.text(thing) != thing
            return held
        if isinstance(thing, Fact):
            return self._noted(thing, self._fact)
        if isinstance(thing, (tuple, frozenset)):
            return self._noted(thing, self._any)
        if isinstance(thing, dict):
            if self._any(thing):
                raise UnlikeError
            return self._noted(thing, lambda each: self._any(each.values()))
        if isinstance(thing, Origin) and (thing.source, thing.line) in self._measured:
            raise UnlikeError
        if is_dataclass(thing):
            return self._noted(thing, lambda each: self._any(getattr(each, name) for name in names_of(each)))
        return False

    def _any(self, parts: Iterable[Any]) -> bool:
        """Whether one of the parts holds what varies. All are looked at."""
        return sum(map(self._holds, parts)) > 0

    def _noted(self, thing: Any, look: Any) -> bool:
        held = self._held.get(id(thing))
        if held is None:
            held = self._held[id(thing)] = look(thing)
        return held

    def _fact(self, fact: Fact[Any]) -> bool:
        origin = fact.origin
        if origin is not None and (origin.source, origin.line) in self._measured:
            return fact.value is not None
        return self._holds(fact.value) or (origin is not None and self._holds(origin))

    def replaced(self, by: Untold | Exchanged, host: str, time: Fact[str]) -> Node:
        """The node with these in the places of all that varies."""
        made: Node = self._of(self._node, by)
        return replace(made, host=host, time=time)

    def _of(self, thing: Any, by: Untold | Exchanged) -> Any:
        if isinstance(thing, str):
            return by.text(thing) if self._texts.get(thing) else thing
        if id(thing) not in self._parts:
            return thing
        if isinstance(thing, Fact):
            return by.fact(thing)
        if isinstance(thing, dict):
            return {key: self._of(part, by) for key, part in thing.items()}
        if isinstance(thing, (tuple, frozenset)):
            return type(thing)(self._of(part, by) for part in thing)
        changed = {}
        for name in names_of(thing):
            old = getattr(thing, name)
            new = self._of(old, by)
            if new is not old:
                changed[name] = new
        return replace(thing, **changed)
