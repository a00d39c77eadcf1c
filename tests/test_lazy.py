"""Values and patterns that are made when first used behave as those of the standard library."""

import copy
import dataclasses
import pickle
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any

import pytest

from topodiag import lazy

Decorator = Callable[..., Any]


def made_by(decorator: Decorator) -> dict[str, type[Any]]:
    @decorator(frozen=True, slots=True)
    class Value:
        """A value."""

        name: str
        sizes: list[int] = field(default_factory=list)
        line: int = field(default=0, compare=False)
        hidden: str = field(default="", repr=False)

    @decorator(frozen=True, slots=True)
    class Empty:
        pass

    @decorator(frozen=True, slots=True)
    class One:
        rank: float = 1.0

    @decorator(frozen=True, slots=True, kw_only=True)
    class Named:
        a: int
        b: int = 2

    @decorator(slots=True)
    class Open:
        a: int
        twice: int = field(init=False)

        def __post_init__(self) -> None:
            self.twice = 2 * self.a

    @decorator(slots=True, eq=False)
    class Alone:
        a: int = 0

    @decorator(frozen=True, slots=True)
    class More(One):
        host: str = "n1"

    return {made.__name__: made for made in (Value, Empty, One, Named, Open, Alone, More)}


OURS, THEIRS = made_by(lazy.dataclass), made_by(dataclasses.dataclass)
GIVEN: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
    ("Value", ("x",), {}), ("Value", ("x", [1]), {"line": 3}), ("Value", (), {"name": "y", "hidden": "z"}),
    ("Empty", (), {}), ("One", (), {}), ("Named", (), {"a": 1}), ("Open", (4,), {}),
    ("Alone", (), {}), ("More", (2.0,), {}), ("More", (), {"host": "n2"}),
)  # fmt: skip
WRONG: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
    ("Value", (), {}), ("Value", ("x", [], 0, "", 1), {}), ("Named", (1,), {}), ("Open", (1,), {"twice": 2}),
    ("Empty", (1,), {}),
)  # fmt: skip


def test_values_that_hold_one_nan_are_equal_as_tuples_are() -> None:
    """The methods of `dataclasses` say so up to Python 3.12 and no longer from 3.13 on: here all versions agree."""
    nan = float("nan")
    assert OURS["One"](nan) == OURS["One"](nan)
    assert hash(OURS["One"](nan)) == hash(OURS["One"](nan))


@pytest.mark.parametrize(("name", "args", "named"), GIVEN)
def test_a_value_is_made_shown_compared_copied_and_changed_alike(
    name: str, args: tuple[Any, ...], named: dict[str, Any]
) -> None:
    ours, theirs = OURS[name](*args, **named), THEIRS[name](*args, **named)
    fields = [each.name for each in dataclasses.fields(theirs)]
    assert [each.name for each in dataclasses.fields(ours)] == fields
    assert [repr(getattr(ours, text)) for text in fields] == [repr(getattr(theirs, text)) for text in fields]
    assert repr(ours) == repr(theirs)
    assert (ours == OURS[name](*args, **named)) == (theirs == THEIRS[name](*args, **named))
    assert (ours == copy.copy(ours)) == (theirs == copy.copy(theirs))
    assert ours != theirs
    assert (OURS[name].__hash__ is None) == (THEIRS[name].__hash__ is None)
    assert dataclasses.asdict(ours).keys() == dataclasses.asdict(theirs).keys()
    if name != "Open":
        assert repr(dataclasses.replace(ours)) == repr(theirs)


@pytest.mark.parametrize(("name", "args", "named"), WRONG)
def test_wrong_arguments_are_refused_alike(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    for record in (OURS, THEIRS):
        with pytest.raises(TypeError):
            record[name](*args, **named)


def test_a_frozen_value_hashes_by_what_is_compared_and_takes_no_change() -> None:
    value = OURS["More"](1.0, "n1")
    assert hash(value) == hash(OURS["More"](1.0, "n1"))
    assert len({value, OURS["More"](1.0, "n1"), OURS["More"](1.0, "n2")}) == 2
    with pytest.raises(FrozenInstanceError):
        value.host = "n2"
    with pytest.raises(FrozenInstanceError):
        del value.host


def test_what_compares_no_field_is_equal_by_the_rest() -> None:
    assert OURS["Value"]("x", [], 1) == OURS["Value"]("x", [], 2)
    assert OURS["Value"]("x", [1]) != OURS["Value"]("x", [2])


@lazy.dataclass(frozen=True, slots=True)
class Sent:
    """Of a module, so that it can be pickled."""

    name: str
    parts: tuple[int, ...] = ()


def test_a_frozen_value_is_sent_between_processes() -> None:
    value = Sent("x", (1, 2))
    assert pickle.loads(pickle.dumps(value)) == value


@pytest.mark.parametrize(("text", "flags"), [(r"(\d+) (?P<unit>MB)", 0), (rb"^a.c$", re.M | re.I)])
def test_a_pattern_is_compiled_at_its_first_use(text: str | bytes, flags: int) -> None:
    pattern: Any = lazy.regex(text, flags)
    assert "search" not in vars(pattern)
    assert pattern.pattern == text
    data: Any = "12 MB" if isinstance(text, str) else b"ABC"
    assert pattern.search(data)[0] == data
    assert "search" in vars(pattern)
    assert pattern.flags == re.compile(text, flags).flags
    with pytest.raises(AttributeError):
        pattern.nothing  # noqa: B018
