"""Texts that may have to be looked through later, and are by processes that have nothing else to do until then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from topodiag.evidence.intake.pieces import Piece

if TYPE_CHECKING:
    from concurrent.futures import Future

    from topodiag.fleet.workers import Pool

_Result = TypeVar("_Result")
MUCH_BYTES = 64 << 20
"""Less text than this is looked through by one process: starting others takes a tenth of a second."""
_LARGE_BYTES = 1 << 20
"""A text that is begun ahead: each costs the call of a worker."""


class ReadAhead(Generic[_Result]):
    """What is made of texts, by their names."""

    def __init__(self, work: Callable[[Piece], _Result], pieces: Mapping[str, Piece]) -> None:
        self._work, self._pieces = work, pieces
        self._begun: dict[str, Future[_Result]] = {}
        self._pool: Pool | None = None

    def begin(self, pool: Pool) -> None:
        """Let these workers begin with the large texts of much, before it is known whether anybody asks for them."""
        large = {name: piece for name, piece in self._pieces.items() if piece.size >= _LARGE_BYTES}
        if _are_much(large.values()):
            self._pool = pool
            self._begun = {name: pool.submit(self._work, piece) for name, piece in large.items()}

    def results(self, names: Collection[str], workers: int | None) -> dict[str, _Result]:
        """What was made of the texts of these names; now, by so many processes (None: all cores), what was not begun.
        A name of no text has nothing."""
        late = {name: piece for name, piece in self._pieces.items() if name in names and name not in self._begun}
        looked: Iterable[_Result] = map(self._work, late.values())
        if _are_much(late.values()):
            from topodiag.fleet.workers import by_all_cores  # noqa: PLC0415 - processes, which little text does not need

            looked = by_all_cores(self._work, list(late.values()), worth=True, chunk=1, workers=workers)
        read = dict(zip(late, looked, strict=True))
        for name, begun in self._begun.items():
            if name in names:
                read[name] = begun.result() if begun.exception() is None else self._work(self._pieces[name])
        return read

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends what nobody has asked for."""
        if self._pool is not None and not all(begun.done() for begun in self._begun.values()):
            self._pool.end()


def _are_much(pieces: Iterable[Piece]) -> bool:
    return sum(piece.size for piece in pieces) >= MUCH_BYTES
