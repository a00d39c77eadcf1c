"""Entries asked for single lines, by a reader that knows the head of each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache

from topodiag.evidence.signatures.engine import LineMatch, confirm, of_job, verdicts
from topodiag.evidence.signatures.entry import Signature, family, literals
from topodiag.evidence.signatures.literals import Finder, finder, lines_with
from topodiag.evidence.signatures.wrappers import Unwrapped


def lines_of(name: str, data: bytes) -> Iterator[tuple[int, bytes, tuple[Signature, ...]]]:
    """The lines of a text that hold a literal of a family, by their numbers from 1, each with the entries that may take
    it in the order of the catalogue."""
    for number, begin, end, numbers in lines_with(_finder(name), data):
        yield number, data[begin:end], _in_order(numbers, name)


@lru_cache(4096)
def first_of(entries: tuple[Signature, ...], sentence: str) -> LineMatch | None:
    """The first of these entries that takes a sentence as it stands. Devices say the same again and again."""
    bare = Unwrapped(sentence)
    answers = (confirm(entry, bare, [sentence], 0) for entry in entries)
    return next((answer for answer in answers if isinstance(answer, LineMatch)), None)


def first_in(name: str, sentence: str) -> LineMatch | None:
    """The first entry of a family that takes a sentence as it stands."""
    numbers = frozenset(number for _, number in _finder(name).hits(sentence.encode("utf-8", "replace")))
    return first_of(_in_order(numbers, name), sentence) if numbers else None


def of_line(line: str) -> Iterator[LineMatch]:
    """The entries that take this one line, as `read` would choose them."""
    taken = False
    for answer in verdicts(line):
        if isinstance(answer, LineMatch) and (answer.entry.also or not taken):
            taken = taken or not answer.entry.also
            yield answer


def events_of_job(text: str, kind: str) -> Iterator[tuple[str, LineMatch]]:
    """What stands behind the kind in the events of a line of a job's output (`memory` of `ended.memory`), with what the
    entry reads, in the order of the catalogue."""
    for taken in of_job(text):
        first, _, rest = taken.entry.says.partition(".")
        if first == kind:
            yield rest, taken


@cache
def _literals(name: str) -> dict[str, tuple[int, ...]]:
    """Each literal of a family, with the entries that it may begin."""
    own = {text: tuple(place for of, place in places if of == name) for text, places in literals().items()}
    return {text: places for text, places in own.items() if places}


@cache
def _finder(name: str) -> Finder:
    return finder([text.encode() for text in _literals(name)])


@lru_cache(1024)
def _in_order(numbers: frozenset[int], name: str) -> tuple[Signature, ...]:
    places = list(_literals(name).values())
    return tuple(family(name)[place] for place in sorted({place for number in numbers for place in places[number]}))
