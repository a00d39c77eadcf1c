"""Documents read from values of the model: a key is the attribute of its name, or the one that its type names by `Of`.

Texts, numbers and flags stand as they are, a fact as its value, a member of an enumeration as its word, or as its
number where the key is one. An empty text and a negative whole number that are no facts mean "not known" in the model:
where a key may be null they are null, and where it may be left out it is.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from numbers import Integral
from operator import attrgetter
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from msgspec import UNSET, Struct, UnsetType

from topodiag.lazy import dataclass
from topodiag.model.provenance import Fact

T = TypeVar("T", bound=Struct)
Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Of:
    """In the annotation of a key: the attribute that it is read from, such as `run.id`."""

    path: str


def from_model(shape: type[T], value: object, **given: Any) -> T:
    """The document, or part of one, that `shape` describes. `given` are the keys that the value has no attribute for; a
    plain tuple has its items in the order of the keys."""
    if type(value) is tuple:
        given |= zip(shape.__struct_fields__, value, strict=True)
    keys = {name: convert(given.pop(name) if name in given else read(value)) for name, read, convert in _keys_of(shape)}
    if given:
        raise TypeError(f"{shape.__name__} has no key {', '.join(given)}")
    return shape(**keys)


@cache
def _keys_of(shape: type[Struct]) -> list[tuple[str, Convert, Convert]]:
    """Of each key: its name, how it is read from a value of the model, and how what was read becomes a part."""
    hints = get_type_hints(shape, include_extras=True)
    return [(name, _reading(name, hints[name]), _converting(hints[name])) for name in shape.__struct_fields__]


def _reading(name: str, hint: Any) -> Convert:
    return reading(next((extra.path for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, Of)), name))


def reading(path: str) -> Convert:
    """What reads the attribute at a path, such as `evidence.0.line`: None behind one that is None, or is not there in a
    list."""
    first, *steps = path.split(".")
    if not steps:
        return attrgetter(first)

    def read(value: Any) -> Any:
        value = getattr(value, first)
        for step in steps:
            if step.isdecimal():
                value = value[int(step)] if value and int(step) < len(value) else None
            elif value is not None:
                value = getattr(value, step)
        return value

    return read


def _converting(hint: Any) -> Convert:
    """How a value becomes one of this type."""
    kind, inner = get_origin(hint), get_args(hint)
    if kind is Annotated:
        return _converting(inner[0])
    if NoneType in inner or UnsetType in inner:
        convert = _converting(next(each for each in inner if each not in {NoneType, UnsetType}))
        return lambda value: _known(convert, value, None if NoneType in inner else UNSET)
    if kind is list:
        convert = _converting(inner[0])
        return lambda values: [convert(value) for value in values]
    if kind is dict:
        convert = _converting(inner[1])
        return lambda values: {key: convert(value) for key, value in dict(values).items()}
    if isinstance(hint, type) and issubclass(hint, Struct):
        return lambda value: value if isinstance(value, hint) else from_model(hint, value)
    return _number if hint is int else plain_value


def _known(convert: Convert, value: Any, unknown: Any) -> Any:
    """The value, or `unknown` for one that says so itself. A fact that is known is what was read, whatever it is."""
    if isinstance(value, Fact):
        return unknown if value.value is None else convert(value.value)
    if value is None or (isinstance(value, str) and not value) or (isinstance(value, Integral) and value < 0):
        return unknown
    return convert(value)


def _number(value: Any) -> Any:
    return value.value if isinstance(value, Fact) else value


def plain_value(value: Any) -> Any:
    """A fact as its value, a member of an enumeration as its word."""
    value = _number(value)
    if isinstance(value, Enum):
        return value.name.lower() if isinstance(value, int) else value.value
    return value
