"""What a module defines and a run may never use, made when it is first used: the methods of values, and patterns.

`dataclasses` writes and compiles seven methods for each class, 0.9 ms of CPU, and `re` takes 0.2 ms for a pattern; a
run loads hundreds of both and uses few. Here both cost microseconds where they are defined, and behave alike.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, FrozenInstanceError, fields
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, AnyStr, NoReturn, cast

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, **others):
        """`dataclasses.dataclass`; `order`, `init`, `repr` and `unsafe_hash` are not offered."""

        def made(cls):
            own = vars(cls)
            cls.__doc__ = cls.__doc__ or cls.__name__  # else it is made of the signature, at half the price of a class
            written = {name for name in ("__init__", "__repr__", "__eq__", "__hash__") if own.get(name) is not None}
            cls = dataclasses.dataclass(cls, init=False, repr=False, eq=False, **others)
            methods = {"__init__": _first_init(cls, frozen), "__repr__": _repr}
            if eq:
                compared = getter([field.name for field in fields(cls) if field.compare])
                methods["__eq__"] = _eq_of(compared)
                methods["__hash__"] = (lambda self: hash(compared(self))) if frozen else None
            for name, method in methods.items():
                if name not in written:
                    setattr(cls, name, method)
            if frozen:
                cls.__setattr__, cls.__delattr__ = _no_set, _no_delete
            if frozen and others.get("slots") and "__setstate__" not in own:
                cls.__getstate__, cls.__setstate__ = _state, _set_state
            return cls

        return made if cls is None else made(cls)


def regex(text: AnyStr, flags: int | re.RegexFlag = 0) -> re.Pattern[AnyStr]:
    """`re.compile`, at the first use of the pattern."""
    return cast("re.Pattern[AnyStr]", _Pattern(text, flags))


class _Pattern:
    """A pattern that is compiled when any of its methods is asked for; from then on they are its own attributes."""

    def __init__(self, text: Any, flags: int | re.RegexFlag) -> None:
        self._given = text, flags
        self.pattern = text

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled: re.Pattern[Any] = re.compile(*self._given)
        self.__dict__.update({name: getattr(compiled, name) for name in dir(compiled) if not name.startswith("_")})
        return getattr(compiled, name)


# --- methods of values ----------------------------------------------------------------------------------------------


def _first_init(cls: type, frozen: bool) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **named: Any) -> None:  # noqa: N807
        init = _init_of(cls, frozen)
        type.__setattr__(cls, "__init__", init)
        init(self, *args, **named)

    return __init__


def _init_of(cls: type, frozen: bool) -> Callable[..., None]:
    """The method that takes the fields of the class in their order, as `dataclasses` writes it."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    plain, named, body = ["self"], list[str](), list[str]()
    for field in fields(cls):
        name, value = field.name, field.name
        if field.default_factory is not MISSING:
            known[f"_make_{name}"] = field.default_factory
            value = f"(_make_{name}() if {name} is _missing else {name})" if field.init else f"_make_{name}()"
        elif field.default is not MISSING:
            known[f"_default_{name}"] = field.default
        if field.init:
            default = "=_missing" if field.default_factory is not MISSING else f"=_default_{name}"
            has_default = field.default is not MISSING or field.default_factory is not MISSING
            (named if field.kw_only else plain).append(name + (default if has_default else ""))
        elif field.default_factory is MISSING:
            continue
        slot = getattr(cls, name, None)
        if not frozen:
            body.append(f"self.{name} = {value}")
        elif isinstance(slot, MemberDescriptorType):  # a third faster than by its name
            known[f"_set_{name}"] = slot.__set__
            body.append(f"_set_{name}(self, {value})")
        else:
            body.append(f"_set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    head = ", ".join([*plain, *(["*", *named] if named else [])])
    exec(f"def __init__({head}):\n " + "\n ".join(body or ["pass"]), known)  # noqa: S102 - names of fields alone
    return cast("Callable[..., None]", known["__init__"])


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({shown})"


def getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the values of some fields as a tuple, of which there may be one or none, too."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _eq_of(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:  # noqa: N807
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _no_set(_self: Any, name: str, _value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_delete(_self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


__all__ = ["dataclass", "getter", "regex"]
