"""Where a program was started again into the same text: its first lines stand in it once more."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice, pairwise, takewhile

from topodiag.lazy import regex

_MOST_LINES, _MOST_HEADS = 20, 4
"""Lines at the begin of a text among which heads are looked for, and heads that are."""
_LEAST_LETTERS, _MOST_LINE = 8, 400
"""Of a line of a head: one with fewer letters stands in a text by chance."""
_FELL = b"Traceback (most recent call last)"
_TIME = regex(rb"\d+(?:[-/:.,T ]\d+){2,}")
_PASSING = regex(rb"(?i)warn|error|traceback|  File \"|exception|^\s*[|+#=*-]")
"""What is no head: a process prints a warning or an error at any time, and a monitor its table again."""


class Starts:
    """The places at which heads of a text stand: two lines in a row among its first ones, the same but for dates and
    times. Lines that stand twice among the first ones already are none; below a traceback a later launch may stand."""

    def __init__(self) -> None:
        self._first = b""
        self._fell = 0
        self._lines: defaultdict[bytes, set[int]] = defaultdict(set)

    def last(self, ended: Iterable[int]) -> int:
        """The line on which the last launch began, 0 where the text shows one; `ended` are lines on which processes
        did. A head stands as often in each launch as above the first end: ranks come up one after the other. The one
        that stands most often counts: others are torn by lines of another process."""
        lines = sorted(max(self._lines.values(), key=len, default=()))
        first = min((line for line in (*ended, self._fell) if lines and line > lines[0]), default=0)
        count = sum(line < first for line in lines)
        return lines[-count] if 0 < count < len(lines) else 0

    def counted(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The same blocks, in which the heads are looked for on their way."""
        above, kept = 0, b""
        for block in blocks:
            self._first = self._first or block
            text, top = kept + block, above - kept.count(b"\n") + 1
            if not self._fell and (at := text.find(_FELL)) >= 0:
                self._fell = top + text.count(b"\n", 0, at)
            for words, head, own in self._heads:
                # Where it stands first is known: few texts have one twice, and a pattern is dear.
                at = text.find(words, own if not above else 0)
                while at >= 0:
                    begin = text.rfind(b"\n", 0, at) + 1
                    if head.match(text, begin) is not None:
                        self._lines[head.pattern].add(top + text.count(b"\n", 0, begin))
                    at = text.find(words, at + len(words))
            above += block.count(b"\n")
            kept = text[-2 * _MOST_LINE :]
            yield block

    @cached_property
    def _heads(self) -> tuple[tuple[bytes, re.Pattern[bytes], int], ...]:
        """Each head, after words of its first line that are the same wherever it stands, and the byte behind that line
        where it stands first."""
        lines = [line.rstrip() for line in self._first.split(b"\n", _MOST_LINES)[:_MOST_LINES]]
        pairs = list(pairwise(takewhile(lambda line: _FELL not in line, lines)))
        heads = (pair for pair in pairs if pairs.count(pair) == 1 and _is_head(*pair))
        return tuple(self._head(pairs.index(pair), *pair) for pair in islice(heads, _MOST_HEADS))

    def _head(self, at: int, *pair: bytes) -> tuple[bytes, re.Pattern[bytes], int]:
        words, head = _pattern(*pair)
        self._lines[head.pattern].add(at + 1)
        return words, head, sum(len(line) + 1 for line in self._first.split(b"\n", at + 1)[: at + 1])


def _is_head(*lines: bytes) -> bool:
    long = all(_letters(line) >= _LEAST_LETTERS and len(line) <= _MOST_LINE for line in lines)
    return long and not any(map(_PASSING.search, lines))


def _letters(line: bytes) -> int:
    return sum(map(str.isalpha, line.decode("ascii", "ignore")))


def _pattern(one: bytes, other: bytes) -> tuple[bytes, re.Pattern[bytes]]:
    first, second = (_TIME.pattern.join(map(re.escape, _TIME.split(line))) for line in (one, other))
    return max(_TIME.split(one), key=len), regex(first + rb"\s*\n" + second + rb"\s*$", re.M)
