"""Patterns that can take for ever: a repeated group whose parts can be cut in more than one way.

`(?:[a-z]+ *)+$` meets `aaaa...!` in every way in which the letters can be parted, twice as many for each letter more.
A repeated group is sound where something in it must stand between two of its own repeats, such as the blank in
`[a-z]+(?: +[a-z]+)*`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

Item = tuple[Any, Any]
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT)
_EMPTY = (sre.AT, sre.ASSERT, sre.ASSERT_NOT)
_FEW = 3
"""A repeat that may differ by so many times only cannot grow."""
_ALL = frozenset(range(256))
_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S", sre.CATEGORY_WORD: r"\w", sre.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


def can_take_for_ever(pattern: re.Pattern[Any]) -> bool:
    """Whether a repeated group of the pattern can be cut in several ways."""
    return _unsound(list(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)))


def _unsound(items: Iterable[Item]) -> bool:
    return any(_is_unsound(name, value) or any(map(_unsound, _parts(name, value))) for name, value in items)


def _is_unsound(name: Any, value: Any) -> bool:
    if name not in _REPEATS or value[1] - value[0] <= _FEW:
        return False
    body = list(value[2])
    while len(body) == 1 and body[0][0] is sre.SUBPATTERN:
        body = list(body[0][1][3])
    return any(not _parted(body, _characters(inner)) for inner in _growing(body))


def _parted(body: Sequence[Item], met: frozenset[int]) -> bool:
    """Whether something must stand in the body that its growing part cannot be."""
    return any(not _may_be_empty(item) and not _characters([item]) & met for item in body)


def _parts(name: Any, value: Any) -> Iterator[list[Item]]:
    """What stands inside of an item."""
    if name in _REPEATS:
        yield list(value[2])
    elif name is sre.SUBPATTERN:
        yield list(value[3])
    elif name in (sre.ASSERT, sre.ASSERT_NOT):
        yield list(value[1])
    elif name is sre.BRANCH:
        yield from map(list, value[1])


def _growing(items: Iterable[Item]) -> Iterator[list[Item]]:
    """What is repeated inside, a number of times that may differ."""
    for name, value in items:
        if name in _REPEATS and value[1] - value[0] > _FEW:
            yield list(value[2])
        elif name not in (sre.ASSERT, sre.ASSERT_NOT):
            for part in _parts(name, value):
                yield from _growing(part)


def _may_be_empty(item: Item) -> bool:
    name, value = item
    if name in _EMPTY:
        return True
    if name in _REPEATS:
        return value[0] == 0 or all(map(_may_be_empty, value[2]))
    if name is sre.BRANCH:
        return any(all(map(_may_be_empty, branch)) for branch in value[1])
    return name is sre.SUBPATTERN and all(map(_may_be_empty, value[3]))


def _characters(items: Iterable[Item]) -> frozenset[int]:
    """The characters below 256 that may stand in any of the items."""
    numbers: set[int] = set()
    for name, value in items:
        if name is sre.LITERAL:
            numbers.add(value)
        elif name is sre.NOT_LITERAL:
            numbers |= _ALL - {value}
        elif name is sre.ANY:
            numbers |= _ALL
        elif name is sre.RANGE:
            numbers |= set(range(value[0], min(value[1], 255) + 1))
        elif name is sre.CATEGORY:
            numbers |= {number for number in _ALL if re.match(_CATEGORIES[value], chr(number))}
        elif name is sre.IN:
            inside = _characters(each for each in value if each[0] is not sre.NEGATE)
            numbers |= _ALL - inside if value[0][0] is sre.NEGATE else inside
        else:
            for part in _parts(name, value):
                numbers |= _characters(part)
    return frozenset(numbers)
