"""The others of what a check judges, and what they have in common: asked once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

J = TypeVar("J")
T = TypeVar("T")


class Peers(Sequence[J]):
    """All of a run but the one at `own`. `answers` is shared by the peers of everyone in the run."""

    __slots__ = ("_answers", "_everyone", "_own")

    def __init__(self, everyone: Sequence[J], own: int, answers: dict[Any, Any]) -> None:
        self._everyone = everyone
        self._own = own
        self._answers = answers

    def __len__(self) -> int:
        return len(self._everyone) - 1

    def __iter__(self) -> Iterator[J]:
        for number, one in enumerate(self._everyone):
            if number != self._own:
                yield one

    def __getitem__(self, at: Any) -> Any:
        return tuple(self)[at]

    def of_everyone(self, make: Callable[[Sequence[J]], T]) -> T:
        """What `make` says of the whole run, the judged one among them."""
        if make not in self._answers:
            self._answers[make] = make(self._everyone)
        answer: T = self._answers[make]
        return answer


def of_everyone(judged: J, peers: Sequence[J], make: Callable[[Sequence[J]], T]) -> T:
    """What `make` says of a judged one and its peers together: for thousands of nodes it is asked once, not for each of
    them."""
    return peers.of_everyone(make) if isinstance(peers, Peers) else make((judged, *peers))


def peers_of(everyone: Sequence[J]) -> list[Peers[J]]:
    """The peers of each."""
    answers: dict[Any, Any] = {}
    return [Peers(everyone, number, answers) for number in range(len(everyone))]
