"""Things that belong together, joined two by two."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Sets(Generic[T]):
    """Sets of things; one that was joined to no other is alone in its set."""

    def __init__(self) -> None:
        self._above: dict[T, T] = {}

    def root(self, thing: T) -> T:
        """One of the set, the same for all in it."""
        above = self._above
        above.setdefault(thing, thing)
        while above[thing] != thing:
            above[thing] = thing = above[above[thing]]
        return thing

    def join(self, one: T, other: T) -> None:
        """Make the two sets one, whose root is that of the other."""
        self._above[self.root(one)] = self.root(other)

    def roots(self) -> dict[T, T]:
        """The root of each thing that was asked for."""
        return {thing: self.root(thing) for thing in list(self._above)}
