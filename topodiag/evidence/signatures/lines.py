"""Entries asked for single lines, by a reader that knows the head of each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from topodiag.evidence.signatures.engine import LineMatch, confirm, finder_of, in_order, of_job, verdicts
from topodiag.evidence.signatures.entry import Signature
from topodiag.evidence.signatures.literals import lines_with
from topodiag.evidence.signatures.wrappers import Unwrapped


def lines_of(name: str, data: bytes) -> Iterator[tuple[int, bytes, tuple[Signature, ...]]]:
    """The lines of a text that hold a literal of a family, by their numbers from 1, each with the entries that may take
    it in the order of the catalogue."""
    for number, begin, end, numbers in lines_with(finder_of(name), data):
        yield number, data[begin:end], in_order(numbers, name)


@lru_cache(4096)
def first_of(entries: tuple[Signature, ...], sentence: str) -> LineMatch | None:
    """The first of these entries that takes a sentence as it stands. Devices say the same again and again."""
    bare = Unwrapped(sentence)
    answers = (confirm(entry, bare, [sentence], 0) for entry in entries)
    return next((answer for answer in answers if isinstance(answer, LineMatch)), None)


def first_in(name: str, sentence: str) -> LineMatch | None:
    """The first entry of a family that takes a sentence as it stands."""
    numbers = frozenset(number for _, number in finder_of(name).hits(sentence.encode("utf-8", "replace")))
    return first_of(in_order(numbers, name), sentence) if numbers else None


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
