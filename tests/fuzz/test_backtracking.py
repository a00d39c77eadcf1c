"""No pattern of the program can take for ever."""

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import topodiag
from tests.fuzz.backtracking import can_take_for_ever
from tests.tables import examples
from topodiag.lazy import _Pattern


@examples("pattern")
def test_a_repeated_group_that_can_be_cut_in_several_ways_is_found(pattern: str) -> None:
    assert can_take_for_ever(re.compile(pattern))


@examples("pattern")
def test_one_whose_parts_are_kept_apart_is_sound(pattern: str) -> None:
    assert not can_take_for_ever(re.compile(pattern))


def patterns() -> Iterator[tuple[str, re.Pattern[Any]]]:
    """All that modules hold, in whatever."""
    met: set[int] = set()
    for module in pkgutil.walk_packages(topodiag.__path__, "topodiag."):
        if not module.name.endswith("__main__"):
            for name, value in vars(import_module(module.name)).items():
                for pattern in _in(value, met):
                    yield f"{module.name}.{name}", pattern


def _in(value: object, met: set[int]) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern | _Pattern):
        yield re.compile(value.pattern, value.flags)
    elif id(value) in met or isinstance(value, type):
        return
    elif isinstance(value, list | tuple | set | frozenset | dict):
        met.add(id(value))
        for each in list(value.values() if isinstance(value, dict) else value)[:5000]:
            yield from _in(each, met)
    elif hasattr(value, "__dataclass_fields__"):
        met.add(id(value))
        for name in value.__dataclass_fields__:
            yield from _in(getattr(value, name, None), met)


def test_no_pattern_of_the_program_can_take_for_ever() -> None:
    table = {(pattern.pattern, pattern.flags): (name, pattern) for name, pattern in patterns()}
    assert len(table) > 500
    assert not [name for name, pattern in table.values() if can_take_for_ever(pattern)]
